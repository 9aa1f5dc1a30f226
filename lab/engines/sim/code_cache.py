"""The folder with the simulator's compiled code.

The folder's name is a digest of everything that the code depends on: the source files of the core
and their path, users' congestion controls, the versions of numba and Python, and the processor.
Numba's own cache is not enough, because it does not notice a change in another module.
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
# the core never divides by zero, so it need not check; a user's law may, which is an error there
CORE_OPTIONS = OPTIONS | {"error_model": "numpy"}
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
    """Return 16 hex digits that identify the sources and the compiler.

    They change with the path or the Python files of `folder`, and with the text `compiler` (version
    and options of the compiler). They also change with `laws`, which maps the name of each user's
    congestion control to its file.
    """
    digest = hashlib.sha256(f"{compiler}\0{folder.resolve()}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for name, path in (laws or {}).items():
        digest.update(f"{name}\0{path.resolve()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def folder(laws: Mapping[str, Path] | None = None) -> Path:
    """Return the folder for compiled code that fits the present sources. It may not exist yet.

    `laws` maps the name of each user's congestion control to its file. The folder is inside the
    user's cache folder (`sudo.user_cache`).
    """
    digest = sources_digest(SOURCES, f"{version()} {CORE_OPTIONS} {_machine()}", laws)
    return sudo.user_cache() / "sim" / digest


@cache
def _machine() -> str:
    """Return the Python version and the processor as text. Compiled code is reused only on machines
    with the same text."""
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
    """Return True if folder `where` holds the compiled code of the whole core. Raise `MachineLacks`
    if another user could have written this code."""
    check_owner(where)
    return (where / COMPLETE).exists()


def check_owner(where: Path) -> None:
    """Raise `MachineLacks` if another user could have written the compiled code in folder `where`.

    The folder must belong to this user, to root, or to the user who called sudo. It must not be
    writable for everybody. A missing folder is accepted.
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

    Yield True if this process must compile. Other processes wait for the lock and then get False,
    because the code is complete or its compilation has failed. If the body of the `with` statement
    raises an exception, the traceback is written to the file "failed" in the folder, and the
    exception is raised again.
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
