"""Mark the functions of the core that are to be compiled, and name the types of the core's two
tables of numbers.

The core imports nothing outside of this folder. `lab.engines.sim.compiled` compiles the marked
functions and replaces them in their modules. Therefore a marked function calls a function of
another module as `module.function`, never under an imported name that would stay interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # interpreted; compiled code works on an int64 array, which is used alike
Floats = list[float]  # interpreted; compiled code works on a float64 array

MARKED: set[Callable[..., Any]] = set()  # as they were written


def jit(function: Function) -> Function:
    """Mark a function for the compiler by adding it to `MARKED`, and return the function
    unchanged."""
    MARKED.add(function)
    return function
