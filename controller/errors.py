"""The exceptions of the controller, all derived from `ControllerError`."""

from __future__ import annotations


class ControllerError(ValueError):
    """Base class; the message says what was tried, what is wrong and what the user can do."""


class UnknownStrategy(ControllerError):
    """Raised for a strategy name that does not exist; the message lists the names that do."""


class ParamsRefused(ControllerError):
    """Raised for a strategy parameter that is unknown, of the wrong type or out of bounds."""


class CommandRefused(ControllerError):
    """Raised for a strategy's command that is impossible or that would stop a connection."""


class MessageRefused(ControllerError):
    """Raised for a datagram or inbox file whose content does not follow docs/formats.md."""


class TopologyRefused(ControllerError):
    """Raised, before anything starts, for an incomplete or contradictory topology file."""


class UserFileRefused(ControllerError):
    """Raised if a user's Python file cannot be imported; the message names file and line."""


class StrategyFailed(ControllerError):
    """Raised if a strategy raises an exception while a scenario runs; the run then fails.

    `file` and `line` locate the raising statement; the message names both too.
    """

    def __init__(self, message: str, file: str, line: int) -> None:
        super().__init__(message)
        self.file, self.line = file, line
