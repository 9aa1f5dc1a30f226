"""Run the core compiled if compiled code is ready when a run begins, else interpreted to its end.

Interpreted and compiled code come from the same source and give the same results to the last bit.
The core works on two flat tables of numbers. The interpreter uses lists, which it reads three times
faster than arrays; compiled code uses numpy arrays.
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
_written: dict[Callable[..., Any], Callable[..., Any]] = {}  # of each compiled function


def folder() -> Path:
    """Return the cache folder for the compiled code of the core and of users' congestion control
    laws, as their sources are on disk now."""
    return code_cache.folder(user_laws())


def user_laws() -> dict[str, Path]:
    """Return a mapping from the name of each congestion control law that is not built in to the
    file of the law."""
    return {
        name: Path(str(law.__file__))
        for name, law in dispatch.LAWS.items()
        if name not in dispatch.BUILT_IN
    }


def is_fast() -> bool:
    """Return True if this process runs compiled code."""
    return bool(_written)


def speed_up_if_possible() -> None:
    """Switch this process to compiled code if it still runs interpreted and the cache has all
    compiled code.

    If somebody has edited the sources since this process loaded them, it stays interpreted to its
    end: numba would compile the sources on disk, and the run would be a mixture of two versions.
    """
    global _cache
    if is_fast() or _cache is None or not code_cache.is_complete(_cache):
        return
    if folder() == _cache:
        speed_up(_cache)
    else:
        _cache = None


def speed_up(cache: Path) -> None:
    """Replace each function of the core that is marked with `jit` by a compiled function, in all
    modules. Compiled code is kept in the folder `cache`.

    A function that is not in this folder yet is compiled at its first call.
    """
    import numba

    _define_dispatch(cache / DISPATCH)
    numba.config.CACHE_DIR = str(cache)
    compiler = numba.njit(**code_cache.OPTIONS)
    fast = {function: compiler(function) for function in MARKED}
    _replace(fast, FunctionType)
    _written.update((compiled, function) for function, compiled in fast.items())


def slow_down() -> None:
    """Replace compiled functions by the interpreted ones from which they were made. Tables that are
    numpy arrays remain numpy arrays; interpreted code can use them too."""
    _replace(_written, object)
    _written.clear()


def add_law(name: str, law: ModuleType) -> None:
    """Add the module `law` as the congestion control law `name`. Then run interpreted until the
    compiled code of the core with this law is ready."""
    global _cache
    slow_down()
    edited = _cache is not None and folder() != _cache
    dispatch.register(name, law)
    _cache = None if _cache is None or edited else folder()


def ints(values: Ints) -> Ints:
    """Return `values` as a numpy array of int64 if this process runs compiled code, else
    unchanged."""
    return cast(Ints, _array(values, "int64")) if is_fast() else values


def floats(values: Floats) -> Floats:
    """Return `values` as a numpy array of float64 if this process runs compiled code, else
    unchanged."""
    return cast(Floats, _array(values, "float64")) if is_fast() else values


def _define_dispatch(path: Path) -> None:
    """Write the generated source of `core.dispatch` to the file `path`, and define its functions
    from this file. Numba can cache only functions that come from a file."""
    source = dispatch.source()
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    dispatch.define(str(path))


def _modules() -> Iterator[ModuleType]:
    """Yield the modules in which functions are replaced: those of the core, and users' congestion
    control laws."""
    yield from (each for name, each in list(sys.modules.items()) if name.startswith(core.__name__))
    yield from dispatch.LAWS.values()


def _replace(new: dict[Callable[..., Any], Callable[..., Any]], kind: type) -> None:
    """Replace each function that is a key of `new` by its value in `new`, in all modules of the
    core. `kind` is the type of the functions to replace."""
    for module in _modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, kind) and callable(value) and value in new:
                setattr(module, name, new[value])


def _array(values: Any, kind: str) -> Any:
    import numpy

    return numpy.asarray(values, dtype=kind)
