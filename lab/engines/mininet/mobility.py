"""Move the users of a running emulation in a separate thread.

Users walk, and are put somewhere, as in the simulator (`lab.scenario.movement`). In each time step,
and for a user that is put somewhere at once, the thread sets the users' positions in Mininet-WiFi
and the rates of their stations. Between the time steps, it carries out handovers. A handover has
three stages, and the station has no service until the last:

1) The station leaves its access point and associates with the new one. It keeps its address.
2) When the kernel reports the association, the AP agent is notified. The agent reports the station
   to POX, and POX moves the paths of the station's flows.
3) The first packet crosses the new cell, in either direction.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from lab.engines.mininet.emulated_network import EmulatedNetwork
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network.wifi import StationRadio, Target
from lab.errors import LabError
from lab.radio.mobility import Place
from lab.scenario.movement import STEP_S, Movement, placeable
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface

RETRY_S = 0.3  # between two attempts to associate
ANSWER_S = 2.0  # the longest wait for an answer to an attempt
POLL_S = 0.05  # while a handover waits for its first packet
GAP_S = 20.0  # a station without a packet for so long has no traffic


@dataclass
class Handover:
    """A handover in progress. All times are in s of the monotonic clock.

    `left_s` is when the station left the access point `old`. `attempt_s` is when the current
    attempt to associate with `new` began; it is None while there is no attempt. `retry_s` is the
    earliest time of the next attempt. `associated_s` is None until the station has associated with
    `new`.
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
    """A finished handover.

    `at_s` is when the station left the access point `old`, in s of the monotonic clock. The two
    durations begin at `at_s`:

    - `association_ms`: until the station associated with `new`; None if it did not
    - `gap_ms`: until the first packet crossed the new cell; None if no packet did
    """

    at_s: float
    user: str
    old: str
    new: str
    rssi_dbm: float
    association_ms: float | None
    gap_ms: float | None

    def fields(self) -> dict[str, Any]:
        """Return the fields of an event `handover`, without its time.

        The simulator's events have the same fields, except `association_ms` and `gap_ms`.
        """
        ends = {"user": self.user, "from": self.old, "to": self.new, "rssi_dbm": self.rssi_dbm}
        return ends | {"association_ms": self.association_ms, "gap_ms": self.gap_ms}


