"""Move the users of a running emulation in a separate thread.

Users walk as in the simulator (`lab.scenario.movement`). Each step sets their positions in
Mininet-WiFi and the rates of their stations; handovers are carried out between the steps.
"""

from __future__ import annotations

import select
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue

from lab.engines.mininet.emulated_network import EmulatedNetwork
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network.wifi import StationRadio
from lab.engines.mininet.roaming import Outcome, Roaming
from lab.errors import LabError
from lab.radio.mobility import Place
from lab.scenario.movement import STEP_S, Movement
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface

POLL_S = 0.05  # while a handover waits for its first packet


@dataclass(frozen=True)
class Command:
    """Hold a shell command equivalent to one step of a handover; `at_s` is in s since 1970."""

    at_s: float
    argv: list[str]


class Mobility:
    """Hold the positions of the users, and the thread that moves them.

    The thread puts handovers and errors into a queue; `take` reads the queue in the thread of the
    run.
    """

    def __init__(self, scenario: Scenario, emulated: EmulatedNetwork) -> None:
        """Set the initial positions; open a netlink socket for each radio that may move."""
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
        targets = {ap: network.target(ap) for ap in wifi} if self._radios else {}
        self._roaming = Roaming(
            self._radios, targets, self._associated, self._first_packet, self._record_command
        )
        self._happened: SimpleQueue[Outcome | Interface | Command | Exception] = SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def places(self) -> dict[str, Place]:
        """Return the present position (x and y in m) of each node that has one."""
        return self.movement.places

    def start(self, zero_s: float) -> None:
        """Start the thread. The time of the run is 0 when the monotonic clock shows `zero_s`."""
        if self.movement.walkers:
            self._thread = threading.Thread(target=self._run, args=(zero_s,), daemon=True)
            self._thread.start()

    def take(self) -> tuple[list[Interface], list[Outcome]]:
        """Return what has happened since the last call: interfaces that have moved, and handovers.

        The interfaces are those that have moved to another access point; the handovers are those
        that have ended. Raises the error that has ended the thread, if any.
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
        """End the thread and the handovers in progress; close the netlink sockets."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        for outcome in self._roaming.finish():
            self._happened.put(outcome)
        for radio in self._radios.values():
            radio.close()
        self._radios.clear()

    # --- the thread

    def _run(self, zero_s: float) -> None:
        try:
            step = 0
            while not self._stop.is_set():
                self._wait(zero_s + step * STEP_S)
                if time.monotonic() >= zero_s + step * STEP_S:
                    self._step(time.monotonic() - zero_s)
                    step = int((time.monotonic() - zero_s) / STEP_S) + 1
                for outcome in self._roaming.poll():
                    self._happened.put(outcome)
        except (LabError, OSError, LookupError, ValueError) as error:
            self._happened.put(error)

    def _wait(self, until_s: float) -> None:
        """Wait until a radio reports its association, at most until `until_s` (monotonic clock).

        While a handover is in progress, wait at most `POLL_S`.
        """
        running = self._roaming.running
        left_s = max(0.0, until_s - time.monotonic())
        radios = [self._radios[user] for user, each in running.items() if each.associated_s is None]
        select.select(radios, [], [], min(left_s, POLL_S) if running else left_s)

    def _step(self, now_s: float) -> None:
        self.movement.step(now_s)
        for walker in self.movement.walkers:
            self._network.move(walker.user, *self.movement.places[walker.user])

    def _hand_over(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
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
