"""Hand stations over from one access point to another, and measure the gaps in their service.

1) The station leaves its access point and associates with the new one. It keeps its address.
2) When the kernel reports the association, the AP agent is notified. It reports the station to POX,
   which moves the paths of the station's flows.
3) The first packet that crosses the new cell, in either direction, ends the gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.engines.mininet.network.wifi import StationRadio, Target
from lab.errors import LabError

RETRY_S = 0.3  # between two attempts to associate
ANSWER_S = 2.0  # the longest wait for an answer to an attempt
GAP_S = 20.0  # a station without a packet for so long has no traffic


@dataclass
class Handover:
    """Hold one handover in progress; times are in s of the monotonic clock.

    `associated_s` is None until the station has associated with the new access point. `attempt_s`
    is the time of the latest attempt to associate; None before the first attempt.
    """

    user: str
    old: str
    new: str
    rssi_dbm: float
    left_s: float
    attempt_s: float | None = None
    retry_s: float = 0.0
    associated_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Hold a finished handover; the fields after `at_s` are those of the event `handover`.

    `at_s` is when the station left its access point, in s of the monotonic clock. `association_ms`
    is None if the station did not associate, `gap_ms` if no packet crossed the new cell.
    """

    at_s: float
    user: str
    old: str
    new: str
    rssi_dbm: float
    association_ms: float | None
    gap_ms: float | None

    def fields(self) -> dict[str, Any]:
        """Return the fields of the event: those of the simulator and the two measured times."""
        ends = {"user": self.user, "from": self.old, "to": self.new, "rssi_dbm": self.rssi_dbm}
        return ends | {"association_ms": self.association_ms, "gap_ms": self.gap_ms}


class Roaming:
    """Carry out handovers; several can be in progress at the same time."""

    def __init__(
        self,
        radios: Mapping[str, StationRadio],
        targets: Mapping[str, Target],
        associated: Callable[[str, str, str], None],
        first_packet_s: Callable[[str, str], float | None],
        run: Callable[[str, list[str]], None],
    ) -> None:
        """Store what handovers need.

        `radios` has the radio of each user, and `targets` the description of each access point by
        name. `associated(user, old, new)` is called after each association. `first_packet_s(user,
        ap)` returns when the user's first packet crossed the new cell; None before that. `run(user,
        argv)` is called with the shell command that is equivalent to each step, for the journal.
        """
        self._radios, self._targets = radios, targets
        self._associated, self._first_packet_s, self._journal = associated, first_packet_s, run
        self.running: dict[str, Handover] = {}
        self._outcomes: list[Outcome] = []

    def begin(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
        """Begin the handover of a user from access point `old` to `new`.

        If a handover of this user is still in progress, it ends now.
        """
        before = self.running.pop(user, None)
        if before is not None:
            self._end(before, None)
            old = before.old if before.associated_s is None else old
        radio = self._radios[user]
        for argv in radio.commands(self._targets[new]):
            self._journal(user, argv)
        self.running[user] = Handover(user, old, new, rssi_dbm, time.monotonic())
        radio.leave()
        self._attempt(self.running[user])

    def poll(self) -> list[Outcome]:
        """Advance all handovers in progress; return those that have ended since the last call."""
        for handover in list(self.running.values()):
            if handover.associated_s is None:
                self._associate(handover)
            else:
                self._await_packet(handover)
        done, self._outcomes = self._outcomes, []
        return done

    def finish(self) -> list[Outcome]:
        """End all handovers in progress at the end of the run, and return them."""
        for handover in list(self.running.values()):
            self._end(handover, self._first_packet_s(handover.user, handover.new))
        self.running.clear()
        done, self._outcomes = self._outcomes, []
        return done

    def _attempt(self, handover: Handover) -> None:
        now_s = time.monotonic()
        handover.retry_s = now_s + RETRY_S
        try:
            self._radios[handover.user].associate(self._targets[handover.new])
            handover.attempt_s = now_s
        except LabError:
            handover.attempt_s = None  # the radio is still leaving

    def _associate(self, handover: Handover) -> None:
        answer = self._radios[handover.user].answer()
        now_s = time.monotonic()
        if answer and handover.attempt_s is not None:
            handover.associated_s = now_s
            self._associated(handover.user, handover.old, handover.new)
        elif answer is False or handover.attempt_s is None:
            handover.attempt_s = None
            if now_s >= handover.retry_s:
                self._attempt(handover)
        elif now_s - handover.attempt_s > ANSWER_S:
            self._attempt(handover)

    def _await_packet(self, handover: Handover) -> None:
        first_s = self._first_packet_s(handover.user, handover.new)
        assert handover.associated_s is not None
        if first_s is not None and first_s > handover.left_s:
            self._end(handover, first_s)
        elif time.monotonic() - handover.associated_s > GAP_S:
            self._end(handover, None)

    def _end(self, handover: Handover, first_s: float | None) -> None:
        self.running.pop(handover.user, None)
        took_s = None if handover.associated_s is None else handover.associated_s - handover.left_s
        gap_s = None if first_s is None else first_s - handover.left_s
        self._outcomes.append(
            Outcome(
                handover.left_s,
                handover.user,
                handover.old,
                handover.new,
                handover.rssi_dbm,
                _ms(took_s),
                _ms(gap_s),
            )
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)
