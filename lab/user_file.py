"""Check and import a Python file that a user wrote; report every error as `RequestError`."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import ModuleType

from controller import user_file
from controller.errors import UserFileRefused
from lab.errors import RequestError

IN_VM = "MULTIPATH_LAB_VM"  # set inside the virtual machine


def import_file(path: Path) -> ModuleType:
    """Import a Python file and return its module.

    Raise `RequestError` if the file must not be run or fails. The message names the file, and the
    line in it that failed.
    """
    check_file(path)
    try:
        return user_file.import_file(str(path))
    except UserFileRefused as error:
        raise RequestError(str(error)) from error


def check_file(path: Path) -> None:
    """Raise `RequestError` if `path` is no Python file, or if root must not run it.

    Root runs only files that no other user can change, as `check_rights` describes.
    """
    if path.suffix != ".py":
        raise RequestError(f"import {path}: a Python file ends in .py")
    if not path.is_file():
        raise RequestError(f"import {path}: there is no such file")
    check_rights(path)


def check_rights(path: Path) -> None:
    """Raise `RequestError` if this process runs as root and another user can change the file.

    The file and its folder must belong to root or to the user who called `sudo`, and only their
    owner may write to them. The check is skipped inside the virtual machine, which is discarded
    after a run.
    """
    if os.geteuid() != 0 or os.environ.get(IN_VM):
        return
    for each, noun in ((path, "file"), (path.resolve().parent, "folder")):
        status = each.stat()
        what = "a file" if noun == "file" else f"a file in a folder, {each},"
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
