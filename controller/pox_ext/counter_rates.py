"""Compute rates in bit/s from byte counters that grow and are sometimes reset."""

from __future__ import annotations

from collections.abc import Hashable


class CounterRates:
    """Hold the last reading of every counter, to compute the rate at its next reading."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int]] = {}

    def rate_bps(
        self, name: Hashable, now_ns: int, total_bytes: int, least_ns: int = 0
    ) -> int | None:
        """Return the rate in bit/s since the last reading of the counter `name`.

        Return None at the first reading. A total smaller than the last one means that the counter
        was reset to zero in between. A reading less than `least_ns` after the last one is ignored,
        and the result is None.
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
        """Store a reading without computing a rate; the next rate starts from this reading."""
        self._last[name] = (now_ns, total_bytes)

    def forget(self, name: Hashable) -> None:
        """Forget the counter `name`, so that its next reading counts as the first."""
        self._last.pop(name, None)
