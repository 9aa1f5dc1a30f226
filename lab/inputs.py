"""Note which files a user's code reads, such as a trace that a topology loads. They decide what a
run measures, so their digests belong to it.

Python reports every opened file to an audit hook. A file counts if a function of a watched file is
on the stack then. What the code could read in another way (`UNSEEN`) is refused. The lab's own
modules, installed packages and devices do not count.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from lab.isolation import ROOT

Digests = Mapping[str, str]  # SHA-256 of files, by path

PACKAGES = tuple(
    {f"{sysconfig.get_path(each)}{os.sep}" for each in ("stdlib", "platstdlib", "purelib")}
)
LIBRARY = f"{sysconfig.get_path('stdlib')}{os.sep}"
UNSEEN = {  # events that Python reports, by which code reads what no digest shows
    **dict.fromkeys(
        ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"), "it starts a program"
    ),
    "socket.connect": "it connects to another program",
    "sqlite3.connect": "it opens a database",
}
_watched: set[str] = set()  # paths of users' files, as tracebacks name them
_hooked = False


class _Thread(threading.local):
    """What belongs to one thread: a server checks scenarios in several at once."""

    def __init__(self) -> None:
        self.collectors: list[dict[str, str]] = []
        self.is_noting = False  # the file is opened once more to be read


_thread = _Thread()


def watch(*files: str) -> None:
    """Begin to note what the code in these files reads.

    This cannot be ended, because Python cannot remove an audit hook.
    """
    global _hooked
    _watched.update(files)
    if not _hooked:
        _hooked = True
        sys.addaudithook(_hear)


@contextmanager
def collected() -> Iterator[dict[str, str]]:
    """Collect the digests of the files that watched code reads in this thread inside the `with`
    block.

    The yielded dictionary maps the path of each file to its digest. An entry is added when the code
    opens a file for reading.
    """
    found: dict[str, str] = {}
    _thread.collectors.append(found)
    try:
        yield found
    finally:
        _thread.collectors = [each for each in _thread.collectors if each is not found]


def by_name(found: Digests) -> dict[str, str]:
    """Return the digests by file name instead of path.

    Unlike paths, the names are the same on every machine. If several files have the same name, the
    names of their folders are added.
    """
    names = short_names(found)
    return {names[path]: found[path] for path in sorted(found, key=names.__getitem__)}


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to the name that `by_name` gives it."""
    names: dict[str, str] = {}
    left, depth = set(paths), 1
    while left:
        short = {path: "/".join(Path(path).parts[-depth:]) for path in left}
        alone = {path for path in left if list(short.values()).count(short[path]) == 1}
        names |= {path: short[path] for path in alone}
        left, depth = left - alone, depth + 1
    return names


def _hear(event: str, details: tuple[Any, ...]) -> None:
    if not _thread.collectors or _thread.is_noting:
        return
    if event in UNSEEN and _is_done_by_watched(sys._getframe(1)):
        raise PermissionError(
            f"{UNSEEN[event]}, and the lab cannot see what it reads there. Write what you need "
            "into a file, and read that"
        )
    if event != "open":
        return
    path, mode, flags = details
    if not isinstance(path, str | bytes | os.PathLike) or not _is_reading(mode, flags):
        return
    if not _is_called_by_watched(sys._getframe(1)):
        return
    _thread.is_noting = True
    try:
        _note(os.path.abspath(os.fsdecode(path)))
    finally:
        _thread.is_noting = False


def _is_reading(mode: str | None, flags: int) -> bool:
    if mode is not None:
        return "r" in mode
    return flags & os.O_ACCMODE != os.O_WRONLY


def _is_called_by_watched(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename in _watched:
            return True
        frame = frame.f_back
    return False


def _is_done_by_watched(frame: FrameType | None) -> bool:
    """Return whether watched code does something itself, or with the standard library only."""
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in _watched


def _note(path: str) -> None:
    if path.endswith(".pyc"):
        try:
            path = importlib.util.source_from_cache(path)
        except ValueError:
            return
    if path in _watched or path.startswith(PACKAGES) or _is_module_of_lab(path):
        return
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or path.startswith(("/proc/", "/sys/")):
            return
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return
    for each in _thread.collectors:
        each[path] = digest


def _is_module_of_lab(path: str) -> bool:
    return path.startswith(f"{ROOT}{os.sep}") and path.endswith((".py", ".so"))
