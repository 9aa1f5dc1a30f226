"""Every refusal of the brain, in one tree.

ControllerError (ValueError)
├── UnknownStrategy     no strategy has this name
├── ParamsRefused       a parameter is unknown, of the wrong type or out of bounds
├── CommandRefused      a strategy asked for something that makes no sense on this network
├── MessageRefused      a datagram or an inbox file cannot be understood
├── PlanRefused         the topology file cannot be understood
├── UserFileRefused     a user's own Python file cannot be imported
└── StrategyFailed      a strategy raised an exception while the network ran
"""

from __future__ import annotations


class ControllerError(ValueError):
    """Something was refused; the message says what was tried, what is wrong and what to do."""


class UnknownStrategy(ControllerError):
    """No strategy has this name; the message lists those that exist."""


class ParamsRefused(ControllerError):
    """A parameter is unknown, of the wrong type or out of bounds; nothing was changed."""


class CommandRefused(ControllerError):
    """A command names what is not there, or asks what would stop a connection; it was not carried out."""


class MessageRefused(ControllerError):
    """A message is not one of those in docs/formats.md; it was not acted upon."""


class PlanRefused(ControllerError):
    """The topology file is incomplete or contradicts itself; nothing was started."""


class UserFileRefused(ControllerError):
    """A user's own Python file cannot be imported; the message names the file and the line."""


class StrategyFailed(ControllerError):
    """Report an exception that a strategy raised: the run has failed.

    `file` and `line` say where it was raised; the message says it too.
    """

    def __init__(self, message: str, file: str, line: int) -> None:
        super().__init__(message)
        self.file, self.line = file, line
