"""Every error a user can meet, in one tree. The command line turns `exit_code` into its own.

LabError                  4  the run failed
├── RequestError          2  what was asked for makes no sense (file, key, value)
├── MachineLacks          3  this machine lacks something; the message ends with what to type
└── CommandFailed         4  a command of the emulation failed
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence


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
        super().__init__(f"{doing}: `{shlex.join(argv)}` ended with status {status}: {self.stderr or 'no message'}")
