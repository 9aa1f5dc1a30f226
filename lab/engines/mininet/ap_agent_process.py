"""Start the AP agent, receive its reports, and send it changes of stations.

The AP agent is a separate process, which measures the queues of all access points
(programs/ap_agent.py).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from controller.agent_messages import ApReport, read_ap_report
from controller.errors import MessageRefused
from lab.engines.mininet import pox_process as pox
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network.lte_bearers import uplink_device
from lab.engines.mininet.programs.access_points import AccessPoint, Station
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
        configuration = state / "agents.json"
        uploading = {*uploaders, *topology.relays}
        aps = {each.ap: asdict(_access_point(each, wiring, uploading)) for each in topology.cells}
        for cell in topology.cells:
            if cell.medium:
                aps[cell.medium]["sharing"] = (*aps[cell.medium]["sharing"], radio_port(cell.ap))
        ports = [pox.AP_AGENT_PORT, self._reports.getsockname()[1]]
        self._key = key
        write_secret(configuration, json.dumps({"aps": aps, "ports": ports, "key": key}), ledger)
        self._process = self._start(configuration)
        ledger.record("process", pid=self._process.pid)
        try:
            self._wait_for(set(aps))
        except BaseException:
            self.close()
            raise

    def _start(self, configuration: Path) -> subprocess.Popen[Any]:
        with self._log.open("a") as errors:
            return shell.spawn(
                [sys.executable, "-SE", "-m", PROGRAM, str(configuration)],
                "start the AP agent",
                stdin=subprocess.PIPE,
                stderr=errors,
                cwd=pox.PROJECT,
                start_new_session=True,
            )

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
                    last = self._log.read_text().strip().splitlines()[-1:] or ["its log is empty"]
                    raise LabError(
                        f"start the AP agent: no report of {', '.join(sorted(silent))}: {last[0]}. "
                        f"See {self._log}"
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
            new.setdefault(report.ap, []).append(report.occupancy(here))
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
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(change) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the AP agent by closing its standard input; kill the agent if it does not end."""
        self._reports.close()
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _access_point(cell: Cell, wiring: Wiring, uploaders: Container[str]) -> AccessPoint:
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
    return AccessPoint(cell.kind, device, stations, collisions, cell.loss_ppm, cell.medium)
