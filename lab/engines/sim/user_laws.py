"""Load congestion controls from users' own Python files.

Such a file must define `on_ack` or `on_round`. If it does not define `on_loss`, the window is
reduced as in Reno. `core.dispatch` documents these functions. They may be marked with
`core.jit.jit`, but need not be.

The compiler reads a law from a copy in the user's cache folder, in a folder named by a digest of
the law. So the user can edit the file while a command makes several runs.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from types import FunctionType, ModuleType

from controller.user_file import described
from lab.engines.sim import compiled
from lab.engines.sim.core import dispatch
from lab.engines.sim.core.jit import jit
from lab.errors import RequestError
from lab.extensions import copy_of

OLD = (
    "(w, f, ...) is the form of version 0.3. Write ({}), and `s.cwnd` for "
    "`w.window[f + at.CWND]`, `s.snd_una` for `w.row[f + at.SND_UNA]`, "
    "`s.law.own_1` for `w.window[f + at.LAW_1]`"
)


def register(path: Path, name: str | None = None, source: bytes | None = None) -> str:
    """Load the congestion control in the file `path` for the runs of this process. Return its name,
    which is `name` or, by default, the file name without `.py`.

    `source` is the content of the file. If it is None, the file is read. Call this before a network
    is built. Raise `RequestError` if the file does not define a congestion control, or if a
    built-in congestion control has the same name.
    """
    name = name or path.stem
    if name in dispatch.BUILT_IN:
        raise RequestError(f"load congestion control {path}: {name!r} is built in. Rename the file")
    compiled.slow_down()  # the file must import functions of the core as written
    law = load(path, name, _content(path) if source is None else source)
    check(path, law)
    compiled.add_law(name, law)
    return name


def load(path: Path, name: str, source: bytes) -> ModuleType:
    """Execute a congestion control (law) as a module. `source` is its Python code, and `path` is
    its file. Mark its functions for the compiler, and return the module.

    Raise `RequestError` if the law raises an exception.
    """
    law = ModuleType(f"user_law_{name}")
    law.__file__ = str(_copied(path, source))
    try:
        exec(compile(source, law.__file__, "exec"), vars(law))  # noqa: S102 - code of the lab or of the user who starts it
    except Exception as error:
        text = described(error, law.__file__).replace(law.__file__, str(path))
        raise RequestError(f"load congestion control {text}") from error
    for value in list(vars(law).values()):
        if isinstance(value, FunctionType) and value.__module__ == law.__name__:
            jit(value)
    sys.modules[law.__name__] = law  # numba looks functions up there
    return law


def _copied(path: Path, source: bytes) -> Path:
    """Copy a law to the user's cache folder, and return the path of the copy. If the copy cannot be
    written, return `path`. Compiled code cannot be written then either, because it would be in the
    same cache folder."""
    copy = copy_of(path, source)
    try:
        if not copy.is_file() or copy.read_bytes() != source:
            copy.parent.mkdir(parents=True, exist_ok=True)
            beside = copy.with_name(f"{copy.name}.{os.getpid()}")
            beside.write_bytes(source)
            beside.replace(copy)
    except OSError:
        return path.resolve()
    return copy


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"load congestion control {path}: {error.strerror}") from error


def check(path: Path, law: ModuleType) -> None:
    """Check the congestion control `law`, which was loaded from the file `path`. Raise
    `RequestError` if it has neither `on_ack` nor `on_round`, or if one of its functions has the
    wrong number of parameters."""
    if not hasattr(law, "on_ack") and not hasattr(law, "on_round"):
        raise RequestError(f"load congestion control {path}: it has no function on_ack")
    for hook, (parameters, _) in dispatch.HOOKS.items():
        function = getattr(law, hook, None)
        if function is None:
            continue
        names = list(inspect.signature(function).parameters)
        if names[:2] == ["w", "f"]:  # as up to version 0.3
            raise RequestError(f"load congestion control {path}: {hook}{OLD.format(parameters)}")
        if len(names) != len(parameters.split(", ")):
            raise RequestError(f"load congestion control {path}: {hook} must take ({parameters})")
