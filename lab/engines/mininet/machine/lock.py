"""A file lock that allows only one emulation at a time on a machine.

The file names the process that holds the lock. The kernel releases the lock when this process ends,
for whatever reason. The file remains, so its content is valid only while the file is locked.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lab.errors import MachineLacks

LOCK = Path("/tmp/multipath-lab-emulation.lock")  # noqa: S108 - one path for every user
# `hold` tries for so long, because `holder` of another process takes the lock for an instant
RETRY_S = 0.5


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock.

    `pid` is its process ID, `task` says what it does, and `since` is when it took the lock [s since
    1970].
    """

    pid: int
    task: str
    since: float

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"{self.task} (process {self.pid}, since {clock})"


@contextmanager
def hold(task: str, wait: bool = False, path: Path | None = None) -> Iterator[None]:
    """Hold the emulation lock of this machine during a `with` block.

    `task` says what the block does; other processes that want the lock print it. If another process
    holds the lock, `wait` makes this function wait for the lock. Without `wait`, `MachineLacks` is
    raised, with the process ID and the task of the other process.
    """
    path = path or LOCK
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + RETRY_S
        while not _lock(descriptor):
            if not wait and time.monotonic() > deadline:
                raise MachineLacks(
                    f"start {task}: this machine's emulation is taken by {_read(path)}. "
                    "Wait for it with --wait, or end it: ./run_lab.sh clean --force"
                )
            time.sleep(0.05)
        _write(descriptor, Holder(os.getpid(), task, time.time()))
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path | None = None) -> Holder | None:
    path = path or LOCK
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        return None if _lock(descriptor, fcntl.LOCK_SH) else _read(path)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open the lock file and return its descriptor. A missing file is made, writable for all users.

    Opening and creating are separate calls, because the kernel refuses O_CREAT for another user's
    file in /tmp, even to root (fs.protected_regular).
    """
    while True:
        try:
            return _plain(path, os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK))
        except FileNotFoundError:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            os.fchmod(descriptor, 0o666)
            return descriptor
        except OSError as error:
            raise _unusable(path, error) from error


def _plain(path: Path, descriptor: int) -> int:
    """Return `descriptor` if it is a regular file with one hard link; else raise `MachineLacks`.

    Through a link, another user could make root write to any file.
    """
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise _unusable(path, OSError(errno.ELOOP, "it is not a plain file with one name"))


def _unusable(path: Path, error: OSError) -> MachineLacks:
    return MachineLacks(f"use the lock file {path}: {error.strerror}. Remove it: sudo rm {path}")


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, holder: Holder) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)


def _read(path: Path) -> Holder:
    """Return the holder of the lock. Its PID comes from the kernel, the rest from the lock file.

    The PID in the file proves nothing, because any user can write to the file.
    """
    pid = _locker(path)
    try:
        return replace(Holder(**json.loads(path.read_text())), pid=pid)
    except (ValueError, TypeError, OSError):
        return Holder(pid, "a run that is just starting", time.time())


def _locker(path: Path) -> int:
    """Return the PID that holds the exclusive lock on `path`, from /proc/locks; 0 if none does."""
    about = path.stat()
    name = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[3] == "WRITE" and fields[5] == name:
            return int(fields[4])
    return 0
