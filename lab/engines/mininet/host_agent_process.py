"""Start the host agent, and read from its output which commands it has run on the hosts.

The host agent is one process that reports subflows to POX and changes them for POX
(programs/host_agent.py). POX and the agent exchange messages directly, not through this process.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from controller import paths
from lab.engines.mininet import agent_program, controller_client
from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.cell_clock import PINS
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network.links import has_shape
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.programs import userspace_path_manager
from lab.engines.mininet.programs.controlled_host import HostSettings
from lab.engines.mininet.programs.host_agent import Settings
from lab.errors import LabError
from lab.topologies.topology import Interface, Topology, Trunk, Wiring

PROGRAM = "lab.engines.mininet.programs.host_agent"
START_TIMEOUT_S = 30
READ_BYTES = 1 << 16
REPORT_PERIOD_S = (0.5, 1.0)  # at least, at most
PERIODS_PER_STEP = 4  # of control


class HostAgentProcess:
    """Hold the process of the host agent: one process for all hosts that use Multipath TCP."""

    def __init__(self, configuration: Path, settings: Settings, ledger: Ledger, log: Path) -> None:
        """Write the settings into the file `configuration`, and start the host agent with it.

        The agent's standard error is appended to the file `log`.
        """
        write_secret(configuration, json.dumps(settings.to_json()), ledger)
        self._configuration, self._ledger, self._log = configuration, ledger, log
        self._process: subprocess.Popen[bytes]
        self._launch()

    def _launch(self) -> None:
        pipes = {"stdout": subprocess.PIPE, "text": False}
        self._process = agent_program.start(
            PROGRAM, "start the host agent", self._configuration, self._log, self._ledger, **pipes
        )
        assert self._process.stdout is not None
        self._output, self._unread = self._process.stdout.fileno(), b""

    def wait(self) -> None:
        """Wait for the first line of the host agent's output: it has begun to report to POX.

        Raises `LabError` with the end of the agent's log if the line does not come.
        """
        readable, _, _ = select.select([self._output], [], [], START_TIMEOUT_S)
        if not readable or not self._read():
            last = agent_program.last_line(self._log)
            raise LabError(f"start the host agent: {last}. See {self._log}")

    def restart_if_ended(self) -> bool:
        """Restart the host agent if it has ended. Return True if it was restarted.

        Backup flags and pacing rates that the ended process has set remain in the kernel.
        """
        if self._process.poll() is None:
            return False
        self.close()
        self._launch()
        return True

    def write_journal(self) -> None:
        """Pass the commands that the host agent has run since the last call to the journals.

        A journal is a function that records the commands of a run (machine/shell.py).
        """
        while select.select([self._output], [], [], 0)[0] and self._read():
            pass
        whole, _, self._unread = self._unread.rpartition(b"\n")
        for line in filter(None, whole.split(b"\n")):
            done = json.loads(line)
            if "argv" in done:
                shell.journal_command(done["argv"], done.get("stdin"), at=done["at"])

    def _read(self) -> bool:
        """Read the available output of the process; return False at the end of the output."""
        data = os.read(self._output, READ_BYTES)
        self._unread += data
        return bool(data)

    def close(self) -> None:
        """End the host agent by closing its standard input; kill the agent if it does not end."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        shell.wait_or_kill(self._process)


def settings_of(
    topology: Topology,
    wiring: Wiring,
    network: Network,
    key: str,
    *,
    uploaders: Container[str],
    interval_s: float,
    expected: Path | None = None,
) -> Settings:
    """Return the settings of the host agent for the hosts of a network.

    These are the servers, the multipath users, and the users that send data over plain TCP.

    `key` authenticates the messages between POX and the host agent. `uploaders` are the users that
    only send data. `interval_s` is the time between two control steps of POX. `expected` is the
    path of the pinned map of expected rates; None if hosts limit subflows by pacing rates.
    """
    userspace = userspace_path_manager.hosts_that_need_it(topology, wiring)
    hosts = {}
    sending = [user for user in topology.users if user in uploaders]
    controlled = dict.fromkeys((*topology.multipath, *sending, *topology.ids("server")))
    for host in controlled:
        is_user = host in topology.multipath
        own = wiring.of(host) if is_user else ()
        further = userspace_path_manager.further_addresses(wiring, host) if own else []
        hosts[host] = HostSettings(
            pid=network.pid(host),
            endpoints=is_user,
            loss={
                address: ports_along(topology, wiring, each, host in uploaders)
                for each in own
                for address in (each.address, *each.further)
            },
            paced=paced(topology, wiring.of(host)) if expected is None else [],
            opens=further if host in userspace else None,
        )
    at_least_s, at_most_s = REPORT_PERIOD_S
    period_s = min(at_most_s, max(at_least_s, interval_s / PERIODS_PER_STEP))
    controller = ("127.0.0.1", controller_client.HOST_AGENT_PORT)
    return Settings(controller, key, period_s, PINS / "pacing", hosts, expected)


def paced(topology: Topology, interfaces: Iterable[Interface]) -> list[str]:
    """Return the `tc` lines that add an fq qdisc to the wired interfaces of a host, for pacing.

    Radios need no such line, because they have an fq qdisc already.
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
    """Return the switch ports that send the data of a user's interface on its shortest path.

    With `upload`, the data goes from the interface to the user's server, otherwise from the server
    to the interface. The loss of these ports together is the loss on the path.
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
