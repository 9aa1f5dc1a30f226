"""Where the simulator's compiled code is kept, and who waits for it. Asking does not load the compiler.

It is kept on disk in a folder named after all of the engine's sources and numba's version: numba itself does not notice that
another module has changed.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

from lab import scenario
from lab.manifest import ROOT

COMPLETE = "complete"  # a file in the folder: the compiler has done its work
LOCK = "compiling.lock"


def version() -> str | None:
    """Numba's version, None without it."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return None


def sources_digest(folder: Path, compiler: str) -> str:
    """A name for this very code: every source of the engine, and the compiler."""
    digest = hashlib.sha256(compiler.encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def folder() -> Path:
    """Where compiled code is kept: of this user, of these sources."""
    given = os.environ.get("MULTIPATH_LAB_CACHE")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multipath-lab"
    return base.absolute() / "sim" / sources_digest(Path(__file__).parent, version() or "")


def is_there() -> bool:
    """Whether nobody has to wait for the compiler."""
    return (folder() / COMPLETE).exists()


@contextmanager
def once(where: Path) -> Iterator[bool]:
    """Around a call that may compile: whoever comes first (True) does it, the others wait and find what it left in `where`."""
    complete = where / COMPLETE
    if complete.exists():
        yield False
        return
    where.mkdir(parents=True, exist_ok=True)
    with FileLock(where / LOCK), without_garbage():
        yield not complete.exists()
        complete.touch()


@contextmanager
def without_garbage() -> Iterator[None]:
    """Nobody looks for garbage: all that the compiler makes lives on, and to look through it takes it a tenth longer."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def without_waiting() -> dict[str, str]:
    """What to add to the environment of a run that somebody watches: until the compiler is done, it is interpreted.

    The compiler works in the background meanwhile, for later runs.
    """
    if version() is None or is_there():
        return {}
    if not _somebody_compiles():
        _compile_in_the_background()
    return {"NUMBA_DISABLE_JIT": "1"}


def _somebody_compiles() -> bool:
    folder().mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder() / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def _compile_in_the_background() -> None:
    subprocess.Popen(
        [sys.executable, "-m", "lab.engines.sim.compiled"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    """Compile, politely."""
    os.nice(10)
    from lab.engines.sim.network import Network  # loads the compiler

    job = scenario.load("testbed_wifi_lte")
    Network(scenario.build(job), job.multipath, [], job.seed).run(1)


if __name__ == "__main__":
    main()
