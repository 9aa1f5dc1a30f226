"""One emulation at a time per machine: a file lock that names its holder.

The kernel lets go of the lock when the holder ends, however it ends. The file stays; only a lock on it counts.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lab.errors import MachineLacks

LOCK = Path("/tmp/multipath-lab-emulation.lock")
PATIENCE_S = (
    0.5  # a look at the lock holds it for an instant: who wants it tries a little longer than that
)


@dataclass(frozen=True)
class Holder:
    """Who holds the emulation: a process, what it does, and since when (s since 1970)."""

    pid: int
    what: str
    since: float

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid}, since {time.strftime('%H:%M:%S', time.localtime(self.since))})"


@contextmanager
def hold(what: str, wait: bool = False, path: Path | None = None) -> Iterator[None]:
    """Hold this machine's emulation while the block runs.

    If somebody else does, raise `MachineLacks` with their name, or with `wait` wait until they let go.
    """
    path = path or LOCK
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _lock(descriptor):
            if not wait and time.monotonic() > deadline:
                raise MachineLacks(
                    f"start {what}: this machine's emulation is taken by {_read(path)}. "
                    "Wait for it with --wait, or end it: ./run_lab.sh clean --force"
                )
            time.sleep(0.05)
        _write(descriptor, Holder(os.getpid(), what, time.time()))
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path | None = None) -> Holder | None:
    """Who holds the emulation now; None if nobody does, whatever the file says."""
    path = path or LOCK
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return None if _lock(descriptor, fcntl.LOCK_SH) else _read(path)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open the file for all users. It is created apart: root may not open another's file in /tmp with O_CREAT."""
    while True:
        try:
            return os.open(path, os.O_RDWR)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            os.fchmod(descriptor, 0o666)
            return descriptor


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, who: Holder) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(who)).encode(), 0)


def _read(path: Path) -> Holder:
    """The name in the file, with the process the kernel says it is: anybody may write into the file."""
    pid = _locker(path)
    try:
        return replace(Holder(**json.loads(path.read_text())), pid=pid)
    except (ValueError, TypeError, OSError):
        return Holder(pid, "a run that is just starting", time.time())


def _locker(path: Path) -> int:
    """The process that holds the lock, from /proc/locks; 0 if it cannot be told."""
    about = path.stat()
    name = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[3] == "WRITE" and fields[5] == name:
            return int(fields[4])
    return 0
