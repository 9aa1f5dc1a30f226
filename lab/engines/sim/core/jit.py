"""The mark for functions of the core that are to be compiled, and the types of the core's two
tables.

The core imports nothing outside of this folder. `lab.engines.sim.compiled` compiles the marked
functions and replaces them in their modules. A marked function must therefore call a function of
another module as `module.function`: a name imported from the module would stay interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Ints = list[int]  # interpreted; compiled code works on an int64 array, which is used alike
Floats = list[float]  # interpreted; compiled code works on a float64 array

MARKED: set[Callable[..., Any]] = set()  # functions as written, not compiled


def jit(function: Function) -> Function:
    """Mark a function for the compiler. The function is returned unchanged."""
    MARKED.add(function)
    return function
