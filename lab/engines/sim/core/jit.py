"""Interpreted at first, compiled as soon as the compiler is done with it (`compiled`): the same source, the same bytes.

What the packets' code works on is flat: lists for the interpreter, which reads those three times faster than arrays, and
arrays for compiled code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from lab.engines.sim import compiler as compiled

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # or an int64 array, which is used alike
Floats = list[float]  # or a float64 array

_marked: set[Callable[..., Any]] = set()  # what is for the compiler, as it was written
_kept_in = compiled.folder() if compiled.is_wanted() else None  # None: it stays interpreted
_is_fast = False


def jit(function: Function) -> Function:
    """The function, which `speed_up` is to replace."""
    _marked.add(function)
    return function


def speed_up(kept_in: Path) -> None:
    """From now on every module of the engine calls compiled functions; what was not compiled before is when it is first called."""
    global _is_fast
    import numba

    numba.config.CACHE_DIR = str(kept_in)
    compiler = numba.njit(cache=True, no_cfunc_wrapper=True)  # nobody calls it from C
    fast = {function: compiler(function) for function in _marked}
    for module in [each for name, each in sys.modules.items() if name.startswith(__package__)]:
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and value in fast:
                setattr(module, name, fast[value])
    _is_fast = True


def speed_up_if_possible() -> None:
    """Do so if the compiler is done, and nobody has edited the sources since: this process would compile what it still runs as
    what they are now."""
    global _kept_in
    if _is_fast or _kept_in is None or not compiled.is_there(_kept_in):
        return
    if compiled.folder() == _kept_in:
        speed_up(_kept_in)
    else:
        _kept_in = None


def is_fast() -> bool:
    """Whether the functions of this process are compiled."""
    return _is_fast


def ints(values: Ints) -> Ints:
    """The same integers, as the code that runs now reads them."""
    return cast(Ints, _array(values, "int64")) if _is_fast else values


def floats(values: Floats) -> Floats:
    """The same floating-point numbers, as the code that runs now reads them."""
    return cast(Floats, _array(values, "float64")) if _is_fast else values


def _array(values: Any, kind: str) -> Any:
    import numpy

    return numpy.asarray(values, dtype=kind)
