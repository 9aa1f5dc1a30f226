"""Measure how much of its rate each connection needs.

A connection that sends clearly less than it may does not need its whole rate: its application has
nothing to send, or something outside of the network limits it, such as a full receive buffer. Such
a connection needs what it sends, with room to grow (`ROOM`). All others need as much as they can
get. S-MPTCP has no such measure; it reserves the same rate for a user who sends and for one who
does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from controller.command import effective_floor_bps
from controller.observation import Observation, Subflow
from controller.units import NS_PER_S

ROOM = 1.2  # of what a connection sends
USES_ALL = 0.9  # of its pacing rate; a connection that sends more needs as much as it can get
STEP = 1.1  # needs are rounded up to a power of this, so that they seldom change


@dataclass
class _Window:
    """What a connection sent and might have sent since `start_ns`, in bit/s times ns."""

    start_ns: int
    sent: float = 0.0
    allowed: float = 0.0


class Demands:
    """Measures the needs of connections, over windows of `window_s` seconds.

    `needs_bps` has the connections that need less than they may send. It keeps its values until the
    next window of a connection ends.
    """

    def __init__(self, window_s: float) -> None:
        self.needs_bps: dict[str, float] = {}
        self._window_ns = round(window_s * NS_PER_S)
        self._now_ns = 0
        self._windows: dict[str, _Window] = {}

    def observe(self, observation: Observation) -> None:
        """Add the rates since the last call. Connections without a pacing rate are not measured."""
        connections = observation.connections()
        past_ns, self._now_ns = observation.now_ns - self._now_ns, observation.now_ns
        for name in self._windows.keys() - connections.keys():
            self._forget(name)
        for name, subflows in connections.items():
            allowed_bps = sum(each.expected_bps or 0 for each in subflows if not each.backup)
            sent_bps = _sent_bps(subflows)
            if sent_bps is None or not allowed_bps:
                self._forget(name)
                continue
            window = self._windows.setdefault(name, _Window(self._now_ns - past_ns))
            window.sent += sent_bps * past_ns
            window.allowed += allowed_bps * past_ns
            if self._now_ns - window.start_ns >= self._window_ns:
                self._end(name, window)

    def _end(self, name: str, window: _Window) -> None:
        past_ns = self._now_ns - window.start_ns
        if window.sent >= USES_ALL * window.allowed:
            self.needs_bps.pop(name, None)
        else:
            self.needs_bps[name] = _rounded_up(ROOM * window.sent / past_ns)
        self._windows[name] = _Window(self._now_ns)

    def _forget(self, name: str) -> None:
        self._windows.pop(name, None)
        self.needs_bps.pop(name, None)


def _sent_bps(subflows: tuple[Subflow, ...]) -> int | None:
    """Return what the subflows sent together, or None if no rate was measured."""
    known = [each.rate_bps for each in subflows if each.rate_bps is not None]
    return sum(known) if known else None


def _rounded_up(rate_bps: float) -> float:
    least = effective_floor_bps(round(rate_bps))
    return float(STEP ** math.ceil(math.log(least, STEP)))
