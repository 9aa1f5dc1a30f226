"""Compiled when numba is there, interpreted when it is not: the same source, the same bytes.

`jit` is numba's compiler or the identity. What the packets' code works on is flat: arrays for the compiler, lists for
the interpreter, which reads those three times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from lab.engines.sim import compiled

try:
    import numba
except ImportError:  # an accelerator, not a need
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # or an int64 array, which is used alike
Floats = list[float]  # or a float64 array
COMPILED = numba is not None and not numba.config.DISABLE_JIT


FIRST_TIME = False  # the compiler has not done its work when this process starts
if COMPILED:
    import numpy

    FIRST_TIME = not compiled.is_there()
    numba.config.CACHE_DIR = str(compiled.folder())
    _compile = numba.njit(cache=True, no_cfunc_wrapper=True)  # nobody calls it from C


def jit(function: Function) -> Function:
    """The function, compiled if that is possible."""
    fast: Function = _compile(function) if COMPILED else function
    return fast


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
