"""CounterRates from counters that grow, and now and then start again."""

from __future__ import annotations

from collections.abc import Hashable


class CounterRates:
    """Remembers the last reading of every counter."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int]] = {}

    def rate_bps(self, name: Hashable, now_ns: int, total_bytes: int) -> int | None:
        """Bit/s since the last reading; None at the first. A smaller total means that the counter started again at zero."""
        before = self._last.get(name)
        self._last[name] = (now_ns, total_bytes)
        if before is None or now_ns <= before[0]:
            return None
        grown_bytes = total_bytes - before[1] if total_bytes >= before[1] else total_bytes
        return round(grown_bytes * 8 * 1_000_000_000 / (now_ns - before[0]))

    def restart(self, name: Hashable, now_ns: int, total_bytes: int) -> None:
        """Count from this reading on."""
        self._last[name] = (now_ns, total_bytes)

    def forget(self, name: Hashable) -> None:
        """The next reading is the first."""
        self._last.pop(name, None)
