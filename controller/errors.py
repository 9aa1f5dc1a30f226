"""Define every error of the controller, as subclasses of one class.

ControllerError (ValueError)
├── UnknownStrategy     no strategy has this name
├── ParamsRefused       a parameter is unknown, of the wrong type or out of bounds
├── CommandRefused      this network cannot carry out a command
├── MessageRefused      a datagram or an inbox file is not valid
├── PlanRefused         the topology file is not valid
├── UserFileRefused     a Python file that a user wrote cannot be imported
└── StrategyFailed      a strategy raised an exception while the network ran
"""

from __future__ import annotations


class ControllerError(ValueError):
    """Report an error whose message says what was tried, what is wrong and what the user can do."""


class UnknownStrategy(ControllerError):
    """Report a strategy name that does not exist; the message lists the names that exist."""


class ParamsRefused(ControllerError):
    """Report a strategy parameter that is unknown, of the wrong type or out of bounds."""


class CommandRefused(ControllerError):
    """Report a command that the network cannot carry out, or that would stop a connection."""


class MessageRefused(ControllerError):
    """Report a datagram or inbox file whose content does not follow docs/formats.md."""


class PlanRefused(ControllerError):
    """Report a topology file that is incomplete or contradicts itself; nothing has been started."""


class UserFileRefused(ControllerError):
    """Report that a Python file of a user cannot be imported; the message names file and line."""


class StrategyFailed(ControllerError):
    """Report an exception that a strategy raised while a scenario ran.

    The run has failed. `file` and `line` locate the raising statement; the message names both too.
    """

    def __init__(self, message: str, file: str, line: int) -> None:
        super().__init__(message)
        self.file, self.line = file, line
