"""Define every error of the controller, in one tree.

ControllerError (ValueError)
├── UnknownStrategy     no strategy has this name
├── ParamsRefused       a parameter is unknown, of the wrong type or out of bounds
├── CommandRefused      this network cannot carry out a command
├── MessageRefused      a datagram or an inbox file is not valid
├── PlanRefused         the topology file is not valid
├── UserFileRefused     a user's own Python file cannot be imported
└── StrategyFailed      a strategy raised an exception while the network ran
"""

from __future__ import annotations


class ControllerError(ValueError):
    """Report what was tried, what is wrong, and what to do."""


class UnknownStrategy(ControllerError):
    """Report a strategy name that does not exist; the message lists those that do."""


class ParamsRefused(ControllerError):
    """Report a parameter that is unknown, of the wrong type or out of bounds."""


class CommandRefused(ControllerError):
    """Report a command that the network cannot carry out or that would stop a connection."""


class MessageRefused(ControllerError):
    """Report a message that is not one of docs/formats.md."""


class PlanRefused(ControllerError):
    """Report a topology file that is incomplete or contradicts itself; nothing was started."""


class UserFileRefused(ControllerError):
    """Report a user's Python file that cannot be imported, with file and line."""


class StrategyFailed(ControllerError):
    """Report an exception that a strategy raised: the run has failed.

    `file` and `line` say where it was raised; the message says it too.
    """

    def __init__(self, message: str, file: str, line: int) -> None:
        super().__init__(message)
        self.file, self.line = file, line
