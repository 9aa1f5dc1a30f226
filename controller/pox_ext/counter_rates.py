"""Compute rates in bit/s from readings of byte counters, which switches sometimes reset to zero."""

from __future__ import annotations

from collections.abc import Hashable


class CounterRates:
    """Hold the last reading of every counter, from which the next reading gives a rate."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int]] = {}

    def rate_bps(
        self, name: Hashable, now_ns: int, total_bytes: int, least_ns: int = 0
    ) -> int | None:
        """Store a reading of the counter `name`; return the rate in bit/s since its last reading.

        `total_bytes` is the value of the counter at the time `now_ns`. Return None at the first
        reading. If the value is smaller than at the last reading, the counter was reset to zero in
        between. If less than `least_ns` has passed since the last reading, ignore this one and
        return None.
        """
        before = self._last.get(name)
        if before is not None and 0 <= now_ns - before[0] < least_ns:
            return None
        self._last[name] = (now_ns, total_bytes)
        if before is None or now_ns <= before[0]:
            return None
        grown_bytes = total_bytes - before[1] if total_bytes >= before[1] else total_bytes
        return round(grown_bytes * 8 * 1_000_000_000 / (now_ns - before[0]))

    def restart(self, name: Hashable, now_ns: int, total_bytes: int) -> None:
        """Store a reading of the counter `name`, from which its next rate is computed."""
        self._last[name] = (now_ns, total_bytes)

    def forget(self, name: Hashable) -> None:
        """Forget the counter `name`, so that its next reading counts as the first."""
        self._last.pop(name, None)
