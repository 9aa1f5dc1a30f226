"""Compiled when numba is there, interpreted when it is not: the same source, the same bytes.

`jit` is numba's compiler or the identity. What the packets' code works on is flat: arrays for the compiler, lists for
the interpreter, which reads those three times faster. Compiled code is kept on disk in a folder named after all of
the engine's sources and numba's version: numba itself does not notice that another module has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from filelock import FileLock

try:
    import numba
except ImportError:  # an accelerator, not a need
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # or an int64 array, which is used alike
Floats = list[float]  # or a float64 array
COMPILED = numba is not None and not numba.config.DISABLE_JIT


def sources_digest(folder: Path, version: str) -> str:
    """A name for this very code: every source of the engine, and the compiler."""
    digest = hashlib.sha256(version.encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled code is kept: of this user, of these sources."""
    given = os.environ.get("MULTIPATH_LAB_CACHE")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multipath-lab"
    return base.absolute() / "sim" / sources_digest(Path(__file__).parent, numba.__version__)


COMPLETE = "complete"  # a file in the cache: the compiler has done its work
FIRST_TIME = False  # it has not, when this process starts
if COMPILED:
    import numpy

    FIRST_TIME = not (cache_folder() / COMPLETE).exists()
    numba.config.CACHE_DIR = str(cache_folder())
    _compile = numba.njit(cache=True, no_cfunc_wrapper=True)  # nobody calls it from C


def jit(function: Function) -> Function:
    """The function, compiled if that is possible."""
    compiled: Function = _compile(function) if COMPILED else function
    return compiled


@contextmanager
def compiled_once(folder: Path) -> Iterator[None]:
    """Around a call that may compile: whoever comes first does it, the others wait and find what it left in `folder`."""
    complete = folder / COMPLETE
    if complete.exists():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "compiling.lock"):
        yield
        complete.touch()


def ints(count: int) -> Ints:
    """So many integers, all 0."""
    zeros: Any = numpy.zeros(count, dtype=numpy.int64) if COMPILED else [0] * count
    return cast(Ints, zeros)


def floats(count: int) -> Floats:
    """So many floating-point numbers, all 0."""
    zeros: Any = numpy.zeros(count, dtype=numpy.float64) if COMPILED else [0.0] * count
    return cast(Floats, zeros)


def longer(values: Ints, count: int) -> Ints:
    """The same integers with room for `count`."""
    grown = ints(count)
    grown[: len(values)] = values
    return grown
