"""Define the reasons for which a class refuses a request of a student or of the instructor.

A request that makes no sense is a `RequestError`, as everywhere in the lab.
"""

from __future__ import annotations

from lab.errors import LabError


class Unknown(LabError):
    """Report that there is no such seat, worksheet, step or run, or none that may be seen."""


class NotNow(LabError):
    """Report a request that is not possible in the present state of the class."""


class TooMuch(LabError):
    """Report a request over a limit. `wait_s` says after how many seconds it is allowed."""

    def __init__(self, text: str, wait_s: float = 5.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Forbidden(LabError):
    """Report a wrong code, PIN or key."""
