"""Start the AP agent, receive its reports, and send it changes of stations.

The AP agent is a separate process, which measures the queues of all access points
(programs/ap_agent.py).
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from controller.agent_messages import ApReport, read_ap_report
from controller.errors import MessageRefused
from lab.engines.mininet import agent_program, controller_client
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network.lte_bearers import uplink_device
from lab.engines.mininet.programs.access_points import AccessPoint, Station, apply_change
from lab.errors import LabError
from lab.radio import cell as radio_cell
from lab.radio.cell import Cell
from lab.topologies.topology import Topology, Wiring, radio_port

TIMEOUT_S = 30
DATAGRAM_BYTES = 65536
PROGRAM = "lab.engines.mininet.programs.ap_agent"


class ApAgentProcess:
    """Hold the process of the AP agent, which measures all access points of a network.

    The agent sends its reports to POX and to this process.
    """

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        uploaders: Iterable[str],
        ledger: Ledger,
        folders: tuple[Path, Path],
        key: str,
    ) -> None:
        """Start the AP agent, and wait until it has reported every access point once.

        `uploaders` are the users that have uploads. The agent's configuration file is written into
        the first of the two `folders`, its log into the second. `key` is the secret key of the run,
        with which the reports begin. Raises `LabError` if the report of an access point does not
        come.
        """
        state, run = folders
        self._log, self._occupancies = run / "agents.log", dict[str, list[float]]()
        self._reports = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reports.bind(("127.0.0.1", 0))
        self._aps = access_points(topology, wiring, {*uploaders, *topology.relays})
        self._ledger, self._key, self._configuration = ledger, key, state / "agents.json"
        self._lock = Lock()  # users are moved in another thread
        self._launch()
        try:
            self._wait_for(set(self._aps))
        except BaseException:
            self.close()
            raise

    def _launch(self) -> None:
        """Start the AP agent with the present stations."""
        ports = [controller_client.AP_AGENT_PORT, self._reports.getsockname()[1]]
        aps = {name: asdict(ap) for name, ap in self._aps.items()}
        configuration = {"aps": aps, "ports": ports, "key": self._key}
        write_secret(self._configuration, json.dumps(configuration), self._ledger)
        self._process = agent_program.start(
            PROGRAM, "start the AP agent", self._configuration, self._log, self._ledger
        )

    def restart_if_ended(self) -> bool:
        """Restart the AP agent if it has ended. Return True if it was restarted.

        Until then, LTE cells are not divided anew, and POX gets no reports.
        """
        if self._process.poll() is None:
            return False
        with self._lock:
            self._end()
            self._launch()
        return True

    def _wait_for(self, silent: set[str]) -> None:
        """Wait until the AP agent has reported every access point in `silent`.

        When this returns, the agent also sets the rates of the stations in LTE cells. Raises
        `LabError` if the agent ends or a report does not come within `TIMEOUT_S`.
        """
        deadline = time.monotonic() + TIMEOUT_S
        self._reports.settimeout(0.5)
        while silent:
            try:
                if report := self._receive():
                    silent.discard(report.ap)
            except TimeoutError as problem:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise LabError(
                        f"start the AP agent: no report of {', '.join(sorted(silent))}: "
                        f"{agent_program.last_line(self._log)}. See {self._log}"
                    ) from problem
        self._reports.setblocking(False)

    def _receive(self) -> ApReport | None:
        """Return the next report; None if the datagram is not from the AP agent of this run."""
        try:
            return read_ap_report(self._reports.recv(DATAGRAM_BYTES), self._key)
        except MessageRefused:
            return None

    def occupancy(self, tiers: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
        """Return the mean MAC occupancy of each access point since the last call.

        `tiers[user][ap]` is the tier of a user at an access point. If an access point has not
        reported since the last call, its previous mean is returned once more.
        """
        new: dict[str, list[float]] = {}
        while True:
            try:
                report = self._receive()
            except BlockingIOError:
                break
            if report is None:
                continue
            here = {user: own[report.ap] for user, own in tiers.items() if report.ap in own}
            if (measured := report.occupancy(here)) is not None:
                new.setdefault(report.ap, []).append(measured)
        self._occupancies |= new
        return {ap: sum(values) / len(values) for ap, values in self._occupancies.items()}

    def set_station(self, ap: str, station: radio_cell.Station) -> None:
        """Send the AP agent the new rate, weight and signal strength of a station at `ap`."""
        fields = {"rate_bps": station.rate_bps, "weight": station.weight}
        self._send(ap=ap, user=station.user, rssi_dbm=station.rssi_dbm, **fields)

    def hand_over(self, old: str, new: str, station: radio_cell.Station) -> None:
        """Notify the AP agent that a user has moved from access point `old` to `new`.

        `station` describes the user at the new access point.
        """
        fields = {"rate_bps": station.rate_bps, "weight": station.weight}
        moved = fields | {"rssi_dbm": station.rssi_dbm}
        self._send(**{"ap": new, "user": station.user, "from": old, "station": moved})

    def _send(self, **change: Any) -> None:
        """Send a change to the AP agent. If it has ended, the change is for the restarted one."""
        line = json.dumps(change)
        with self._lock:
            assert self._process.stdin is not None
            apply_change(self._aps, line)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """End the AP agent by closing its standard input; kill the agent if it does not end."""
        self._reports.close()
        self._end()

    def _end(self) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and a change was not written
                self._process.stdin.close()
        shell.wait_or_kill(self._process)


def access_points(
    topology: Topology, wiring: Wiring, uploaders: Container[str]
) -> dict[str, AccessPoint]:
    """Return the access points of a network by their names; `uploaders` have uploads."""
    sharing: dict[str, list[str]] = {}
    for cell in topology.cells:
        if cell.medium:
            sharing.setdefault(cell.medium, []).append(radio_port(cell.ap))
    return {
        cell.ap: _access_point(cell, wiring, uploaders, sharing.get(cell.ap, ()))
        for cell in topology.cells
    }


def _access_point(
    cell: Cell, wiring: Wiring, uploaders: Container[str], sharing: Sequence[str]
) -> AccessPoint:
    ports = {each.user: wiring.at(each.user, cell.ap).port for each in cell.stations}
    stations = {
        each.user: Station(
            each.rate_bps,
            each.weight,
            ports[each.user],
            each.user in uploaders,
            each.rssi_dbm,
            uplink_device(ports[each.user]),
        )
        for each in cell.stations
    }
    device, collisions = radio_port(cell.ap), cell.collisions and not cell.medium
    kind = "wmediumd" if cell.air == "wmediumd" else cell.kind
    return AccessPoint(kind, device, stations, collisions, cell.loss_ppm, cell.medium, sharing)
