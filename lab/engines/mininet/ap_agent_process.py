"""The agent of the access points, seen from the runner: start it, hear its reports, tell it about changed rates."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.engines.mininet import pox_process as pox
from lab.engines.mininet import probes
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from lab.radio.cell import Cell
from lab.topologies.topology import Topology, Wiring

TIMEOUT_S = 30
PROGRAM = "lab.engines.mininet.programs.ap_agent"


class Agents:
    """One process for all access points. It reports to POX, and here."""

    def __init__(
        self, topology: Topology, wiring: Wiring, ledger: Ledger, state: Path, log: Path
    ) -> None:
        """`state` is a folder for its configuration, `log` takes what it says when it fails."""
        self.log, self._seen = log, dict[str, list[float]]()
        self._reports = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reports.bind(("127.0.0.1", 0))
        aps = {
            cell.ap: {
                "kind": cell.kind,
                "device": f"{cell.ap}-wlan1",
                "stations": _stations(cell, wiring),
            }
            for cell in topology.cells
        }
        configuration = state / "agents.json"
        ledger.record("file", path=str(configuration))
        configuration.write_text(
            json.dumps({"aps": aps, "ports": [pox.AGENTS_PORT, self._reports.getsockname()[1]]})
        )
        with log.open("a") as errors:
            self._process = shell.spawn(
                [sys.executable, "-SE", "-m", PROGRAM, str(configuration)],
                "start the agent of the access points",
                stdin=subprocess.PIPE,
                stderr=errors,
                cwd=pox.PROJECT,
                start_new_session=True,
            )
        ledger.record("process", pid=self._process.pid)
        try:
            self._wait_for(set(aps))
        except BaseException:
            self.close()
            raise

    def _wait_for(self, silent: set[str]) -> None:
        """Until every access point has reported: from then on LTE shares are kept, and POX sees."""
        deadline = time.monotonic() + TIMEOUT_S
        self._reports.settimeout(0.5)
        while silent:
            try:
                silent.discard(json.loads(self._reports.recv(65536))["ap"])
            except TimeoutError as problem:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = self.log.read_text().strip().splitlines()[-1:] or ["it said nothing"]
                    raise LabError(
                        f"start the agent of {', '.join(sorted(silent))}: no report: {said[0]}. See {self.log}"
                    ) from problem
        self._reports.setblocking(False)

    def occupancy(self, tiers: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
        """MAC occupancy per access point since the last call; without a new report the last one holds."""
        new: dict[str, list[float]] = {}
        while True:
            try:
                report = json.loads(self._reports.recv(65536))
            except BlockingIOError:
                break
            new.setdefault(report["ap"], []).append(probes.tier1_occupancy(report, tiers))
        self._seen |= new
        return {ap: sum(values) / len(values) for ap, values in self._seen.items()}

    def set_rate(self, ap: str, user: str, rate_bps: int) -> None:
        """A station's rate when alone has changed."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"ap": ap, "user": user, "rate_bps": rate_bps}) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it by ending its input."""
        self._reports.close()
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _stations(cell: Cell, wiring: Wiring) -> dict[str, Any]:
    return {
        each.user: {
            "rate_bps": each.rate_bps,
            "weight": each.weight,
            "device": wiring.at(each.user, cell.ap).port,
        }
        for each in cell.stations
    }
