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

WINDOW_S = 1.0
ROOM = 1.2  # of what a connection sends
USES_ALL = 0.9  # of its pacing rate; a connection that sends more needs as much as it can get
STEP = 1.1  # needs are rounded up to a power of this, so that they seldom change


@dataclass
class _Window:
    """What a connection has sent and was allowed to send since `start_ns`, in bit/s x ns."""

    start_ns: int
    sent: float = 0.0
    allowed: float = 0.0


class Demands:
    """Measures the needs of connections, over windows of at least `WINDOW_S`.

    `needs_bps` has the connections that need less than they may send. A connection keeps its value
    until its next window ends.
    """

    def __init__(self) -> None:
        self.needs_bps: dict[str, float] = {}
        self._now_ns: int | None = None
        self._windows: dict[str, _Window] = {}

    def observe(self, observation: Observation) -> None:
        """Add the rates since the last call. Connections without a pacing rate are not measured."""
        connections = observation.connections()
        now_ns = observation.now_ns
        past_ns = now_ns - (now_ns if self._now_ns is None else self._now_ns)
        self._now_ns = now_ns
        for name in self._windows.keys() - connections.keys():
            self._forget(name)
        for name, subflows in connections.items():
            allowed_bps = sum(each.expected_bps or 0 for each in subflows if not each.backup)
            sent_bps = _sent_bps(subflows)
            if sent_bps is None or not allowed_bps:
                self._forget(name)
                continue
            window = self._windows.setdefault(name, _Window(now_ns - past_ns))
            window.sent += sent_bps * past_ns
            window.allowed += allowed_bps * past_ns
            if now_ns - window.start_ns >= WINDOW_S * NS_PER_S:
                self._end(name, window, now_ns)

    def _end(self, name: str, window: _Window, now_ns: int) -> None:
        past_ns = now_ns - window.start_ns
        if window.sent >= USES_ALL * window.allowed:
            self.needs_bps.pop(name, None)
        else:
            self.needs_bps[name] = _rounded_up(ROOM * window.sent / past_ns)
        self._windows[name] = _Window(now_ns)

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
