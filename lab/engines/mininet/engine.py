"""The emulation as an engine: build the network, start POX, agents and traffic, sample, apply changes, undo everything.

The order of building matters: POX starts first because it is slow to load, and needs only the description of the
network; what is undone is written into the ledger before it is done; links are measured before anybody uses them.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.mininet import ebpf, execute, probes
from lab.engines.mininet import host_agent_process as host_agents
from lab.engines.mininet import pox_process as pox
from lab.engines.mininet.ap_agent_process import Agents
from lab.engines.mininet.ebpf import build, load
from lab.engines.mininet.host_agent_process import HostAgents
from lab.engines.mininet.install import capabilities
from lab.engines.mininet.machine import lock, shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import wifi_cell
from lab.engines.mininet.network.links import Links
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.telemetry import Telemetry
from lab.engines.mininet.traffic_processes import TrafficProcesses
from lab.engines.mininet.workload import Workload
from lab.errors import LabError
from lab.run.engine import Engine
from lab.run.frame import Frame
from lab.run.recorder import Recorder
from lab.run.report import Report, mptcp_verdict
from lab.scenario.changes import (
    Change,
    SetCongestionControl,
    SetDemand,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetLinkUp,
    SetStationRate,
    SetStrategy,
    SetStrategyParameter,
    SetTier1Demand,
)
from lab.scenario.engine_table import refuse
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface, wire
from lab.topologies.topology_file import describe

STATE = Path("/run/multipath-lab")
KEY = STATE / "key"  # that hosts and POX share


class MininetEngine(Engine):
    """One run of the emulation."""

    def ready(self, scenario: Scenario) -> None:
        """Refuse a machine that cannot emulate it. The VM's guest was looked at from outside."""
        if not os.environ.get("MULTIPATH_LAB_VM"):
            capabilities.require_native()
            build.require(scenario.congestion_controls)

    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Everything up to the first packet of traffic; t = 0 is when the flows start."""
        self.topology, self.scenario, self.recorder = scenario.network, scenario, recorder
        self.wiring = wire(self.topology)
        self.host_agents: HostAgents | None = None
        self._sampled_s = 0.0
        self._undo = ExitStack()
        self._undo.enter_context(lock.hold(f"run {recorder.run_id}", self.options.wait))
        self.ledger = Ledger()
        self._tidy()
        self._undo.enter_context(shell.journal_to(self._journal))
        self._undo.callback(self._tidy)
        self._start_pox()
        self._build_network()
        self._start_servers()
        self._connect_switches()
        self._measure_links()
        self._start_traffic()

    def advance(self, until_s: float) -> list[Frame]:
        """Wait until then, starting and stopping flows on the way, and take one sample."""
        self.workload.until(until_s)
        if self.pox.revive():
            self._event("warning", text="POX had ended; it was started again. See pox/log.txt")
        if self.host_agents:
            if self.host_agents.revive():
                self._event(
                    "warning",
                    text="the agents of the hosts had ended; they were started again. See hosts.log",
                )
            self.host_agents.tell()
        late_s = self.workload.now_s() - min(
            until_s, self._sampled_s + self.scenario.sample_interval_s
        )
        self._sampled_s = until_s
        frame, wrong = self.telemetry.frame(until_s, late_s)
        self.workload.completed(self.telemetry.sampler.newly_complete())
        for reason in wrong:
            self._event("warning", text=f"overloaded: {reason}", overloaded=True)
        return [frame]

    def apply(self, change: Change) -> None:
        """Carry out a change of the strategy, a link, a station, a demand or the congestion control."""
        match change:
            case SetStrategy(name, params):
                self.pox.send("strategy", {"name": name, "params": dict(params)})
            case SetStrategyParameter(key, value):
                self.pox.send("params", {key: value})
            case SetLinkRate() | SetLinkDelay() | SetLinkLoss():
                self.links.change(change)
                shape = self.links.shape(change.link)
                self.pox.send("link", {"link": change.link} | shape)
            case SetLinkUp(link, up):
                self.links.change(change)
                self.pox.send("link", {"link": link, "up": up})
            case SetStationRate(ap, user, rate_bps):
                self.links.set_station_rate(ap, user, rate_bps)
                self.agents.set_rate(ap, user, rate_bps)
            case SetDemand(user, rate_bps):
                self.workload.set_demand(user, rate_bps)
            case SetCongestionControl(name):
                refuse("mininet", "cc", name)
                self.laws.load(name)
                self.workload.cc = name
            case SetTier1Demand(ap):
                raise LabError(
                    f"change the Tier 1 demand of {ap}: the emulation cannot do this yet"
                )

    def close(self) -> Report | None:
        """The report of what was measured, and a clean machine."""
        try:
            return self._report() if self.started_at is not None else None
        finally:
            try:
                self._undo.close()
            except (LabError, OSError) as problem:
                self._event("warning", text=f"undo: {problem}. Type: ./run_lab.sh clean")

    # --- open, step by step

    def _tidy(self) -> None:
        """Undo what the ledger lists: what an earlier run left, or what this one made."""
        problems = self.ledger.undo_all()
        if problems:
            raise LabError(f"clean up: {'; '.join(problems)}. Type: ./run_lab.sh clean --force")

    def _start_pox(self) -> None:
        strategy = self.scenario.strategy
        STATE.mkdir(parents=True, exist_ok=True)
        host_agents.write_secret(KEY, secrets.token_hex(16), self.ledger)
        folder, upstream = self.recorder.folder / "pox", upstreams.folder("pox")
        self.pox = pox.Pox(folder, upstream, self.ledger, strategy.name, dict(strategy.params), KEY)
        self._undo.callback(self.pox.stop)
        self.pox.start(
            describe(
                self.topology,
                self.wiring,
                self.scenario.multipath.receive_buffer_kb,
                self.scenario.rate_scale,
            )
        )

    def _build_network(self) -> None:
        self.recorder.log("network: nodes, bridges, hostapd, association")
        scratch = STATE / "wifi"
        scratch.mkdir(parents=True, exist_ok=True)
        self.ledger.record("folder", path=str(scratch))
        wifi_cell.mount_pins(
            self.ledger
        )  # before the hosts exist: they see only mounts that were there first
        self.network = Network(self.topology, self.wiring, self.ledger, scratch)
        self._undo.callback(self.network.stop)
        self.network.create()
        self.programs = TrafficProcesses(
            self.network, self.ledger, self._busy()
        )  # their programs load while the network is built
        self._undo.callback(self.programs.stop)
        self.network.build()
        self._start_host_agents()
        self.recorder.log("shaping: links and cells")
        self.links = Links(
            self.topology, self.wiring, self.network, self.ledger, self.scenario.data_flows
        )
        self.links.start()

    def _busy(self) -> list[str]:
        """The hosts that have something to do: users with traffic, and their servers."""
        users = [
            user
            for user in self.topology.users
            if any(flow.user == user for flow in self.scenario.traffic)
        ]
        return list(dict.fromkeys([*users, *map(self.topology.server_of, users)]))

    def _goes_up(self) -> bool:
        return all(flow.direction == "up" for flow in self.scenario.traffic)

    def _start_host_agents(self) -> None:
        """They load while links are shaped; without Multipath TCP there is nothing to be asked of hosts."""
        if self.topology.multipath:
            interval_s = self.scenario.strategy.params["interval_s"]
            asked = host_agents.asked_of(
                self.topology,
                self.wiring,
                self.network,
                KEY.read_text(),
                goes_up=self._goes_up(),
                interval_s=interval_s,
            )
            log = self.recorder.folder / "hosts.log"
            self.host_agents = HostAgents(STATE / "hosts.json", asked, self.ledger, log)
            self._undo.callback(self.host_agents.close)

    def _start_servers(self) -> None:
        """The servers listen."""
        servers = [host for host in self.programs.hosts if host in self.topology.ids("server")]
        for server in servers:
            if not self.scenario.multipath.server_enabled:
                self.network.run(
                    server,
                    ["sysctl", "-qw", "net.mptcp.enabled=0"],
                    f"switch MPTCP off on {server}",
                )
        for server, answer in self.programs.send_all(
            {server: {"do": "serve", "mptcp": True} for server in servers}
        ).items():
            if not answer["mptcp"]:
                text = f"{server} refuses Multipath TCP (net.mptcp.enabled=0): its connections are plain TCP"
                self._event("warning", text=text, mptcp=False)

    def _connect_switches(self) -> None:
        self.recorder.log("POX: switches connect")
        self.network.connect_controller()
        self.pox.wait_ready()

    def _measure_links(self) -> None:
        """Measure the path to each interface of every user with traffic, one after the other.

        A figure that is more than 10 % off is a warning.
        """
        self.recorder.log("measuring every link")
        measured = {}
        for each in self.wiring.interfaces:
            if each.node in self.topology.users and each.node in self.programs.hosts:
                comparison, complaints = probes.best_attempt(each.name, partial(self._probe, each))
                measured[each.name] = comparison.to_json()
                for complaint in complaints:
                    self._event("warning", text=complaint)
        self.recorder.describe(links_measured=measured)

    def _probe(self, interface: Interface) -> probes.Comparison:
        server = self.wiring.of(self.topology.server_of(interface.node))[0].address
        answer = self.programs.send(
            interface.node,
            do="probe",
            server=server,
            bind=interface.address,
            packets=probes.PACKETS,
        )
        scale = self.scenario.rate_scale
        expected = probes.expected_figures(self.topology, interface, scale)
        return probes.compare(expected, answer["rate_bps"], answer["rtt_ms"], scale)

    def _start_traffic(self) -> None:
        """Agents, sampling, exec; then connect, and go."""
        folder = self.recorder.folder
        self.telemetry = Telemetry(
            self.topology,
            self.wiring,
            self.network,
            self.programs,
            self.links,
            folder / "pox" / "decisions.jsonl",
            self.scenario.rate_scale,
        )
        self._undo.callback(self.telemetry.close)
        if self.topology.cells:
            self.agents = self.telemetry.agents = Agents(
                self.topology, self.wiring, self.ledger, STATE, folder / "agents.log"
            )
            self._undo.callback(self.agents.close)
        if self.host_agents:
            self.host_agents.wait()
        executor = execute.Executor(
            folder, self._inside, lambda pid: self.ledger.record("process", pid=pid)
        )
        self._undo.callback(shutil.rmtree, executor.folder, ignore_errors=True)
        self._undo.callback(executor.close)
        self.laws = load.Laws()
        self._undo.callback(self.laws.close)
        self.laws.load(*self.scenario.congestion_controls)
        self.workload = Workload(
            self.scenario, self.topology, self.wiring, self.programs, self.telemetry.sampler
        )
        again = self.workload.prepare()
        self.pox.wait_settled()
        if self.host_agents:
            self.host_agents.tell()  # what was done before t = 0 is not to be read when there is traffic
        for flow in again:
            self._event("warning", text=f"{flow} lacked a subflow and was opened anew")
        if again:
            self._log_counters()
        self.started_at = time.time()
        self.telemetry.begin()
        self.workload.begin()

    def _inside(self, host: str, argv: list[str]) -> list[str]:
        return argv if host == execute.MACHINE else self.network.inside(host, argv)

    # --- apply, close

    def _report(self) -> Report:
        """Return what the run's result needs beside its samples."""
        sampler = self.telemetry.sampler
        users = self.topology.multipath
        counters = {user: self._mptcp_counters(user) for user in users}
        queued = {user: each["OFOQueue"] for user, each in counters.items() if "OFOQueue" in each}
        connections = sampler.report(self.workload.now_s(), queued)
        checks = self.workload.mptcp_checks(
            sampler.connections.values(), self.telemetry.receiving()
        )
        verdict = mptcp_verdict(checks, probes.joins(counters), probes.fallbacks(counters))
        if verdict.verified is False:
            self._event("warning", text=f"this was not Multipath TCP: {verdict.why}", mptcp=False)
            self._log_counters()
        used = {
            ebpf.our_name(subflow.cc)
            for each in connections
            for subflow in each.subflows
            if subflow.cc
        }
        return Report(
            connections, verdict, "+".join(sorted(used)) or None, self.telemetry.watchdog.verdict()
        )

    def _mptcp_counters(self, host: str) -> dict[str, int]:
        return probes.mptcp_counters(
            Path(f"/proc/{self.network.pid(host)}/net/netstat").read_text()
        )

    def _log_counters(self) -> None:
        """What every kernel counted of Multipath TCP, for who wants to know why something is missing."""
        for host in self.programs.hosts:
            counted = {name: count for name, count in self._mptcp_counters(host).items() if count}
            self.recorder.log(f"{host} counted {json.dumps(counted)}")

    def _event(self, kind: str, **fields: Any) -> None:
        t = time.time() - self.started_at if self.started_at else 0.0
        self.recorder.event(t, kind, **fields)

    def _journal(self, at: float, argv: Sequence[str], stdin: str | None) -> None:
        """Into commands.sh, a batch line by line, so that each can be pasted alone."""
        program = list(argv[: argv.index("-batch")]) if "-batch" in argv else list(argv)
        for line in stdin.splitlines() if stdin is not None else [""]:
            self.recorder.command([*program, *line.split()], at - self.recorder.started)
