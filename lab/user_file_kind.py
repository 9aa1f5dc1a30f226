"""Determine what a user's file defines by reading the file, without running it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

from controller.user_file import described
from lab.errors import RequestError

Kind = Literal["strategy", "topology", "cc", "scenario"]
PYTHON, C, YAML = ".py", ".c", ".yaml"


def defined_in(path: Path) -> Kind | None:
    """Return what a file defines: "strategy", "topology", "cc" (congestion control) or "scenario".

    Return None if the file defines nothing that the lab can use. Raise `RequestError` if a Python
    file cannot be read or parsed.
    """
    if path.suffix in (C, YAML):
        return "cc" if path.suffix == C else "scenario"
    if path.suffix != PYTHON:
        return None
    try:
        module = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise RequestError(f"import {described(error, str(path))}") from error
    classes = [each for each in module.body if isinstance(each, ast.ClassDef)]
    functions = {each.name for each in module.body if isinstance(each, ast.FunctionDef)}
    if any(_is_strategy(each) for each in classes):
        return "strategy"
    if "build" in functions and "Params" in {each.name for each in classes}:
        return "topology"
    return "cc" if functions & {"on_ack", "on_round"} else None


def _is_strategy(definition: ast.ClassDef) -> bool:
    """Return whether a class definition defines a strategy.

    It does if a base class is called `Strategy`, or if it has any base class and a method `decide`.
    """
    bases = {ast.unparse(base).rpartition(".")[2] for base in definition.bases}
    methods = {each.name for each in definition.body if isinstance(each, ast.FunctionDef)}
    return "Strategy" in bases or bool(bases and "decide" in methods)
