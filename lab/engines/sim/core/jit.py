"""Two marks for the compiler: `jit` for a function of the core, `record` for a kind of its records.

The core imports nothing outside of this folder. `lab.engines.sim.compiled` compiles the marked
functions, and puts the compiled functions into the modules of the core. It also defines the
functions of `dispatch` again, so call them as `dispatch.function`: an imported name would still
refer to the old, interpreted function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Record = TypeVar("Record")

MARKED: set[Callable[..., Any]] = set()  # functions as written, not compiled
RECORDS: dict[str, type] = {}  # by name; the order of its fields is the order in memory


def jit(function: Function) -> Function:
    """Mark a function for the compiler, and return the function unchanged."""
    MARKED.add(function)
    return function


def record(kind: type[Record]) -> type[Record]:
    """Make a class of entities from a class with annotations only.

    A field is an `int`, a `float`, another record, or a list of one of these. Interpreted, a record
    is a Python object with slots. Compiled, it is a row of eight-byte words (`lab.engines.sim.
    memory`). Numbers are 0 at first; another record or a list must be given before it is used.
    """
    for name, of in kind.__annotations__.items():
        setattr(kind, name, {"int": 0, "float": 0.0}.get(of))
    RECORDS[kind.__name__] = made = dataclass(slots=True, eq=False, repr=False)(kind)
    return made
