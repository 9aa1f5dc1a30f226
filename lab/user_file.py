"""Check and import a Python file that a user wrote; report an error as a wrong request."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import ModuleType

from controller import user_file
from controller.errors import UserFileRefused
from lab.errors import RequestError


def import_file(path: Path) -> ModuleType:
    """Return the module of a file.

    Raise `RequestError` naming the file, and the line if one failed.
    """
    check_file(path)
    try:
        return user_file.import_file(str(path))
    except UserFileRefused as error:
        raise RequestError(str(error)) from error


def check_file(path: Path) -> None:
    """Raise `RequestError` if a file cannot be imported, or if root must not run it.

    A process of root runs only files that nobody else can change: the owner is root or the user of
    `sudo`, and only the owner may write.
    """
    if path.suffix != ".py":
        raise RequestError(f"import {path}: a Python file ends in .py")
    if not path.is_file():
        raise RequestError(f"import {path}: there is no such file")
    if os.geteuid() != 0:
        return
    status = path.stat()
    if status.st_uid not in (0, int(os.environ.get("SUDO_UID", "0"))):
        raise RequestError(
            f"import {path}: root does not run a file of another user. Try: sudo chown root {path}"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RequestError(
            f"import {path}: root does not run a file that others may write. Try: chmod go-w {path}"
        )
