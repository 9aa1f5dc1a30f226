"""Import a Python file that a user wrote: a strategy or a topology from outside the project.

The file runs with the rights of this process. Its path must therefore come from the command line,
or from a scenario file named on the command line, and never from an HTTP request.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from controller.errors import UserFileRefused

PREFIX = "user_file_"  # so that the module hides no module of Python or the project


def import_file(path: str, source: bytes | None = None, name: str = "") -> ModuleType:
    """Run a Python file and return its module; each call runs the file anew.

    If `source` is given, it is run instead of what the file contains now. The module is called
    `name`, or else like the file, whose name must then fit. No compiled copy is written next to the
    file. Raise `UserFileRefused` if the file cannot be run; the message names the file and the line
    that failed.
    """
    own = name or stem(path)
    name = PREFIX + own
    loader = SourceFileLoader(name, path)
    spec = spec_from_file_location(name, path, loader=loader)
    if spec is None or not own.isidentifier():
        raise UserFileRefused(
            f"import {path}: the name must be letters, digits and '_', such as my_network.py"
        )
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # pydantic looks up the types of a class by its module
    try:
        text = loader.get_data(path) if source is None else source
        lines = text.decode(errors="replace").splitlines(keepends=True)
        linecache.cache[path] = (len(text), None, lines, path)  # for tracebacks, if it is edited
        exec(loader.source_to_code(text, path), module.__dict__)  # noqa: S102 - code of the lab or of the user who starts it
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise UserFileRefused(f"import {described(error, path)}") from error
    return module


def stem(path: str) -> str:
    """Return the name of a file without folder and `.py`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".py")


def described(error: BaseException, path: str, line: int | None = None) -> str:
    """Format an error with its place in the file `path`: "my.py, line 3: NameError: ...".

    `line` is the line to show if the traceback has no line of this file.
    """
    line = line_of(error, path) or line
    text = str(error.msg if isinstance(error, SyntaxError) else error).strip().partition("\n")[0]
    where = f"{path}, line {line}" if line else path
    return f"{where}: {type(error).__name__}: {text or 'no message'}"


def line_of(error: BaseException, path: str) -> int | None:
    """Return the innermost line of the file `path` in the traceback of an error.

    For a syntax error in this file, return the line of the syntax error. Return None if there is no
    such line.
    """
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((each.lineno for each in reversed(frames) if each.filename == path), None)
