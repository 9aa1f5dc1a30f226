"""Load a strategy from a Python file that a user wrote.

The file defines exactly one class derived from `controller.strategies.base.Strategy`. The strategy
has the name of the file: my_strategy.py defines `my_strategy`.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from controller.errors import ParamsRefused, UserFileRefused
from controller.strategies import BUILT_IN, STRATEGIES, Strategy
from controller.strategies.failures import source_file
from controller.strategies.forms import named_forms
from controller.strategy_names import base_name
from controller.user_file import import_file, stem


def register(path: str, source: bytes | None = None) -> str:
    """Load the strategy in a Python file, add it to `STRATEGIES`, and return its name.

    If the strategy has an improved form (other defaults of some parameters), this form is added
    too. A file that is registered again is loaded again. Raise `UserFileRefused` as `load` does.
    Also raise it if another file with this name is already registered, or if the improved form is
    not valid.
    """
    before = STRATEGIES.get(stem(path))
    if before is not None and stem(path) not in BUILT_IN and source_file(before) != path:
        raise UserFileRefused(f"import {path}: {source_file(before)} has this name too, rename one")
    strategy = load(path, source)
    try:
        forms = named_forms(strategy)
    except ParamsRefused as error:
        raise _refused(path, strategy, str(error)) from error
    forget(strategy.name)
    STRATEGIES.update(forms)
    return strategy.name


def forget(name: str) -> None:
    """Remove a strategy and its forms from `STRATEGIES`."""
    for old in [each for each in STRATEGIES if base_name(each) == name]:
        del STRATEGIES[old]


def load(path: str, source: bytes | None = None) -> type[Strategy]:
    """Import a Python file and return the strategy class that it defines.

    If `source` is given, it is imported instead of what the file contains now.

    Raise `UserFileRefused` in these cases: the file cannot be imported, it does not define exactly
    one strategy, the class lacks a method, the class's `name` is not the file's name, or a built-in
    strategy has this name. The message names the file, and the line if one is known.
    """
    if stem(path) in BUILT_IN:
        text = "a built-in strategy has this name, rename the file"
        raise UserFileRefused(f"import {path}: {text}")
    module = import_file(path, source)
    found: list[Any] = [each for each in vars(module).values() if _is_defined_in(module, each)]
    if not found:
        raise UserFileRefused(f"import {path}, line 1: it defines no class derived from Strategy")
    if len(found) > 1:
        names = " and ".join(each.__name__ for each in found)
        raise _refused(path, found[1], f"one strategy is needed in a file, here are {names}")
    _complete(found[0], path)
    strategy: type[Strategy] = found[0]
    return strategy


def _is_defined_in(module: ModuleType, value: object) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == module.__name__
    )


def _complete(strategy: type[Strategy], path: str) -> None:
    missing = sorted(strategy.__abstractmethods__)
    if missing:
        text = f"class {strategy.__name__} has no method {' and no '.join(missing)}"
        raise _refused(path, strategy, text)
    if vars(strategy).get("name", stem(path)) != stem(path):
        text = f"the strategy has the name of its file: write name = '{stem(path)}'"
        raise _refused(path, strategy, text)
    strategy.name = stem(path)


def _refused(path: str, strategy: type[Strategy], text: str) -> UserFileRefused:
    return UserFileRefused(f"import {path}, line {inspect.getsourcelines(strategy)[1]}: {text}")
