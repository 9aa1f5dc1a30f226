"""The errors that a user can see. Each class sets the `exit_code` of the command line.

LabError                  4  the run failed
├── RequestError          2  the request makes no sense (file, key, value)
├── MachineLacks          3  this machine lacks something; the message ends with what to type
└── CommandFailed         4  a command of the emulation failed
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class LabError(Exception):
    """An error for the user. Its message says what was tried, what happened and what to do."""

    exit_code = 4


class RequestError(LabError):
    """The request makes no sense. Nothing was started."""

    exit_code = 2


class MachineLacks(LabError):
    """This machine lacks a tool, a module or a permission. Nothing was started."""

    exit_code = 3


class CommandFailed(LabError):
    """A command of the emulation ended with an error.

    `doing` says what the command was for, `argv` is the command, `status` its exit status.
    """

    def __init__(self, doing: str, argv: Sequence[str], status: int, stderr: str) -> None:
        self.argv, self.status, self.stderr = tuple(argv), status, stderr.strip()
        super().__init__(
            f"{doing}: `{shlex.join(argv)}` ended with status {status}:"
            f" {self.stderr or 'no message'}"
        )


# Parts of messages


def show(value: Any) -> str:
    """Format a value as it is written in a YAML file (`true`, `null`), cut to at most 60
    characters."""
    text = (
        "true"
        if value is True
        else "false"
        if value is False
        else "null"
        if value is None
        else repr(value)
    )
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'X'?)`, where X is the closest known word, or "" if none is close.

    A word that only lacks its unit, such as `rate` of `rate_mbps`, is closest to that one. A word
    with a digit needs a closer match, so that `ue9` does not suggest `ue1`.
    """
    known = list(known)
    without_unit = [each for each in known if each.rpartition("_")[0] == word]
    close = without_unit or get_close_matches(
        word[:80], known, 1, 0.7 if any(each.isdigit() for each in word) else 0.6
    )
    return f" (did you mean '{close[0]}'?)" if close else ""


def unknown(value: Any, known: Iterable[str]) -> str:
    """Return "VALUE is unknown: choose from ...", with the closest known value as a suggestion."""
    known = list(known)
    return f"{show(value)} is unknown{nearest(str(value), known)}: choose from {', '.join(known)}"
