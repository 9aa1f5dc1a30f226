"""Every error a user can meet, in one tree. The command line turns `exit_code` into its own.

LabError                  4  the run failed
├── RequestError          2  what was asked for makes no sense (file, key, value)
├── MachineLacks          3  this machine lacks something; the message ends with what to type
└── CommandFailed         4  a command of the emulation failed
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class LabError(Exception):
    """Something went wrong; the message says what was tried, what happened and what to do."""

    exit_code = 4


class RequestError(LabError):
    """The request is wrong: nothing was started."""

    exit_code = 2


class MachineLacks(LabError):
    """This machine lacks a tool, a module or a right: nothing was started."""

    exit_code = 3


class CommandFailed(LabError):
    """A command the emulation issued did not succeed."""

    def __init__(self, doing: str, argv: Sequence[str], status: int, stderr: str) -> None:
        self.argv, self.status, self.stderr = tuple(argv), status, stderr.strip()
        super().__init__(
            f"{doing}: `{shlex.join(argv)}` ended with status {status}: {self.stderr or 'no message'}"
        )


# --- words that many of them share


def show(value: Any) -> str:
    """A value as the file would hold it, short."""
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
    """', did you mean ...?' or nothing; `ue9` is not meant to be `ue1`."""
    close = get_close_matches(
        word, list(known), 1, 0.7 if any(each.isdigit() for each in word) else 0.6
    )
    return f" (did you mean '{close[0]}'?)" if close else ""


def unknown(value: Any, known: Iterable[str]) -> str:
    """That a value is none of these, and which one it may be meant to be."""
    known = list(known)
    return f"{show(value)} is unknown{nearest(str(value), known)}: choose from {', '.join(known)}"