class Roaming:
    """Carries out handovers. Several can be in progress at the same time."""

    def __init__(
        self,
        radios: Mapping[str, StationRadio],
        targets: Mapping[str, Target],
        associated: Callable[[str, str, str], None],
        first_packet_s: Callable[[str, str], float | None],
        run: Callable[[str, list[str]], None],
    ) -> None:
        """Store the radio of each user (`radios`) and each access point by name (`targets`).

        `associated(user, old, new)` is called after each association. `first_packet_s(user, ap)`
        returns when the user's first packet crossed the cell of `ap`, or None before that.
        `run(user, argv)` records a shell command that is equivalent to a step of the handover. The
        command is not executed.
        """
        self._radios, self._targets = radios, targets
        self._associated, self._first_packet_s, self._journal = associated, first_packet_s, run
        self.running: dict[str, Handover] = {}
        self._outcomes: list[Outcome] = []

    def begin(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
        """Begin the handover of a user from access point `old` to `new`.

        An earlier handover of this user that is still in progress ends now.
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
        """Continue all handovers in progress; return those that have ended since the last call."""
        for handover in list(self.running.values()):
            if handover.associated_s is None:
                self._associate(handover)
            else:
                self._await_packet(handover)
        done, self._outcomes = self._outcomes, []
        return done

    def finish(self) -> list[Outcome]:
        """End all handovers that are still in progress at the end of the run, and return them."""
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


@dataclass(frozen=True)
class Command:
    """A shell command that is equivalent to a step of a handover; recorded, but not executed.

    `at_s` is in s since 1970.
    """

    at_s: float
    argv: list[str]


class Mobility:
    """The positions of the users, and the thread that moves the users.

    The thread puts finished handovers and errors into a queue. The main thread of the run reads the
    queue with `take`.
    """

    def __init__(self, scenario: Scenario, emulated: EmulatedNetwork) -> None:
        """Set the initial positions; open a netlink socket for the radio of each walking user.

        That of a user that is put somewhere is opened when it changes its access point.
        """
        stations, network = emulated.stations, emulated.network
        self._stations, self._network, self._links = stations, network, emulated.links
        topology = scenario.network
        self.movement = Movement(
            topology, scenario.mobility, scenario.seed, stations, self._hand_over
        )
        walkers = {each.user for each in self.movement.walkers}
        wifi = {cell.ap for cell in topology.cells if cell.kind == "wifi" and cell.radio}
        self._radios = {
            user: self._radio(user, ap)
            for ap, user in stations.stations
            if user in walkers and ap in wifi
        }
        self._can_move = bool(walkers or placeable(topology))
        targets = {ap: network.target(ap) for ap in wifi} if self._can_move else {}
        self._roaming = Roaming(
            self._radios, targets, self._associated, self._first_packet, self._record_command
        )
        self._happened: SimpleQueue[Outcome | Interface | Command | Exception] = SimpleQueue()
        self._asked: SimpleQueue[tuple[str, Place | None]] = SimpleQueue()  # users to put somewhere
        self._wake = os.eventfd(0)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def places(self) -> dict[str, Place]:
        """Current position (x, y) [m] of each node that has a position."""
        return self.movement.places

    def start(self, zero_s: float) -> None:
        """Start the thread. `zero_s` is the monotonic clock [s] at time 0 of the run."""
        if self._can_move:
            self._thread = threading.Thread(target=self._run, args=(zero_s,), daemon=True)
            self._thread.start()

    def place(self, user: str, place: Place | None) -> None:
        """Let the thread put a user somewhere; None: the user walks as the scenario says."""
        self._asked.put((user, place))
        os.eventfd_write(self._wake, 1)

    def take(self) -> tuple[list[Interface], list[Outcome]]:
        """Return what has happened since the last call: changed interfaces and finished handovers.

        A changed interface is at a new access point. Raises the error that has ended the thread, if
        the thread has failed.
        """
        moved: list[Interface] = []
        ended: list[Outcome] = []
        while not self._happened.empty():
            match self._happened.get():
                case Interface() as interface:
                    moved.append(interface)
                case Outcome() as outcome:
                    ended.append(outcome)
                case Command(at_s, argv):
                    shell.journal_command(argv, at=at_s)
                case Exception() as error:
                    raise error
        return moved, ended

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            os.eventfd_write(self._wake, 1)
            self._thread.join()
            self._thread = None
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1
        for outcome in self._roaming.finish():
            self._happened.put(outcome)
        for radio in self._radios.values():
            radio.close()
        self._radios.clear()

    # The thread

    def _run(self, zero_s: float) -> None:
        try:
            due_s = zero_s if self.movement.walkers else math.inf
            while not self._stop.is_set():
                self._wait(due_s)
                self._place_users()
                if time.monotonic() >= due_s:
                    self._step(time.monotonic() - zero_s)
                    due_s = zero_s + STEP_S * (int((time.monotonic() - zero_s) / STEP_S) + 1)
                for outcome in self._roaming.poll():
                    self._happened.put(outcome)
        except (LabError, OSError, LookupError, ValueError) as error:
            self._happened.put(error)

    def _wait(self, until_s: float) -> None:
        """Wait until `until_s` of the monotonic clock, until a radio reports its association, or
        until a user is to be put somewhere.

        While a handover is in progress, wait at most `POLL_S` seconds.
        """
        running = self._roaming.running
        left_s = min(POLL_S, until_s - time.monotonic()) if running else until_s - time.monotonic()
        awaited: list[StationRadio | int] = [
            self._radios[user] for user, each in running.items() if each.associated_s is None
        ]
        timeout_s = None if left_s == math.inf else max(0.0, left_s)
        ready, _, _ = select.select([*awaited, self._wake], [], [], timeout_s)
        if self._wake in ready:
            os.eventfd_read(self._wake)

    def _place_users(self) -> None:
        while not self._asked.empty():
            user, place = self._asked.get()
            self.movement.place(user, place)
            self._network.move(user, *self.movement.places[user])

    def _step(self, now_s: float) -> None:
        self.movement.step(now_s)
        for walker in self.movement.walkers:
            self._network.move(walker.user, *self.movement.places[walker.user])

    def _hand_over(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
        if user not in self._radios:
            self._radios[user] = self._radio(user, new)
        self._roaming.begin(user, old, new, rssi_dbm)

    def _associated(self, user: str, old: str, new: str) -> None:
        self._stations.associated(user, old, new)
        self._network.record_association(user, new)
        self._happened.put(self._stations.interface(user, new))

    def _first_packet(self, user: str, ap: str) -> float | None:
        return self._links.first_packet_s(ap, self._stations.interface(user, ap).address)

    def _record_command(self, user: str, argv: list[str]) -> None:
        self._happened.put(Command(time.time(), self._network.inside(user, argv)))

    def _radio(self, user: str, ap: str) -> StationRadio:
        name = self._stations.interface(user, ap).name
        return netlink.inside(self._network.pid(user), lambda: StationRadio(name))
