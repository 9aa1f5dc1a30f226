"""Load congestion controls from users' own Python files.

Such a file must define `on_ack` or `on_round`. If it does not define `on_loss`, the window is
reduced as in Reno. `core.dispatch` documents these functions. They may be marked with
`core.jit.jit`, but need not be.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType

from controller.user_file import described
from lab.engines.sim import compiled
from lab.engines.sim.core import dispatch
from lab.engines.sim.core.jit import jit
from lab.errors import RequestError


def register(path: Path, name: str | None = None) -> str:
    """Load the congestion control in the file `path` for the runs of this process. Return its name,
    which is `name` or, by default, the file name without `.py`.

    Call this before a network is built. Raise `RequestError` if the file does not define a
    congestion control, or if a built-in one has this name.
    """
    name = name or path.stem
    if name in dispatch.BUILT_IN:
        raise RequestError(f"load congestion control {path}: {name!r} is built in. Rename the file")
    compiled.slow_down()  # the file must import functions of the core as written
    law = load(path, name)
    check(path, law)
    compiled.add_law(name, law)
    return name


def load(path: Path, name: str) -> ModuleType:
    """Run the file as a module, mark its functions for the compiler, and return the module.

    Raise `RequestError` if the file cannot be read, or if running it raises an exception.
    """
    law = ModuleType(f"user_law_{name}")
    law.__file__ = str(path.resolve())
    try:
        exec(compile(path.read_text(encoding="utf-8"), law.__file__, "exec"), vars(law))  # noqa: S102 - code of the lab or of the user who starts it
    except OSError as error:
        raise RequestError(f"load congestion control {path}: {error.strerror}") from error
    except Exception as error:
        text = described(error, law.__file__)
        raise RequestError(f"load congestion control {text}") from error
    for value in list(vars(law).values()):
        if isinstance(value, FunctionType) and value.__module__ == law.__name__:
            jit(value)
    sys.modules[law.__name__] = law  # numba looks functions up there
    return law


def check(path: Path, law: ModuleType) -> None:
    """Check the congestion control `law`, which was loaded from the file `path`. Raise
    `RequestError` if it has neither `on_ack` nor `on_round`, or if one of its functions has the
    wrong number of parameters."""
    if not hasattr(law, "on_ack") and not hasattr(law, "on_round"):
        raise RequestError(f"load congestion control {path}: it has no function on_ack")
    for hook, (parameters, _) in dispatch.HOOKS.items():
        function = getattr(law, hook, None)
        if function is not None and len(inspect.signature(function).parameters) != len(
            parameters.split(", ")
        ):
            raise RequestError(f"load congestion control {path}: {hook} must take ({parameters})")
