"""The simulator's compiled code on disk, in a folder named by a digest of all that the code depends
on.

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
    """Return the version of numba, or None if it is not installed."""
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
    """Return 16 hex digits that depend on the path and the Python files of `folder`, on the text
    `compiler` (version and options of the compiler), and on users' congestion control laws. `laws`
    maps the name of each law to its file."""
    digest = hashlib.sha256(f"{compiler}\0{folder.resolve()}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for name, path in (laws or {}).items():
        digest.update(f"{name}\0{path.resolve()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def folder(laws: Mapping[str, Path] | None = None) -> Path:
    """Return the folder for the compiled code of the core and of users' laws, as their sources are
    now.

    `laws` maps the name of each user's congestion control law to its file. The folder is in the
    user's cache folder (`sudo.user_cache`); it may not exist yet.
    """
    digest = sources_digest(SOURCES, f"{version()} {OPTIONS} {_machine()}", laws)
    return sudo.user_cache() / "sim" / digest


@cache
def _machine() -> str:
    """Return the Python version and the processor as text. Compiled code is reused only where this
    text is the same."""
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
    """Return True if `where` holds the compiled code of the whole core. Raise `MachineLacks` as
    `check_owner` does."""
    check_owner(where)
    return (where / COMPLETE).exists()


def check_owner(where: Path) -> None:
    """Raise `MachineLacks` if another user could have written the compiled code in `where`.

    It must be a folder of this user, of root or of the user who called sudo, and not writable for
    everybody. A missing folder is accepted.
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
    return (where / FAILED).exists()


def failure(where: Path) -> str:
    """Return the error message to show when compilation into folder `where` has failed."""
    reason = where / FAILED
    return f"compile the simulator: it failed, {reason} says why. Remove that file to try again"


@contextmanager
def compiling(where: Path) -> Iterator[bool]:
    """Lock folder `where` while the core is compiled into it.

    Yield True to the first process, which must compile. Other processes wait for the lock, then get
    False: the code is complete, or the compilation has failed. An exception in the body of the
    `with` statement is written to the file "failed" of the folder and raised again.
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
    """Return True if a process is compiling into folder `where` now. Create the folder if it is
    missing."""
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(where)
    try:
        with FileLock(where / LOCK, timeout=0):
            return False
    except Timeout:
        return True
