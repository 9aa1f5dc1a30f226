"""Keep the simulator's compiled code on disk, in a folder whose name is a digest of everything that
the code depends on.

The digest covers the source files of the core, the path of their folder, users' congestion control
laws, the versions of numba and Python, and the processor. Numba's own cache is not enough: it does
not notice a change in another module.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

from lab import sudo
from lab.errors import MachineLacks

SOURCES = Path(__file__).parent / "core"
OPTIONS = {"cache": True, "no_cfunc_wrapper": True}  # of numba.njit; nobody calls it from C
COMPLETE = "complete"  # a file in the folder: everything is compiled
FAILED = "failed"  # a file in the folder: why it could not be compiled
LOCK = "compiling.lock"
ROOT_ID = 0  # the user id of root


def version() -> str | None:
    """Return numba's version; None if numba is not installed."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return None


def is_wanted() -> bool:
    """Return True if this process may run compiled code: numba is installed, and NUMBA_DISABLE_JIT
    does not switch it off.

    Every run also works without numba, only slower.
    """
    return version() is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def sources_digest(folder: Path, compiler: str, laws: Mapping[str, Path] | None = None) -> str:
    """Return a digest of the Python files in `folder` and of its path, of the text `compiler`, and
    of users' congestion control laws. `compiler` names the compiler's version and options; `laws`
    maps the name of each law to its file."""
    digest = hashlib.sha256(f"{compiler}\0{folder.resolve()}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for name, path in (laws or {}).items():
        digest.update(f"{name}\0{path.resolve()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def folder(laws: Mapping[str, Path] | None = None) -> Path:
    """Return the folder for the compiled code of the simulator's core and of users' laws.

    `laws` maps the name of each congestion control law of a user to its file. The folder's name
    depends on the present content of all these sources. The folder is in this user's cache folder
    (`sudo.user_cache`); it may not exist yet.
    """
    digest = sources_digest(SOURCES, f"{version()} {OPTIONS} {_machine()}", laws)
    return sudo.user_cache() / "sim" / digest


@cache
def _machine() -> str:
    """Return a text that names the Python version and the processor. Compiled code is not shared
    between machines whose texts differ."""
    try:
        first_cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
        processor = "\n".join(
            line
            for line in first_cpu.splitlines()
            if line.startswith(("model name", "flags", "Features"))
        )
    except OSError:
        processor = platform.processor()
    return f"{sys.version_info[:2]} {platform.machine()} {processor}"


def is_complete(where: Path) -> bool:
    """Return True if folder `where` holds the compiled code of the whole core."""
    check_owner(where)
    return (where / COMPLETE).exists()


def check_owner(where: Path) -> None:
    """Raise `MachineLacks` if another user could have written the compiled code in folder `where`.

    The owner of the folder, if it exists, must be this user, root, or the user who called sudo, and
    it must not be writable for everybody.
    """
    try:
        found = where.lstat()
    except OSError:
        return
    trusted = {ROOT_ID, os.geteuid(), *(sudo.caller() or ())[:1]}
    if found.st_uid not in trusted or found.st_mode & 0o002 or not stat.S_ISDIR(found.st_mode):
        raise MachineLacks(
            f"use the compiled code in {where}: it is not a folder that only you can write into. "
            "Remove it, or set MULTIPATH_LAB_CACHE to a folder of your own"
        )


def has_failed(where: Path) -> bool:
    """Return True if an earlier attempt to compile into folder `where` has failed."""
    return (where / FAILED).exists()


def failure(where: Path) -> str:
    """Return the error message for folder `where`, in which the compiler has failed."""
    reason = where / FAILED
    return f"compile the simulator: it failed, {reason} says why. Remove that file to try again"


@contextmanager
def compiling(where: Path) -> Iterator[bool]:
    """Hold the lock of folder `where` while the core is compiled into it.

    Yield True to the first process, which must compile. Other processes wait for the lock and then
    get False, because the first one has compiled everything or has failed. An exception in the body
    is also written to the file "failed" of the folder.
    """
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(where)
    with FileLock(where / LOCK):
        try:
            yield not (is_complete(where) or has_failed(where))
        except Exception:
            (where / FAILED).write_text(traceback.format_exc(), encoding="utf-8")
            raise
        if not has_failed(where):
            (where / COMPLETE).touch()


def is_being_compiled(where: Path) -> bool:
    """Return True if a process is compiling into folder `where` now."""
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(where)
    try:
        with FileLock(where / LOCK, timeout=0):
            return False
    except Timeout:
        return True
