"""Read and create files safely in folders where other users can write.

Symbolic links are not followed, and the functions never wait for a pipe.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TextIO

from lab.errors import LabError, RequestError

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # these say nothing about the file
MISSING = (FileNotFoundError, NotADirectoryError)
LONGEST_LINE = 64 * 2**20  # bytes; a longer line is read in pieces


def read(path: Path, offset: int = 0, most_bytes: int = -1, follow: bool = False) -> bytes:
    """Return the content of a file from `offset` on, at most `most_bytes` bytes; -1 means all.

    A negative `offset` counts from the end. Symbolic links are followed only if `follow` is True.
    Raise `OSError` if the path cannot be opened, or if it is a folder, a pipe, a device or a link
    that is not followed.
    """
    with opened(path, follow) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size + offset) if offset < 0 else offset)
        return file.read(most_bytes)


@contextmanager
def opened(path: Path, follow: bool = False) -> Iterator[BufferedReader]:
    """Open a file for reading. The conditions and errors are those of `read`."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags if follow else flags | os.O_NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        yield file


def digest(path: Path, follow: bool = False) -> str:
    """Return the SHA-256 digest of a file as hexadecimal digits. Errors are those of `read`."""
    with opened(path, follow) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def lines(path: Path, offset: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file from `offset` on, each with its newline; the last may lack one.

    Only one line is in memory at a time. Errors are those of `read`.
    """
    with opened(path) as file:
        file.seek(offset)
        while line := file.readline(LONGEST_LINE):
            yield line


def create(path: Path, mode: int = 0o666) -> TextIO:
    """Return a new, empty file at `path`, open for writing UTF-8.

    An old file at `path` is removed first. If there is a symbolic link, the link is removed, and
    the file to which it points stays as it is.
    """
    remove(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    return open(descriptor, "w", encoding="utf-8", errors="replace")


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder. Do nothing if `path` does not exist."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def failure(path: Path, error: OSError) -> LabError:
    """Return the error to raise when `path` cannot be read.

    It is a `LabError` if the machine has run out of file descriptors or memory, else a
    `RequestError`.
    """
    kind = LabError if error.errno in SHORTAGES else RequestError
    return kind(f"read {path}: {error.strerror or error}")
