"""Switch the simulator's core between interpreted and compiled code. A run is compiled if the
compiled code exists when the run begins. Otherwise the run is interpreted to its end.

Both kinds of code come from the same source and give the same results to the last bit. The state of
a simulated network is in two tables of numbers. In interpreted runs they are lists, which Python
reads three times faster than arrays. In compiled runs they are numpy arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from lab.engines.sim import code_cache, core
from lab.engines.sim.core import dispatch
from lab.engines.sim.core.jit import MARKED, Floats, Ints

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
    """Go back to interpreted functions. Tables that are numpy arrays stay numpy arrays; interpreted
    code can use them too."""
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


def ints(values: Ints) -> Ints:
    """Return `values` as a numpy array of int64 if this process runs compiled code. Otherwise
    return `values` unchanged."""
    return cast(Ints, _array(values, "int64")) if is_fast() else values


def floats(values: Floats) -> Floats:
    """Return `values` as a numpy array of float64 if this process runs compiled code. Otherwise
    return `values` unchanged."""
    return cast(Floats, _array(values, "float64")) if is_fast() else values


def int_zeros(count: int) -> Ints:
    """Return `count` zeros as `ints` would. A numpy array uses no memory before it is written."""
    return cast(Ints, _zeros(count, "int64")) if is_fast() else [0] * count


def float_zeros(count: int) -> Floats:
    """Return `count` zeros as `floats` would."""
    return cast(Floats, _zeros(count, "float64")) if is_fast() else [0.0] * count


def _zeros(count: int, kind: str) -> Any:
    import numpy

    return numpy.zeros(count, dtype=kind)


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


def _array(values: Any, kind: str) -> Any:
    import numpy

    return numpy.asarray(values, dtype=kind)
