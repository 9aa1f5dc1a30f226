"""Import a Python file that a user wrote: a strategy or a topology outside the project.

The file runs with the rights of the process. Whoever calls `import_file` has made sure that the
path comes from the command line or from a scenario file named there, and never from HTTP.
"""

from __future__ import annotations

import sys
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from controller.errors import UserFileRefused

PREFIX = "user_file_"  # of the module's name, so that it cannot hide a module of Python or of ours


def import_file(path: str) -> ModuleType:
    """Run a Python file and return its module.

    Raise `UserFileRefused` naming the file and the line that failed.

    A second call runs the file once more. No compiled copy is written beside the file.
    """
    name = PREFIX + stem(path)
    loader = SourceFileLoader(name, path)
    spec = spec_from_file_location(name, path, loader=loader)
    if spec is None or not stem(path).isidentifier():
        raise UserFileRefused(
            f"import {path}: the name must be letters, digits and '_', such as my_network.py"
        )
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # pydantic looks up the types of a class by its module
    try:
        exec(loader.source_to_code(loader.get_data(path), path), module.__dict__)
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise UserFileRefused(f"import {described(error, path)}") from error
    return module


def stem(path: str) -> str:
    """Return a file's name without folder and ending; it names what the file defines."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".py")


def described(error: BaseException, path: str, line: int | None = None) -> str:
    """Return the place of an error in this file and its message: "my.py, line 3: NameError: ...".

    `line` counts where no line of the file is known.
    """
    line = line_of(error, path) or line
    text = str(error.msg if isinstance(error, SyntaxError) else error).strip().partition("\n")[0]
    where = f"{path}, line {line}" if line else path
    return f"{where}: {type(error).__name__}: {text or 'no message'}"


def line_of(error: BaseException, path: str) -> int | None:
    """Return the line of this file that ran last or cannot be parsed, None if there is none."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((each.lineno for each in reversed(frames) if each.filename == path), None)
