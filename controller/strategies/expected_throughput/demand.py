"""Measure how much of its rate each connection needs.

A connection that sends clearly less than it may does not need its whole rate: its application has
nothing to send, or something outside of the network limits it, such as a full receive buffer. Such
a connection needs what it sends, with room to grow (`ROOM`). All others need as much as they can
get. S-MPTCP has no such measure; it reserves the same rate for a user who sends and for one who
does not.

A user has data only at times if a connection of the user is new (`NEW_S`), or has fallen silent
lately: for a window it has sent less than `SILENT` of its mean, and less than it may.
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
NEW_S = 3.0
SILENT, SILENT_FOR_S = 0.25, 10.0  # so long a user counts as one with data at times
WEIGHT = 0.3  # of a window in the mean
MODEST_AFTER = 3  # windows; a congestion window grows for a while after a limit has changed


@dataclass
class _Window:
    """What a connection has sent and was allowed to send since `start_ns`, in bit/s x ns."""

    start_ns: int
    sent: float = 0.0
    allowed: float = 0.0


class Demands:
    """Measures the needs of connections, over windows of at least `WINDOW_S`.

    `needs_bps` has the connections that need less than they may send. A connection keeps its value
    until its next window ends. `modest` has those of which this is known for `MODEST_AFTER` windows
    in a row, `at_times` the connections of users with data only at times, and `sent_bps` what each
    connection sends, smoothed.
    """

    def __init__(self) -> None:
        self.needs_bps: dict[str, float] = {}
        self.modest: frozenset[str] = frozenset()
        self.at_times: frozenset[str] = frozenset()
        self.sent_bps: dict[str, float] = {}
        self._needing: dict[str, int] = {}  # for how many windows
        self._first_ns: dict[str, int] = {}  # of connections
        self._means_bps: dict[str, float] = {}
        self._silent_ns: dict[str, int] = {}  # when a user was silent last
        self._now_ns: int | None = None
        self._windows: dict[str, _Window] = {}

    def observe(self, observation: Observation) -> None:
        """Add the rates since the last call. Connections without a pacing rate are not measured."""
        connections = observation.connections()
        now_ns = observation.now_ns
        past_ns = now_ns - (now_ns if self._now_ns is None else self._now_ns)
        self._now_ns = now_ns
        for name in self._first_ns.keys() - connections.keys():
            self._forget(name)
            self._means_bps.pop(name, None)
            self.sent_bps.pop(name, None)
            del self._first_ns[name]
        for name, subflows in connections.items():
            allowed_bps = sum(each.expected_bps or 0 for each in subflows if not each.backup)
            sent_bps = _sent_bps(subflows)
            if sent_bps is not None:
                mean_bps = self.sent_bps.get(name, sent_bps)
                share = min(1.0, WEIGHT * past_ns / (WINDOW_S * NS_PER_S))
                self.sent_bps[name] = mean_bps + share * (sent_bps - mean_bps)
            if sent_bps is None or not allowed_bps:
                self._forget(name)
                continue
            window = self._windows.setdefault(name, _Window(now_ns - past_ns))
            window.sent += sent_bps * past_ns
            window.allowed += allowed_bps * past_ns
            if now_ns - window.start_ns >= WINDOW_S * NS_PER_S:
                self._end(name, subflows[0].user, window, now_ns)
        self.modest = frozenset(
            name for name, windows in self._needing.items() if windows >= MODEST_AFTER
        )
        users = {name: subflows[0].user for name, subflows in connections.items()}
        new = {user for name, user in users.items() if self._is_new(name, now_ns)}
        silent = {user for user, then_ns in self._silent_ns.items() if _lasts(then_ns, now_ns)}
        self.at_times = frozenset(name for name, user in users.items() if user in new | silent)

    def _is_new(self, name: str, now_ns: int) -> bool:
        return now_ns - self._first_ns.setdefault(name, now_ns) < NEW_S * NS_PER_S

    def _end(self, name: str, user: str, window: _Window, now_ns: int) -> None:
        sent_bps = window.sent / (now_ns - window.start_ns)
        mean_bps = self._means_bps.get(name, sent_bps)
        self._means_bps[name] = mean_bps + WEIGHT * (sent_bps - mean_bps)
        if window.sent >= USES_ALL * window.allowed:
            self.needs_bps.pop(name, None)
            self._needing.pop(name, None)
        else:
            self.needs_bps[name] = _rounded_up(ROOM * sent_bps)
            self._needing[name] = self._needing.get(name, 0) + 1
            if sent_bps < SILENT * mean_bps:
                self._silent_ns[user] = now_ns
        self._windows[name] = _Window(now_ns)

    def _forget(self, name: str) -> None:
        self._needing.pop(name, None)
        self._windows.pop(name, None)
        self.needs_bps.pop(name, None)


def _lasts(then_ns: int, now_ns: int) -> bool:
    return now_ns - then_ns < SILENT_FOR_S * NS_PER_S


def _sent_bps(subflows: tuple[Subflow, ...]) -> int | None:
    """Return what the subflows sent together, or None if no rate was measured."""
    known = [each.rate_bps for each in subflows if each.rate_bps is not None]
    return sum(known) if known else None


def _rounded_up(rate_bps: float) -> float:
    least = effective_floor_bps(round(rate_bps))
    return float(STEP ** math.ceil(math.log(least, STEP)))
