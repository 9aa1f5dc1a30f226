"""Start the AP agent and the host agent, and talk to them.

Both programs run beside the traffic. The AP agent (programs/ap_agent.py) measures the queues of all
access points. The host agent (programs/host_agent.py) reports subflows to POX, the SDN controller,
and changes subflows on POX's command. The agents exchange messages with POX directly, not through
this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

from controller import paths
from controller.agent_messages import ApReport, read_ap_report
from controller.errors import MessageRefused
from lab.engines.mininet import controller_client
from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.cell_maps import PINS
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network import joins
from lab.engines.mininet.network.links import has_shape, uplink_device
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.programs.ap_agent import AccessPoint, Station, apply_change
from lab.engines.mininet.programs.host_agent import HostSettings, Settings
from lab.errors import LabError
from lab.radio import cell as radio_cell
from lab.radio.cell import Cell
from lab.scenario.schema import Multipath
from lab.topologies.topology import Interface, Topology, Trunk, Wiring, radio_port

AP_AGENT = "lab.engines.mininet.programs.ap_agent"
HOST_AGENT = "lab.engines.mininet.programs.host_agent"
START_TIMEOUT_S = 30
DATAGRAM_BYTES = 65536
READ_BYTES = 1 << 16
REPORT_PERIOD_S = (0.5, 1.0)  # of the host agent: at least, at most
PERIODS_PER_STEP = 4  # of control


def start_agent(
    module: str, doing: str, configuration: Path, log: Path, ledger: Ledger, **options: Any
) -> subprocess.Popen[Any]:
    """Start `python -m MODULE CONFIGURATION`, and record its process ID in the ledger.

    The ledger is the list of what must be removed after the run. The agent ends when its standard
    input is closed. Its standard error is appended to the file `log`. Error messages begin with
    `doing`. `options` are passed to `subprocess.Popen`.
    """
    with log.open("a") as errors:
        process = shell.spawn(
            [sys.executable, "-SE", "-m", module, str(configuration)],
            doing,
            stdin=subprocess.PIPE,
            stderr=errors,
            cwd=controller_client.PROJECT,
            start_new_session=True,
            **options,
        )
    ledger.record("process", pid=process.pid)
    return process


def last_line(log: Path) -> str:
    """Return the last line of a log file, or "its log is empty" if the file is empty."""
    return (log.read_text().strip().splitlines()[-1:] or ["its log is empty"])[0]


class ApAgentProcess:
    """The process of the AP agent, which measures the queues of all access points.

    The agent sends its reports to POX and to the main process of the run.
    """

    def __init__(
        self,
        aps: dict[str, AccessPoint],
        ledger: Ledger,
        folders: tuple[Path, Path],
        key: str,
    ) -> None:
        """Start the AP agent, and wait until it has reported every access point once.

        `folders` are two folders: the first for the configuration file, the second for the log.
        `key` is the secret of the run; each report begins with it. Raises `LabError` if the agent
        ends or does not report every access point in time.
        """
        state, run = folders
        self._log, self._occupancies = run / "agents.log", dict[str, list[float]]()
        self._reports = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reports.bind(("127.0.0.1", 0))
        self._aps = aps
        self._ledger, self._key, self._configuration = ledger, key, state / "agents.json"
        self._lock = Lock()  # users are moved in another thread
        self._launch()
        try:
            self._wait_for(set(self._aps))
        except BaseException:
            self.close()
            raise

    def _launch(self) -> None:
        ports = [controller_client.AP_AGENT_PORT, self._reports.getsockname()[1]]
        aps = {name: asdict(ap) for name, ap in self._aps.items()}
        configuration = {"aps": aps, "ports": ports, "key": self._key}
        write_secret(self._configuration, json.dumps(configuration), self._ledger)
        self._process = start_agent(
            AP_AGENT, "start the AP agent", self._configuration, self._log, self._ledger
        )

    def restart_if_ended(self) -> bool:
        """Restart the AP agent if it has ended. Return True if it was restarted.

        Without the agent, POX gets no reports, and the rates of the users in an LTE cell no longer
        adapt to their traffic.
        """
        if self._process.poll() is None:
            return False
        with self._lock:
            self._end()
            self._launch()
        return True

    def _wait_for(self, silent: set[str]) -> None:
        """Wait until the AP agent has reported every access point in `silent`.

        Raises `LabError` if the agent ends, or if a report is missing after `START_TIMEOUT_S`
        seconds.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        self._reports.settimeout(0.5)
        while silent:
            try:
                if report := self._receive():
                    silent.discard(report.ap)
            except TimeoutError as problem:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise LabError(
                        f"start the AP agent: no report of {', '.join(sorted(silent))}: "
                        f"{last_line(self._log)}. See {self._log}"
                    ) from problem
        self._reports.setblocking(False)

    def _receive(self) -> ApReport | None:
        """Return the next report; None for a datagram that this run's AP agent did not send."""
        try:
            return read_ap_report(self._reports.recv(DATAGRAM_BYTES), self._key)
        except MessageRefused:
            return None

    def occupancy(self, tiers: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
        """Return the mean MAC occupancy (0 to 1) of each access point since the last call.

        MAC occupancy says how busy the radio channel is. `tiers[user][ap]` is 1 if the user's
        subflow through the access point is primary (Tier 1), and 2 if it is secondary (Tier 2). An
        access point without a new report keeps its previous mean.
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
        fields = _rates(station)
        self._send(ap=ap, user=station.user, rssi_dbm=station.rssi_dbm, **fields)

    def hand_over(self, old: str, new: str, station: radio_cell.Station) -> None:
        """Notify the AP agent that a user has moved from access point `old` to `new`.

        `station` has the user's rate, weight and signal strength at `new`.
        """
        moved = {**_rates(station), "rssi_dbm": station.rssi_dbm}
        self._send(**{"ap": new, "user": station.user, "from": old, "station": moved})

    def _send(self, **change: Any) -> None:
        """Send a change to the AP agent. An agent that has ended gets the change at its restart."""
        line = json.dumps(change)
        with self._lock:
            assert self._process.stdin is not None
            apply_change(self._aps, line)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """End the AP agent by closing its standard input. Kill an agent that does not end."""
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
    """Return the AP agent's configuration of each access point, by the name of the access point.

    `uploaders` are the stations that send data: users, and relays (switches that connect further
    hosts by radio).
    """
    sharing: dict[str, list[str]] = {}
    for cell in topology.cells:
        if cell.medium:
            sharing.setdefault(cell.medium, []).append(radio_port(cell.ap))
    return {
        cell.ap: _access_point(cell, wiring, uploaders, sharing.get(cell.ap, ()))
        for cell in topology.cells
    }


def _rates(station: radio_cell.Station) -> dict[str, float | None]:
    return {
        "rate_bps": station.rate_bps,
        "up_bps": station.up_bps,
        "weight": station.weight,
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
            each.up_bps,
        )
        for each in cell.stations
    }
    device = radio_port(cell.ap)
    collisions = cell.collisions and not cell.medium and cell.air == "cell"  # others have their own
    kind = "wmediumd" if cell.air == "wmediumd" else cell.kind
    return AccessPoint(kind, device, stations, collisions, cell.loss_ppm, cell.medium, sharing)


class HostAgentProcess:
    """The process of the host agent, which serves all hosts of the network."""

    def __init__(self, configuration: Path, settings: Settings, ledger: Ledger, log: Path) -> None:
        """Write `settings` into the file `configuration`, and start the host agent with this file.

        The agent's standard error is appended to the file `log`.
        """
        write_secret(configuration, json.dumps(settings.to_json()), ledger)
        self._configuration, self._ledger, self._log = configuration, ledger, log
        self._process: subprocess.Popen[bytes]
        self._launch()

    def _launch(self) -> None:
        pipes = {"stdout": subprocess.PIPE, "text": False}
        self._process = start_agent(
            HOST_AGENT,
            "start the host agent",
            self._configuration,
            self._log,
            self._ledger,
            **pipes,
        )
        assert self._process.stdout is not None
        self._output, self._unread = self._process.stdout.fileno(), b""

    def wait(self) -> None:
        """Wait for the host agent's first line of output, which says that the agent is ready.

        Raises `LabError`, with the last line of the agent's log, if the agent ends or needs more
        than `START_TIMEOUT_S` seconds.
        """
        readable, _, _ = select.select([self._output], [], [], START_TIMEOUT_S)
        if not readable or not self._read():
            last = last_line(self._log)
            raise LabError(f"start the host agent: {last}. See {self._log}")

    def restart_if_ended(self) -> bool:
        """Restart the host agent if it has ended. Return True if it was restarted.

        Backup flags and pacing rates that the agent has set remain in the kernel.
        """
        if self._process.poll() is None:
            return False
        self.close()
        self._launch()
        return True

    def write_journal(self) -> None:
        """Append the host agent's new commands to commands.sh, the script of a run's commands.

        New are the commands that the agent has reported since the last call of this method.
        """
        while select.select([self._output], [], [], 0)[0] and self._read():
            pass
        whole, _, self._unread = self._unread.rpartition(b"\n")
        for line in filter(None, whole.split(b"\n")):
            done = json.loads(line)
            if "argv" in done:
                shell.journal_command(done["argv"], done.get("stdin"), at=done["at"])

    def _read(self) -> bool:
        """Append the agent's available output to `_unread`; return False if the output ended."""
        data = os.read(self._output, READ_BYTES)
        self._unread += data
        return bool(data)

    def close(self) -> None:
        """End the host agent by closing its standard input. Kill an agent that does not end."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        shell.wait_or_kill(self._process)


def settings_of(
    topology: Topology,
    wiring: Wiring,
    network: Network,
    multipath: Multipath,
    key: str,
    *,
    uploaders: Container[str],
    interval_s: float,
    expected: Path | None = None,
) -> Settings:
    """Return the settings of the host agent.

    The agent controls the servers, the multipath users and the `uploaders`, which are the users
    that send data and receive none. `key` authenticates the messages between POX and the agent.
    `interval_s` is the time between two control steps of POX. `expected` is the path of the pinned
    eBPF map that holds a rate limit for each subflow; it is None if subflows are limited by pacing
    rates instead.
    """
    userspace = joins.hosts_that_need_it(topology, wiring, multipath)
    hosts = {}
    sending = [user for user in topology.users if user in uploaders]
    controlled = dict.fromkeys((*topology.multipath, *sending, *topology.ids("server")))
    for host in controlled:
        is_user = host in topology.multipath
        own = wiring.of(host) if is_user else ()
        opened = joins.joins(topology, wiring, multipath, host) if own else []
        hosts[host] = HostSettings(
            pid=network.pid(host),
            endpoints=is_user,
            loss={
                address: ports_along(topology, wiring, each, host in uploaders)
                for each in own
                for address in (each.address, *each.further)
            },
            paced=pacing_lines(topology, wiring.of(host)) if expected is None else [],
            opens=opened if host in userspace else None,
        )
    at_least_s, at_most_s = REPORT_PERIOD_S
    period_s = min(at_most_s, max(at_least_s, interval_s / PERIODS_PER_STEP))
    controller = ("127.0.0.1", controller_client.HOST_AGENT_PORT)
    return Settings(controller, key, period_s, PINS / "pacing", hosts, expected)


def pacing_lines(topology: Topology, interfaces: Iterable[Interface]) -> list[str]:
    """Return the `tc` commands that add an fq qdisc, for pacing, to a host's wired interfaces.

    Radio interfaces already have an fq qdisc.
    """
    links = {link.id: link for link in topology.links}
    wired = [each for each in interfaces if each.link not in topology.ids("wifi")]
    return [
        shaping.paced(each.name, each.link in links and has_shape(links[each.link], topology.cells))
        for each in wired
    ]


def ports_along(
    topology: Topology, wiring: Wiring, interface: Interface, upload: bool
) -> list[str]:
    """Return the switch ports that send a user's data on the shortest path through the network.

    With `upload`, the data goes from `interface` to the user's server, otherwise from the server to
    `interface`. The loss of the path is the loss at all these ports together.
    """
    server = wiring.of(topology.server_of(interface.node))[0]
    neighbours: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        neighbours[trunk.a].add(trunk.b)
        neighbours[trunk.b].add(trunk.a)
    path = paths.between(neighbours, server.switch, interface.switch)[0]
    steps = pairwise(path[::-1] if upload else path)
    ports = [next(_ports(wiring.trunks, here, there)) for here, there in steps]
    return ports if upload else [*ports, interface.port]


def _ports(trunks: Iterable[Trunk], here: str, there: str) -> Iterator[str]:
    for trunk in trunks:
        if (trunk.a, trunk.b) == (here, there):
            yield trunk.a_port
        elif (trunk.b, trunk.a) == (here, there):
            yield trunk.b_port
