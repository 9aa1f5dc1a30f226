"""Wake threads when something changes that they show.

Changes are counted for each seat, for all seats together, and in all. A thread that shows a seat
sleeps while only other seats change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

NO_SEAT = ""  # changes that only the instructor sees


class News:
    """Count changes. `mutex` is held while the state of the class changes."""

    def __init__(self, mutex: threading.RLock) -> None:
        self._condition = threading.Condition(mutex)
        self._of: Counter[str] = Counter()
        self._common, self._count = 0, 0

    def report(self, seats: Iterable[str | None]) -> None:
        """Count a change of these seats; None stands for all seats."""
        with self._condition:
            self._count += 1
            for seat in set(seats):
                if seat is None:
                    self._common += 1
                else:
                    self._of[seat] += 1
            self._condition.notify_all()

    def wait(self, seat: str | None, version: int, timeout_s: float) -> int:
        """Wait until the version of a seat is not `version` any more, for `timeout_s` at most.
        Return the present version. With None, wait for any change."""
        with self._condition:
            self._condition.wait_for(lambda: self._version(seat) != version, timeout_s)
            return self._version(seat)

    def _version(self, seat: str | None) -> int:
        return self._count if seat is None else self._common + self._of[seat]
