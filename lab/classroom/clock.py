"""The clock of a class. It goes on evenly, also if somebody sets the clock of the machine.

Waits and time limits survive a restart of the server, so times are in seconds since 1970. They are
read from the machine's clock only once, at the start. From then on, elapsed time is added. The time
never lies before the last event in the journal: if the clock was put back between two servers, the
class goes on from that event.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

JUMP_S = 30.0  # a smaller difference is that of two clocks that drift apart
FIX = "Set the clock right; if that was the change, start the server again"
log = logging.getLogger(__name__)


def elapsed_s() -> float:
    """Return seconds since an unknown time. They also pass while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class ClassClock:
    """Call it for the time of the class in s since 1970.

    Tests replace `wall`, the clock of the machine, and `elapsed`.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = elapsed_s
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._began_s = wall() - elapsed()
        self._said = ""

    def __call__(self) -> float:
        return self._began_s + self._elapsed()

    def go_on_from(self, last_s: float) -> None:
        """Go on from the time `last_s` if the present time lies before it."""
        self._began_s += max(0.0, last_s - self())

    def warning(self) -> str:
        """Return for the instructor that the clock of the machine differs from that of the class,
        or "". It is logged once."""
        differs_s = self._wall() - self()
        how = "put back" if differs_s < 0 else "put forward"
        if abs(differs_s) < JUMP_S:
            how = ""
        text = how and (
            f"The clock of this machine was {how} by {abs(differs_s):.0f} s. Time limits of the "
            "class go on as if it were not; times in its journal, and dates of results, are those "
            f"of the old clock. {FIX}"
        )
        if how != self._said:
            self._said = how
            if text:
                log.warning(text)
        return text
