"""Switch the core from interpreted to compiled code as soon as compiled code is ready.

Both are made from the same source and give the same results to the last bit. The core works on two
flat tables: lists for the interpreter, which reads them three times faster than arrays, and arrays
for compiled code.
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
    """Return the folder for the compiled code of the sources as they are on disk now, users'
    congestion control laws included."""
    return code_cache.folder(user_laws())


def user_laws() -> dict[str, Path]:
    """Return the file of each congestion control law that is not built in, by
    the name of the law."""
    return {
        name: Path(str(law.__file__))
        for name, law in dispatch.LAWS.items()
        if name not in dispatch.BUILT_IN
    }


def is_fast() -> bool:
    """Return True if this process runs compiled code."""
    return bool(_written)


def speed_up_if_possible() -> None:
    """Switch to compiled code if all of it is in the cache and this process still runs interpreted.

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
    """Replace the marked functions in all modules of the core by compiled ones, and keep compiled
    code in the folder `cache`.

    What is not in the cache is compiled when it is first called.
    """
    import numba

    _define_dispatch(cache / DISPATCH)
    numba.config.CACHE_DIR = str(cache)
    compiler = numba.njit(**code_cache.OPTIONS)
    fast = {function: compiler(function) for function in MARKED}
    _replace(fast, FunctionType)
    _written.update((compiled, function) for function, compiled in fast.items())


def slow_down() -> None:
    """Replace compiled functions by interpreted ones. Tables that compiled code has used stay numpy
    arrays, which interpreted code can use too."""
    _replace(_written, object)
    _written.clear()


def add_law(name: str, law: ModuleType) -> None:
    """Add a congestion control law. This process runs interpreted until there is compiled code that
    includes the law."""
    global _cache
    slow_down()
    edited = _cache is not None and folder() != _cache
    dispatch.register(name, law)
    _cache = None if _cache is None or edited else folder()


def ints(values: Ints) -> Ints:
    """Return these integers as an array if this process runs compiled code, else unchanged."""
    return cast(Ints, _array(values, "int64")) if is_fast() else values


def floats(values: Floats) -> Floats:
    """Return these floating-point numbers as an array if this process runs compiled code, else
    unchanged."""
    return cast(Floats, _array(values, "float64")) if is_fast() else values


def _define_dispatch(path: Path) -> None:
    """Write the source of the functions in `dispatch` to `path`, and define them from this file.
    Numba's cache needs a source file."""
    source = dispatch.source()
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    dispatch.define(str(path))


def _modules() -> Iterator[ModuleType]:
    """Yield the modules that hold functions of the core: its own modules, and users' congestion
    control laws."""
    yield from (each for name, each in list(sys.modules.items()) if name.startswith(core.__name__))
    yield from dispatch.LAWS.values()


def _replace(new: dict[Callable[..., Any], Callable[..., Any]], kind: type) -> None:
    """Replace each function that is a key of `new` by its value, in all modules of the core. Only
    values of type `kind` are replaced."""
    for module in _modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, kind) and callable(value) and value in new:
                setattr(module, name, new[value])


def _array(values: Any, kind: str) -> Any:
    import numpy

    return numpy.asarray(values, dtype=kind)
