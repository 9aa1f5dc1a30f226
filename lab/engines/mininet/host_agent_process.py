"""The agents of the hosts, seen from the runner: it starts them, hears what they did, and tells them nothing."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from controller import paths
from lab.engines.mininet import pox_process as pox
from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import wifi_cell as cell
from lab.engines.mininet.network.links import has_shape
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.programs import userspace_path_manager as opener
from lab.errors import LabError
from lab.topologies.topology import Interface, Topology, Trunk, Wiring

PROGRAM = "lab.engines.mininet.programs.host_agent"
START_TIMEOUT_S = 30
READ_BYTES = 1 << 16
REPORTS_EVERY_S = (
    0.5,
    1.0,
)  # at least, at most; whoever must know sooner asks for shorter control intervals


class HostAgents:
    """One process for all hosts that speak Multipath TCP. It hears POX, not the runner."""

    def __init__(
        self, configuration: Path, asked: dict[str, Any], ledger: Ledger, log: Path
    ) -> None:
        """Start it; `configuration` is the file that says `asked` to it, `log` takes what it refuses."""
        write_secret(configuration, json.dumps(asked), ledger)
        self._configuration, self._ledger, self._log = configuration, ledger, log
        self._process: subprocess.Popen[bytes]
        self._launch()

    def _launch(self) -> None:
        with self._log.open("a") as errors:
            streams = {
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": errors,
                "text": False,
            }
            argv = [sys.executable, "-SE", "-m", PROGRAM, str(self._configuration)]
            self._process = shell.spawn(
                argv,
                "start the agents of the hosts",
                cwd=pox.PROJECT,
                start_new_session=True,
                **streams,
            )
        self._ledger.record("process", pid=self._process.pid)
        assert self._process.stdout is not None
        self._output, self._unread = self._process.stdout.fileno(), b""

    def wait(self) -> None:
        """Until they report: then they write a first line."""
        readable, _, _ = select.select([self._output], [], [], START_TIMEOUT_S)
        if not readable or not self._read():
            said = self._log.read_text().strip().splitlines()[-1:] or ["it said nothing"]
            raise LabError(f"start the agents of the hosts: {said[0]}. See {self._log}")

    def revive(self) -> bool:
        """Start them again if they have ended; True if they had. What they did is in the kernel, and stays."""
        if self._process.poll() is None:
            return False
        self.close()
        self._launch()
        return True

    def tell(self) -> None:
        """Write what they did since the last call into the journals."""
        while select.select([self._output], [], [], 0)[0] and self._read():
            pass
        whole, _, self._unread = self._unread.rpartition(b"\n")
        for line in whole.splitlines():
            done = json.loads(line)
            if "argv" in done:
                shell.journal_command(done["argv"], done.get("stdin"), at=done["at"])

    def _read(self) -> bool:
        """Take what has come; False when there will be no more."""
        data = os.read(self._output, READ_BYTES)
        self._unread += data
        return bool(data)

    def close(self) -> None:
        """End the process by ending its input."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def write_secret(path: Path, text: str, ledger: Ledger) -> None:
    """A file for the eyes of this user only."""
    ledger.record("file", path=str(path))
    path.unlink(missing_ok=True)
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)


def asked_of(
    topology: Topology,
    wiring: Wiring,
    network: Network,
    key: str,
    *,
    goes_up: bool,
    interval_s: float,
) -> dict[str, Any]:
    """The configuration of the agents; `goes_up`: data goes to the servers, `interval_s` lies between two steps of control."""
    hosts: dict[str, Any] = {}
    crowded = opener.crowded(topology, wiring)
    for host in (*topology.multipath, *topology.ids("server")):
        own = wiring.of(host) if host in topology.multipath else ()
        loss = {
            address: ports_along(topology, wiring, each, goes_up)
            for each in own
            for address in (each.address, *each.further)
        }
        hosts[host] = {
            "pid": network.pid(host),
            "endpoints": host in topology.multipath,
            "loss": loss,
        }
        hosts[host]["paced"] = paced(topology, wiring.of(host))
        if host in crowded:
            hosts[host]["opens"] = opener.further_addresses(wiring, host) if own else []
    period_s = min(REPORTS_EVERY_S[1], max(REPORTS_EVERY_S[0], interval_s / 4))
    told = {"controller": ["127.0.0.1", pox.HOSTS_PORT], "key": key, "period_s": period_s}
    return told | {"pins": str(cell.PINS / "pacing"), "hosts": hosts}


def paced(topology: Topology, interfaces: Iterable[Interface]) -> list[str]:
    """What prepares a host's interfaces for pacing; a radio has its fq already."""
    links = {link.id: link for link in topology.links}
    wired = [each for each in interfaces if not each.name.endswith("wlan0")]
    return [
        shaping.paced(each.name, each.link in links and has_shape(links[each.link], topology.cells))
        for each in wired
    ]


def ports_along(
    topology: Topology, wiring: Wiring, interface: Interface, goes_up: bool
) -> list[str]:
    """The switch ports by which data leaves on its shortest way between a user's interface and its server."""
    server = wiring.of(topology.server_of(interface.node))[0]
    near: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        near[trunk.a].add(trunk.b)
        near[trunk.b].add(trunk.a)
    way = paths.between(near, server.switch, interface.switch)[0]
    steps = pairwise(way[::-1] if goes_up else way)
    return [
        *(_port(wiring.trunks, here, there) for here, there in steps),
        *([] if goes_up else [interface.port]),
    ]


def _port(trunks: tuple[Trunk, ...], here: str, there: str) -> str:
    return next(_ports(trunks, here, there))


def _ports(trunks: tuple[Trunk, ...], here: str, there: str) -> Iterator[str]:
    for trunk in trunks:
        if (trunk.a, trunk.b) == (here, there):
            yield trunk.a_port
        elif (trunk.b, trunk.a) == (here, there):
            yield trunk.b_port
