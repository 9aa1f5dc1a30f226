"""Switch the simulator's core between interpreted and compiled code. A run is compiled if the
compiled code exists when the run begins. Otherwise the run is interpreted to its end.

Both kinds of code come from the same source and give the same results to the last bit. The records
of a simulated network are Python objects in interpreted runs, and rows of words in compiled ones
(`memory`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from lab.engines.sim import code_cache, core
from lab.engines.sim.core import dispatch
from lab.engines.sim.core.jit import MARKED
from lab.engines.sim.memory import Objects, Rows

DISPATCH = "dispatch.py"  # the generated source, in the folder of the compiled code

_cache = code_cache.folder() if code_cache.is_wanted() else None  # None: stay interpreted
_written: dict[Callable[..., Any], Callable[..., Any]] = {}  # compiled: as written


def folder() -> Path:
    """Return the folder for compiled code that fits the present sources of the core and of users'
    congestion controls."""
    return code_cache.folder(user_laws())


def user_laws() -> dict[str, Path]:
    """Map the name of each congestion control that a user wrote to its file."""
    return {
        name: Path(str(law.__file__))
        for name, law in dispatch.LAWS.items()
        if name not in dispatch.BUILT_IN
    }


def is_fast() -> bool:
    """Return True if this process runs compiled code."""
    return bool(_written)


def speed_up_if_possible() -> None:
    """Switch this process to compiled code if the cache folder holds the compiled code of the whole
    core.

    If the sources were edited after this process loaded them, the process stays interpreted to its
    end. Otherwise numba would compile the edited sources, and the run would mix two versions.
    """
    global _cache
    if is_fast() or _cache is None or not code_cache.is_complete(_cache):
        return
    if folder() == _cache:
        speed_up(_cache)
    else:
        _cache = None


def speed_up(cache: Path) -> None:
    """Replace each function that is marked with `jit` by a compiled one, in all modules of the
    core.

    A function whose compiled code is not in the folder `cache` is compiled at its first call. The
    result is stored in the folder.
    """
    import numba

    from lab.engines.sim import numba_records  # noqa: F401 - it tells numba of the records

    _define_dispatch(cache / DISPATCH)
    numba.config.CACHE_DIR = str(cache)
    fast = {function: numba.njit(**options(function))(function) for function in MARKED}
    _replace(fast, FunctionType)
    _written.update((compiled, function) for function, compiled in fast.items())


def options(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options with which numba compiles a function of the core or of a user's law."""
    is_core = function.__module__.startswith(core.__name__)
    return code_cache.CORE_OPTIONS if is_core else code_cache.OPTIONS


def slow_down() -> None:
    """Go back to interpreted functions. Networks that were built before keep their rows, which
    interpreted code can use too."""
    _replace(_written, object)
    _written.clear()


def add_law(name: str, law: ModuleType) -> None:
    """Add the congestion control `name`, whose functions are in module `law`. Runs are interpreted
    until the core has been compiled together with this module."""
    global _cache
    slow_down()
    edited = _cache is not None and folder() != _cache
    dispatch.register(name, law)
    _cache = None if _cache is None or edited else folder()


def records() -> Objects:
    """Return what makes the records of a new network, for the code that this process runs."""
    return Rows() if is_fast() else Objects()


def _define_dispatch(path: Path) -> None:
    """Write the generated source of `core.dispatch` to the file `path`, and define the functions
    from this file. Numba caches only functions that come from a file."""
    source = dispatch.source()
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    dispatch.define(str(path))


def _modules() -> Iterator[ModuleType]:
    """Yield the modules whose functions can be compiled: those of the core, and users' congestion
    controls."""
    yield from (each for name, each in list(sys.modules.items()) if name.startswith(core.__name__))
    yield from dispatch.LAWS.values()


def _replace(new: dict[Callable[..., Any], Callable[..., Any]], kind: type) -> None:
    """Replace functions in all modules of the core. `new` maps each old function to the new one.
    Old functions that are not of type `kind` are left alone."""
    for module in _modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, kind) and callable(value) and value in new:
                setattr(module, name, new[value])
