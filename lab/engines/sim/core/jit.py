"""The decorator that marks functions of the core for the compiler, and the types of the core's two
tables.

The core imports nothing outside of this folder. `lab.engines.sim.compiled` compiles the marked
functions, and puts the compiled functions into the modules of the core. It also defines the
functions of `dispatch` again, so call them as `dispatch.function`: an imported name would still
refer to the old, interpreted function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # interpreted; compiled code works on an int64 array, which is used alike
Floats = list[float]  # interpreted; compiled code works on a float64 array

MARKED: set[Callable[..., Any]] = set()  # functions as written, not compiled


def jit(function: Function) -> Function:
    """Mark a function for the compiler, and return the function unchanged."""
    MARKED.add(function)
    return function
