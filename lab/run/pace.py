"""The speed of a simulated run in comparison with real time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from lab.errors import RequestError, unknown

MAX_SPEED = 1000
FORGIVEN_S = 1.0  # a run that is later than this does not catch up
CONTROLS = ("pause", "resume", "speed")


def checked_speed(value: Any) -> float:
    """Return a speed as a multiple of real time; "max" (as fast as possible) becomes 0.

    Raise `RequestError` unless `value` is "max" or a number above 0 and up to `MAX_SPEED`.
    """
    try:
        speed = 0.0 if value == "max" else float(value)
    except (TypeError, ValueError):
        speed = -1.0
    if isinstance(value, bool) or not 0 <= speed <= MAX_SPEED or (speed == 0 and value != "max"):
        raise RequestError(f"speed {value}: write max, 1 or 10 (times real time)")
    return speed


class Pace:
    """Slows a simulated run down to `speed` times real time; 0 means no waiting.

    After a pause, or if the run is more than 1 s late, the run does not go faster to make up for
    the lost time.
    """

    def __init__(self, speed: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.speed, self.paused, self._clock = speed, False, clock
        self._from: tuple[float, float] = (clock(), 0.0)

    def wait_s(self, now_s: float) -> float:
        """Return the real time in s to wait at the simulated time `now_s`; infinity during a
        pause."""
        if self.paused:
            return math.inf
        if not self.speed:
            return 0.0
        began, at = self._from
        wait_s = began + (now_s - at) / self.speed - self._clock()
        if wait_s < -FORGIVEN_S:
            self._from = (self._clock(), now_s)
        return max(0.0, wait_s)

    def control(self, control: Any, value: Any, now_s: float) -> None:
        """Apply "pause", "resume" or "speed" at the simulated time `now_s`, in s.

        `value` is the new speed and is used only by "speed". Raise `RequestError` for any other
        control or an invalid speed.
        """
        if control not in CONTROLS:
            raise RequestError(f"control {unknown(control, ('stop', *CONTROLS))}")
        if control == "speed":
            self.speed = checked_speed(value)
        else:
            self.paused = control == "pause"
        self._from = (self._clock(), now_s)
