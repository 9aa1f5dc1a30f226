"""Store the tables of a TinyDB database in one JSON file that survives killed processes and full
disks.

The tables are kept in memory. The file is always replaced as a whole.

1) to save: write a new file and fsync it, keep the last good files as NAME.1 to NAME.3, rename
   the new file to NAME, fsync the folder
2) to read: load the file if another process has replaced it since
3) if the content of the file is damaged: rename it, and use the newest readable copy instead

A file that cannot be opened, for example because too many files are open, is not damaged: the error
is raised, and the file stays as it is.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tinydb.storages import Storage

from controller.bounded_json import parse_object
from lab import plain_file
from lab.errors import LabError

COPIES = 3
NO_FILE = (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO)  # a link, a folder, a pipe
State = dict[str, dict[str, Any]]


class AtomicStorage(Storage):
    """Store the tables of a TinyDB database in one JSON file. A crash never leaves a half-written
    file.

    If a damaged file was found and renamed, `recovered` is a message for the user; otherwise it is
    empty.
    """

    def __init__(self, path: Path, sound: Callable[[Any], bool] = lambda _: True) -> None:
        """Use the file `path`. `sound` returns whether a document of a table has the form that its
        readers need; a file with another document counts as damaged."""
        self.path, self.recovered, self._sound = path, "", sound
        self._state: State | None = None
        self._read_stamp: tuple[int, int, int] | None = None
        self._batching = False

    def read(self) -> State | None:
        """Return all tables by name, or None if there is no file."""
        if not self._batching and self._stamp() != self._read_stamp:
            self._load()
        return self._state

    def write(self, data: State) -> None:
        """Replace all tables by `data`: in memory now, and on disk now or at the end of a
        `together` block."""
        self._state = data
        if not self._batching:
            self._save()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Delay writing to disk until the end of a `with` block, so that all changes inside are
        written at once.

        If the block raises an exception, all changes inside are undone.
        """
        self.read()
        before = json.dumps(self._state)
        self._batching = True
        try:
            yield
        except BaseException:
            self._state = json.loads(before)
            raise
        finally:
            self._batching = False
        if json.dumps(self._state) != before:
            self._save()

    def _load(self) -> None:
        self._state = None
        for path in (self.path, *self._copies()):
            try:
                self._state = self._parsed(plain_file.read(path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno not in NO_FILE:
                    raise LabError(f"read {path}: {error.strerror}. Try again") from error
                aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
                path.replace(aside)
                self.recovered = (
                    f"{path.name} could not be read ({error}) and is kept as {aside.name}"
                )
                continue
            if path != self.path:
                self.recovered += f"; {path.name} took its place"
                self._save()
            break
        self._read_stamp = self._stamp()

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.new")
        with plain_file.create(beside) as file:
            json.dump(self._state, file, ensure_ascii=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        self._rotate()
        beside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._read_stamp = self._stamp()

    def _rotate(self) -> None:
        """Keep the present file as the copy NAME.1. Rename the older copies first: NAME.2 becomes
        NAME.3, NAME.1 becomes NAME.2.

        The present file also keeps its own name until a new file replaces it. Each target is
        removed first, because renaming does nothing if both names are links to the same file.
        """
        if not self.path.exists():
            return
        copies = self._copies()
        for younger, older in zip(reversed(copies[:-1]), reversed(copies[1:]), strict=True):
            plain_file.remove(older)
            with suppress(FileNotFoundError):
                younger.rename(older)
        plain_file.remove(copies[0])
        os.link(self.path, copies[0])

    def _copies(self) -> list[Path]:
        return [self.path.with_name(f"{self.path.name}.{n}") for n in range(1, COPIES + 1)]

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_ino, stat.st_size

    def _parsed(self, text: bytes) -> State:
        state: State = parse_object(text)
        for table in state.values():
            if not isinstance(table, dict) or not all(map(_is_number, table)):
                raise ValueError("it holds no tables")
            if not all(map(self._sound, table.values())):
                raise ValueError("a document lacks a field")
        return state


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 19
