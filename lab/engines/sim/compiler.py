"""Where the simulator's compiled code is kept, and who makes it. Asking does not load the compiler.

Nobody waits for it: the first run begins interpreted while another process compiles, and goes on compiled when that is done.

It is kept on disk in a folder named after all of the engine's sources and where they are, numba, Python and the processor: numba
itself does not notice that another module has changed, and what was compiled elsewhere it does not take.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

from lab.errors import LabError
from lab.run.manifest import ROOT
from lab.scenario import loading as scenario

COMPLETE, FAILED = (
    "complete",
    "failed",
)  # a file in the folder: the compiler has done its work, or why it could not
LOCK = "compiling.lock"
COMMAND = [sys.executable, "-m", __name__]


def version() -> str | None:
    """Numba's version, None without it."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return None


def is_wanted() -> bool:
    """Whether this process may run compiled code: numba is there, an accelerator and not a need, and not switched off."""
    return version() is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def sources_digest(folder: Path, compiler: str) -> str:
    """A name for this very code: every source of the engine, where it is, and the compiler."""
    digest = hashlib.sha256(f"{compiler}\0{folder.resolve()}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def folder() -> Path:
    """Where compiled code is kept: of this user, of these sources."""
    given = os.environ.get("MULTIPATH_LAB_CACHE")
    base = (
        Path(given)
        if given
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multipath-lab"
    )
    return (
        base.absolute() / "sim" / sources_digest(Path(__file__).parent, f"{version()} {_machine()}")
    )


@cache
def _machine() -> str:
    """What compiled code depends on beside its source and the compiler."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
        processor = "\n".join(
            line for line in told if line.startswith(("model name", "flags", "Features"))
        )
    except OSError:
        processor = platform.processor()
    return f"{sys.version_info[:2]} {platform.machine()} {processor}"


def is_there(where: Path) -> bool:
    """Whether all of it is compiled."""
    return (where / COMPLETE).exists()


def is_to_come() -> bool:
    """Whether this process begins interpreted and may go on compiled; if nobody compiles, another process does from now on.

    Raises `LabError` if it cannot be compiled.
    """
    if not is_wanted() or is_there(where := folder()):
        return False
    if (where / FAILED).exists():
        raise LabError(_failed(where))
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    try:
        if not _somebody_compiles(where):
            subprocess.Popen(COMMAND, cwd=ROOT, start_new_session=True, **quiet)  # type: ignore[call-overload]
    except OSError as error:
        raise LabError(f"compile the simulator into {where}: {error.strerror}") from error
    return True


def now(cache: Path | None = None) -> None:
    """Wait until it is compiled, for this user or into another cache; without a compiler there is nothing to wait for."""
    if is_wanted():
        environment = os.environ | ({"MULTIPATH_LAB_CACHE": str(cache)} if cache else {})
        subprocess.run(COMMAND, cwd=ROOT, env=environment, check=True)


@contextmanager
def once(where: Path) -> Iterator[bool]:
    """Around compiling into `where`: whoever comes first (True) does it, the others wait until it is there, or has failed."""
    where.mkdir(parents=True, exist_ok=True)
    with FileLock(where / LOCK):
        try:
            yield not (is_there(where) or (where / FAILED).exists())
        except Exception:
            (where / FAILED).write_text(traceback.format_exc(), encoding="utf-8")
            raise
        if not (where / FAILED).exists():
            (where / COMPLETE).touch()


def _failed(where: Path) -> str:
    return f"compile the simulator: it failed, {where / FAILED} says why. Remove that file to try again"


def _somebody_compiles(where: Path) -> bool:
    where.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(where / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def main() -> None:
    """Compile all that the loop calls."""
    where = folder()
    with once(where) as first:
        if first:
            gc.disable()  # all that the compiler makes lives on, and to look through it takes it a tenth longer
            from lab.engines.sim.core import jit
            from lab.engines.sim.network import Network

            jit.speed_up(where)
            job = scenario.load("testbed_wifi_lte")
            Network(scenario.build(job), job.multipath, [], job.seed).run(1)
    if not is_there(where):
        sys.exit(f"error: {_failed(where)}")


if __name__ == "__main__":
    main()
