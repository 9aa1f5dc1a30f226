"""Build the emulated network of a run, and start POX and the programs in the hosts.

POX, the SDN controller, is started first, because it loads slowly and needs only a description of
the network. Every resource is recorded in the ledger (machine/ledger.py) before it is made. So it
can be removed even after a crash.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Container, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from lab.congestion import NEEDS_ECN
from lab.engines.mininet import agents
from lab.engines.mininet.agents import ApAgentProcess, HostAgentProcess
from lab.engines.mininet.controller_client import ControllerClient, RunningStrategy
from lab.engines.mininet.ebpf.load import Laws
from lab.engines.mininet.kernel.cell_maps import PINS
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network import packet_programs, real_medium
from lab.engines.mininet.network.links import Links
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.network.real_medium import RealMedium
from lab.engines.mininet.traffic import probes
from lab.engines.mininet.traffic.processes import TrafficProcesses
from lab.errors import LabError, RequestError
from lab.radio.cell import BOTH_WAYS, Station, Towards
from lab.run.recorder import Recorder
from lab.scenario.interfaces import Interfaces
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface, Topology, Wiring, as_json, wire

STATE = Path("/run/multipath-lab")
SCRATCH = STATE / "wifi"  # files of hostapd, and mounted namespaces
KEY = STATE / "key"  # of the messages between POX and the agents
RecordEvent = Callable[..., None]  # kind, then fields


class EmulatedNetwork:
    """The emulated network of a run, with the controller POX and the programs in the hosts.

    The caller closes the exit stack `undo` at the end of the run. Closing it stops POX and all
    programs. `host_agent` is None until the host agent is started.
    """

    links: Links
    network: Network
    programs: TrafficProcesses
    stations: Stations

    def __init__(
        self, scenario: Scenario, recorder: Recorder, undo: ExitStack, record_event: RecordEvent
    ) -> None:
        self.scenario, self.recorder = scenario, recorder
        self._undo, self._record_event = undo, record_event
        self.topology, self.wiring = scenario.network, wire(scenario.network)
        self.ledger = Ledger()
        roles = Interfaces(scenario).roles
        self.network = Network(
            self.topology, self.wiring, self.ledger, SCRATCH, roles, scenario.multipath
        )
        self.host_agent: HostAgentProcess | None = None
        self.misleading: list[str] = []  # measurements of paths that make the run worthless
        running = RunningStrategy(scenario.strategy.name, scenario.strategy.params)
        folder, upstream = recorder.folder / "pox", upstreams.folder("pox")
        self.pox = ControllerClient(folder, upstream, self.ledger, running, KEY)
        # the pinned map of expected rates; None if hosts limit pacing rates instead of windows
        self.expected = PINS / "expected" / "rates" if scenario.multipath.by_window else None

    def clean_up(self) -> None:
        """Remove every resource in the ledger, such as processes and network interfaces.

        The ledger lists the resources of this run, and of an earlier run that was killed. Raises
        `LabError` if a resource cannot be removed.
        """
        problems = self.ledger.undo_all()
        if problems:
            raise LabError(f"clean up: {'; '.join(problems)}. Type: ./run_lab.sh clean --force")

    def build(self) -> None:
        """Build the network, start POX and the programs in the hosts, and measure every link.

        The time until all switches were connected to POX is recorded in manifest.json
        (`network_up_s`).
        """
        began_s = time.monotonic()
        self._start_pox()
        self._build_network()
        self._use_ecn()
        self._start_servers()
        self._connect_switches()
        self.recorder.describe(network_up_s=round(time.monotonic() - began_s, 2))
        self._measure_links()

    def pids(self) -> dict[str, int]:
        """Return the process ID of each host that has been created, by the name of the host.

        An emulated host is a process in a network namespace of its own.
        """
        return self.network.pids()

    def users_with_traffic(self) -> list[str]:
        """Return the users that have flows in the scenario, in the order of the topology."""
        users = {flow.user for flow in self.scenario.traffic}
        return [user for user in self.topology.users if user in users]

    def users_of(self, direction: str) -> frozenset[str]:
        """Return the users that have a flow in `direction`: "down" (data to the user) or "up"."""
        return frozenset(user for user, own in self.scenario.data_flows if own == direction)

    def _start_pox(self) -> None:
        STATE.mkdir(parents=True, exist_ok=True)
        write_secret(KEY, secrets.token_hex(16), self.ledger)
        self._undo.callback(self.pox.stop)
        buffer_kb, scale = self.scenario.multipath.receive_buffer_kb, self.scenario.rate_scale
        flows = self.scenario.data_flows
        self.pox.start(as_json(self.topology, self.wiring, buffer_kb, scale, flows))

    def _build_network(self) -> None:
        self.recorder.log("network: nodes, bridges, hostapd, association")
        SCRATCH.mkdir(parents=True, exist_ok=True)
        self.ledger.record("folder", path=str(SCRATCH))
        # hosts see only what was mounted before they were created
        packet_programs.mount_pins(self.ledger)
        self._undo.callback(self.network.stop)
        if real_medium.is_used(self.topology.cells):
            self._use_wmediumd()
        self.network.create()
        users = self.users_with_traffic()
        hosts = dict.fromkeys([*users, *map(self.topology.server_of, users)])
        # these programs load while the network is built
        self.programs = TrafficProcesses(self.network, self.ledger, hosts)
        self._undo.callback(self.programs.stop)
        self.network.build()
        radios = self.topology.ids("wifi")
        wired = [each.port for each in self.wiring.interfaces if each.link not in radios]
        packet_programs.replace_packets(wired, self.ledger)
        self.host_agent = self._start_host_agent()  # it loads while links are shaped
        self.recorder.log("shaping: links and cells")
        flows = self.scenario.data_flows
        self.links = Links(self.topology, self.wiring, self.network, self.ledger, flows)
        self.links.start()
        self.stations = Stations(self.topology, self.wiring, self.links)

    def _use_wmediumd(self) -> None:
        """Use the program wmediumd as the model of the radio channel.

        The positions of the stations are recorded in manifest.json.
        """
        medium = RealMedium(self.topology.cells, self.wiring, self.ledger)
        self.network.medium = medium
        self._undo.callback(medium.stop)
        self.recorder.describe(wmediumd=medium.to_json())

    def _start_host_agent(self) -> HostAgentProcess:
        settings = agents.settings_of(
            self.topology,
            self.wiring,
            self.network,
            self.scenario.multipath,
            KEY.read_text(),
            uploaders=self.users_of("up") - self.users_of("down"),
            interval_s=self.scenario.strategy.params["interval_s"],
            expected=self.expected,
        )
        log = self.recorder.folder / "hosts.log"
        agent = HostAgentProcess(STATE / "hosts.json", settings, self.ledger, log)
        self._undo.callback(agent.close)
        return agent

    def open_laws(self) -> Laws:
        """Return a loader of congestion controls that are eBPF programs ("laws").

        All loaded programs are unloaded at the end of the run.
        """
        if self.expected:
            self.ledger.record("pin", path=str(self.expected.parent))
        laws = Laws(self.expected)
        self._undo.callback(laws.close)
        return laws

    def _use_ecn(self) -> None:
        """Let all hosts ask for ECN, and accept it, if the scenario says so."""
        if self.scenario.multipath.ecn:
            ask = ["sysctl", "-qw", "net.ipv4.tcp_ecn=1"]
            for host in self.programs.hosts:
                self.network.run(host, ask, f"use ECN on {host}")

    def _start_servers(self) -> None:
        """Make the traffic program of every server listen for connections, also for those whose
        congestion control asks for ECN.

        Record a warning event for each server whose kernel refuses Multipath TCP.
        """
        servers = [host for host in self.programs.hosts if host in self.topology.ids("server")]
        if not self.scenario.multipath.server_enabled:
            switch_off = ["sysctl", "-qw", "net.mptcp.enabled=0"]
            for server in servers:
                self.network.run(server, switch_off, f"switch MPTCP off on {server}")
        cc = min(NEEDS_ECN.intersection(self.scenario.congestion_controls), default=None)
        commands = {server: {"do": "serve", "mptcp": True, "cc": cc} for server in servers}
        for server, answer in self.programs.send_all(commands).items():
            if not answer["mptcp"]:
                text = (
                    f"{server} refuses Multipath TCP (net.mptcp.enabled=0): "
                    "its connections are plain TCP"
                )
                self._record_event("warning", text=text, mptcp=False)

    def _connect_switches(self) -> None:
        self.recorder.log("POX: switches connect")
        self.network.connect_controller()
        self.pox.wait_ready()

    def _measure_links(self) -> None:
        """Measure the path between each interface of the users with traffic and the user's server.

        Paths that share no link and no radio channel are measured at the same time. The uplink rate
        is measured only for LTE interfaces and for users that upload. A warning event is recorded
        if a rate or round-trip time is more than 10 % off its expected value. The run is marked as
        overloaded if a value is more than 30 % off.
        """
        self.recorder.log("measuring every link")
        users = self.users_with_traffic()
        interfaces = [each for each in self.wiring.interfaces if each.node in users]
        measured = dict[str, Any]()
        for together in probes.rounds(self.topology, interfaces):
            for name, (comparison, complaints) in probes.best_attempts(
                [each.name for each in together], partial(self._probe, together)
            ).items():
                measured[name] = comparison.to_json()
                far_off = [*comparison.complaints(name, probes.MISLEADING)]
                self.misleading += [f"before the start, {each}" for each in far_off]
                for complaint in complaints:
                    marks = {"overloaded": True} if complaint in far_off else {}
                    self._record_event("warning", text=complaint, **marks)
        self.recorder.describe(links_measured=measured)

    def _probe(
        self, interfaces: Iterable[Interface], names: Container[str]
    ) -> dict[str, probes.Comparison]:
        """Measure the paths to those `interfaces` whose name is in `names`, all at the same time.

        Return the measured and the expected values, by the name of the interface.
        """
        scale = self.scenario.rate_scale
        probed = [each for each in interfaces if each.name in names]
        taken_ns = self.links.transmission_ns()
        expected = {
            each.node: probes.expected_figures(
                self.topology, each, scale, self._measures_up(each), taken_ns
            )
            for each in probed
        }
        requests = {
            each.node: {
                "do": "probe",
                "server": self.wiring.of(self.topology.server_of(each.node))[0].address,
                "bind": each.address,
                "burst": probes.burst(expected[each.node], scale),
                "up": self._measures_up(each),
            }
            for each in probed
        }
        answers = self.programs.send_all(requests)
        return {
            each.name: probes.compare(
                expected[each.node],
                answers[each.node]["rate_bps"],
                answers[each.node]["rtt_ms"],
                scale,
                answers[each.node]["up_bps"],
            )
            for each in probed
        }

    def _measures_up(self, interface: Interface) -> bool:
        is_bearer = interface.link in self.topology.ids("lte")
        return is_bearer or interface.node in self.users_of("up")


class Stations:
    """The current rate, weight and signal strength of each user at each access point.

    Each change is passed on to the WiFi cell and to the AP agent. The run's main thread and the
    thread that moves users both use this object.
    """

    def __init__(self, topology: Topology, wiring: Wiring, links: Links) -> None:
        self.wiring, self._links = wiring, links
        self.agent: ApAgentProcess | None = None
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in topology.cells for station in cell.stations
        }
        self._wifi = {cell.ap for cell in topology.cells if cell.kind == "wifi"}
        self._leaving: set[str] = set()
        self._lock = RLock()

    def count(self, ap: str) -> int:
        with self._lock:
            return sum(where == ap for where, _user in self.stations)

    def interface(self, user: str, ap: str) -> Interface:
        return self.wiring.at(user, ap)

    def set_rate(
        self, ap: str, user: str, rate_bps: int, ways: Collection[Towards] = BOTH_WAYS
    ) -> None:
        """Set the rate [bit/s] that a user has in some directions while no other user of the access
        point sends.

        Raise `RequestError` if the user has just moved to another access point.
        """
        with self._lock:
            if (ap, user) not in self.stations:
                raise RequestError(f"set the rate of {user} at {ap}: {user} has moved away from it")
            self.set_station(ap, self.stations[ap, user].with_rate(rate_bps, ways))

    def set_station(self, ap: str, station: Station) -> None:
        """Replace the rate, weight and signal strength of a user at access point `ap`.

        `station` names the user. During a handover of the user, a WiFi cell gets the new values
        only when the handover ends.
        """
        with self._lock:
            if self.stations[ap, station.user] == station:
                return
            self.stations[ap, station.user] = station
            if ap in self._wifi and station.user in self._leaving:
                return
            self._links.set_station(ap, self.wiring.at(station.user, ap).address, station)
            if self.agent:
                self.agent.set_station(ap, station)

    def hand_over(self, user: str, old: str, new: str, station: Station) -> None:
        """Begin to move a user from WiFi access point `old` to `new`.

        `station` has the user's values at `new`. The user is in no cell until `associated` is
        called.
        """
        with self._lock:
            if user not in self._leaving:
                self._links.remove_station(old, self.wiring.at(user, old).address)
            self._leaving.add(user)
            self.wiring = self.wiring.handed_over(user, old, new)
            del self.stations[old, user]
            self.stations[new, user] = station

    def associated(self, user: str, old: str, new: str) -> None:
        """End the handover of a user from access point `old` to `new`.

        The user is added to the cell of `new`, and the AP agent is notified.
        """
        with self._lock:
            self._leaving.discard(user)
            station = self.stations[new, user]
            self._links.set_station(new, self.wiring.at(user, new).address, station)
            if self.agent:
                self.agent.hand_over(old, new, station)
