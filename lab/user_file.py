"""Check and import files that a user wrote; report every error as `RequestError`."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path
from types import ModuleType
from typing import Literal

from controller import user_file
from controller.errors import UserFileRefused
from controller.user_file import described
from lab import plain_file
from lab.errors import RequestError
from lab.vm_environment import IN_VM

Kind = Literal["strategy", "topology", "cc", "metric", "scenario"]
PYTHON, C, YAML = ".py", ".c", ".yaml"


MOST_BYTES = 2**20  # of a file


def content(path: Path) -> bytes:
    """Return the content of a user's file. Raise `RequestError` if it is a device or a pipe, too
    large, or not readable. Nothing is read of a device."""
    try:
        found = plain_file.read(path, most_bytes=MOST_BYTES + 1, follow=True)
    except OSError as error:
        raise plain_file.failure(path, error) from error
    if len(found) > MOST_BYTES:
        raise RequestError(f"read {path}: it is larger than {MOST_BYTES >> 20} MiB")
    return found


def defined_in(path: Path) -> Kind | None:
    """Return the kind of thing that a file defines, without running the file.

    Return None if the lab cannot use the file. Raise `RequestError` if a Python file cannot be read
    or parsed.
    """
    if path.suffix in (C, YAML):
        return "cc" if path.suffix == C else "scenario"
    if path.suffix != PYTHON:
        return None
    try:
        module = ast.parse(content(path), str(path))
    except (SyntaxError, ValueError) as error:
        raise RequestError(f"import {described(error, str(path))}") from error
    classes = [each for each in module.body if isinstance(each, ast.ClassDef)]
    functions = {each.name for each in module.body if isinstance(each, ast.FunctionDef)}
    if any(_is_strategy(each) for each in classes):
        return "strategy"
    if "build" in functions and "Params" in {each.name for each in classes}:
        return "topology"
    if functions & {"on_ack", "on_round"}:
        return "cc"
    return "metric" if any(_is_metric(each) for each in module.body) else None


def _is_metric(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(each, ast.Name) and each.id == "METRIC" for each in targets)


def _is_strategy(definition: ast.ClassDef) -> bool:
    """Return whether a class can be a strategy.

    It can if a base class is called `Strategy`, or if it has any base class and a method `decide`.
    """
    bases = {ast.unparse(base).rpartition(".")[2] for base in definition.bases}
    methods = {each.name for each in definition.body if isinstance(each, ast.FunctionDef)}
    return "Strategy" in bases or bool(bases and "decide" in methods)


def import_file(path: Path, source: bytes | None = None) -> ModuleType:
    """Import a Python file and return its module.

    If `source` is given, it is run instead of what the file contains now.

    Raise `RequestError` if the file must not be run (`check_file`) or fails. The message names the
    file and the line that failed.
    """
    check_file(path)
    try:
        return user_file.import_file(str(path), source)
    except UserFileRefused as error:
        raise RequestError(str(error)) from error


def check_file(path: Path) -> None:
    """Raise `RequestError` if `path` is no Python file, or if `check_rights` refuses it."""
    if path.suffix != ".py":
        raise RequestError(f"import {path}: a Python file ends in .py")
    if not path.is_file():
        raise RequestError(f"import {path}: there is no such file")
    check_rights(path)


def check_rights(path: Path) -> None:
    """Raise `RequestError` if this process runs as root and another user can change the file.

    The file and its folder must belong to root or to the user who called `sudo`, and only the owner
    may have write access. The check is skipped inside the virtual machine, which is discarded after
    a run.
    """
    if os.geteuid() != 0 or os.environ.get(IN_VM):
        return
    folder = path.resolve().parent
    for each, what in ((path, "a file"), (folder, f"a file in a folder, {folder},")):
        status = each.stat()
        if status.st_uid not in (0, int(os.environ.get("SUDO_UID", "0"))):
            raise RequestError(
                f"import {path}: root does not run {what} of another user. "
                f"Try: sudo chown root {each}"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RequestError(
                f"import {path}: root does not run {what} that others may write. "
                f"Try: chmod go-w {each}"
            )
