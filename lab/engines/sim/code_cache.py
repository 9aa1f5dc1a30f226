"""Keep the simulator's compiled code on disk, in a folder named after all that the code depends on.

That is: the sources of the core and where they are, congestion control laws from users' files,
numba, Python and the processor. Numba itself does not notice that another module has changed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

SOURCES = Path(__file__).parent / "core"
OPTIONS = {"cache": True, "no_cfunc_wrapper": True}  # of numba.njit; nobody calls it from C
COMPLETE = "complete"  # a file in the folder: everything is compiled
FAILED = "failed"  # a file in the folder: why it could not be compiled
LOCK = "compiling.lock"


def version() -> str | None:
    """Return numba's version, None without it."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return None


def is_wanted() -> bool:
    """Return True if this process may run compiled code: numba is installed and not switched off.

    Numba makes runs faster, and no run needs it.
    """
    return version() is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def sources_digest(folder: Path, compiler: str, laws: Mapping[str, Path] | None = None) -> str:
    """Return a name for the code in a folder, its place, users' laws (name and file) and the
    compiler."""
    digest = hashlib.sha256(f"{compiler}\0{folder.resolve()}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    for name, path in (laws or {}).items():
        digest.update(f"{name}\0{path.resolve()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def folder(laws: Mapping[str, Path] | None = None) -> Path:
    """Return where this user's compiled code of these sources is kept."""
    given = os.environ.get("MULTIPATH_LAB_CACHE")
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = Path(given) if given else user_cache / "multipath-lab"
    return (
        base.absolute()
        / "sim"
        / sources_digest(SOURCES, f"{version()} {OPTIONS} {_machine()}", laws)
    )


@cache
def _machine() -> str:
    """Return what compiled code depends on besides its source and the compiler."""
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
    """Return True if everything is compiled in this folder."""
    return (where / COMPLETE).exists()


def has_failed(where: Path) -> bool:
    """Return True if the compiler failed in this folder."""
    return (where / FAILED).exists()


def failure(where: Path) -> str:
    """Return the message about a compiler that failed."""
    reason = where / FAILED
    return f"compile the simulator: it failed, {reason} says why. Remove that file to try again"


@contextmanager
def compiling(where: Path) -> Iterator[bool]:
    """Hold the lock of a folder while it is compiled.

    Yield True to the first process, which must compile. The others wait, and get False when it is
    done or has failed.
    """
    where.mkdir(parents=True, exist_ok=True)
    with FileLock(where / LOCK):
        try:
            yield not (is_complete(where) or has_failed(where))
        except Exception:
            (where / FAILED).write_text(traceback.format_exc(), encoding="utf-8")
            raise
        if not has_failed(where):
            (where / COMPLETE).touch()


def is_being_compiled(where: Path) -> bool:
    """Return True if a process compiles into this folder now."""
    where.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(where / LOCK, timeout=0):
            return False
    except Timeout:
        return True
