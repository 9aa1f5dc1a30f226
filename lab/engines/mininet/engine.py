"""Run a scenario on Mininet-WiFi, Open vSwitch, POX and the kernel's TCP.

The engine builds the network, starts the traffic, takes samples and applies changes. At the end it
removes everything that it has made on the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab import congestion
from lab.engines.mininet import ebpf
from lab.engines.mininet.agents import ApAgentProcess, access_points
from lab.engines.mininet.commands import execute
from lab.engines.mininet.commands.command_script import HEADER, CommandScript
from lab.engines.mininet.controller_client import Answered, Line, RunningStrategy
from lab.engines.mininet.ebpf import build
from lab.engines.mininet.emulated_network import KEY, STATE, EmulatedNetwork
from lab.engines.mininet.install import doctor
from lab.engines.mininet.kernel import congestion_modules
from lab.engines.mininet.machine import lock, shell, vm_kernel
from lab.engines.mininet.mobility import Mobility
from lab.engines.mininet.network import joins, real_medium, wifi
from lab.engines.mininet.supervision import Supervision
from lab.engines.mininet.telemetry import Telemetry
from lab.engines.mininet.traffic import probes
from lab.engines.mininet.traffic.captures import Captures
from lab.engines.mininet.traffic.workload import Workload
from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.radio import dcf
from lab.run.captured import SWITCH_PORTS
from lab.run.engine import Answer, Engine, Reported
from lab.run.felt import Felt
from lab.run.recorder import Recorder
from lab.run.report import Report, mptcp_verdict
from lab.scenario import targets
from lab.scenario.engine_table import refuse
from lab.scenario.interfaces import Interfaces, SetEndpoint, SetInterfaceUp
from lab.scenario.loading import check_workloads
from lab.scenario.schema import Scenario
from lab.topologies.topology import wire
from lab.vm_environment import SLOW_MACHINE

DCTCP_WITHOUT_ECN = "dctcp-reno"  # the kernel's name
MOST_FLOWS = 3000  # of all workloads: POX sets up each connection's paths, some ten a second


class MininetEngine(Engine):
    emulated: EmulatedNetwork
    mobility: Mobility
    supervision: Supervision
    telemetry: Telemetry
    workload: Workload

    @classmethod
    def check(cls, scenario: Scenario) -> None:
        wifi.check_relays(scenario.network)
        dcf.check(scenario.network.cells, scenario.traced_bps())
        if real_medium.is_used(scenario.network.cells):
            real_medium.check(scenario.multipath.receive_buffer_kb)
        for event in scenario.events:
            if event.target.startswith(("iface.", "endpoint.")):
                _check_kernel_opens_subflows(scenario, event.target.split(".")[1])
        check_workloads(scenario, MOST_FLOWS, "engine 'mininet'")

    @classmethod
    def load_law(cls, path: Path, source: bytes) -> None:
        ebpf.register(ebpf.user_law(path, source))

    @classmethod
    def is_slow(cls, in_vm: bool) -> bool:
        return SLOW_MACHINE in os.environ or (in_vm and not vm_kernel.remembered_kvm())

    def ready(self, scenario: Scenario) -> None:
        """Raise `MachineLacks` if this machine cannot emulate the scenario.

        Inside a VM nothing is checked: the host was checked before it booted the VM.
        """
        if not os.environ.get("MULTIPATH_LAB_VM"):
            doctor.require_native()
            lacked = congestion_modules.lacking(scenario.congestion_controls)
            congestion_modules.check(lacked, "this kernel")
            build.require(scenario.congestion_controls, by_window=scenario.multipath.by_window)

    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network, and start the flows that begin at t = 0.

        Before that, take the lock that allows only one emulation on this machine. t = 0, the zero
        of the run's time, is the moment when these flows begin to send.
        """
        self.scenario, self.recorder = scenario, recorder
        self._sampled_s = 0.0
        self.interfaces = Interfaces(scenario)
        self._untold: list[Line] = []
        self._captures: Captures | None = None
        self._undo = ExitStack()
        self.emulated = EmulatedNetwork(scenario, recorder, self._undo, self._record_event)
        self._undo.enter_context(lock.hold(f"run {recorder.run_id}", self.options.wait))
        self.emulated.clean_up()
        self._script = CommandScript(self.emulated.pids)
        recorder.begin_commands(HEADER)
        self._undo.enter_context(shell.journal_to(self._journal))
        self._undo.callback(self.emulated.clean_up)
        self.emulated.build()
        self._start_traffic()

    def run_until(self, until_s: float) -> float:
        """Wait until time `until_s` of the run. Flows that are due are started and stopped."""
        self.workload.until(until_s)
        return self.workload.now_s()

    def advance(self, until_s: float) -> list[Frame]:
        """Wait until time `until_s` of the run, and return one sample, as a list of one frame."""
        self.run_until(until_s)
        self.supervision.check()
        if self.emulated.host_agent:
            self.emulated.host_agent.write_journal()
        self._follow_users()
        due_s = min(until_s, self._sampled_s + self.scenario.sample_interval_s)
        late_s = self.workload.now_s() - due_s
        self._sampled_s = until_s
        if self._captures:
            self._captures.flush()
        self._hear()
        frame, reasons = self.telemetry.frame(until_s, late_s)
        sampler = self.telemetry.sampler
        for t, fields in (
            *self.workload.completed(sampler.newly_complete()),
            *self.workload.exchanged(sampler.take_exchanges()),
        ):
            self.recorder.event(t, "completion", **fields)
            self.felt.completed(fields)
        for reason in reasons:
            self._record_event("warning", text=f"overloaded: {reason}", overloaded=True)
        return [self.felt.added_to(frame, self.workload.video_reports())]

    def _follow_users(self) -> None:
        """Process the handovers of users since the last call.

        After a handover, the sampler counts the user's throughput at the new access point.
        Finished handovers are recorded as events.
        """
        moved, ended = self.mobility.take()
        for interface in moved:
            self.telemetry.sampler.handed_over(interface)
        for outcome in ended:
            self.recorder.event(outcome.at_s - self.workload.zero_s, "handover", **outcome.fields())

    def apply(self, change: targets.Change) -> int | None:
        """Apply a change during the run.

        If POX makes the change, the number of the message to POX is returned, otherwise None.
        Raises `LabError` for a change that the emulation cannot make.
        """
        pox = self.emulated.pox
        match change:
            case targets.SetStrategy(name, params):
                return pox.set_strategy(RunningStrategy(name, params))
            case targets.SetStrategyParameter(key, value):
                return pox.set_params({key: value})
            case (
                targets.SetLinkRate()
                | targets.SetLinkDelay()
                | targets.SetLinkLoss()
                | targets.SetLinkUp()
                | targets.SetLinkQueue()
            ):
                self._change_link(change)
            case targets.SetStationRate(ap, user, rate_bps, ways):
                self.emulated.stations.set_rate(ap, user, rate_bps, ways)
            case SetInterfaceUp() | SetEndpoint():
                self._set_interface(change)
            case targets.SetPlace(user, place):
                self.mobility.place(user, place)
            case targets.SetDemand(user, rate_bps):
                self.workload.set_demand(user, rate_bps)
            case targets.SetCongestionControl(name):
                refuse("mininet", "cc", name)
                congestion.check_change(name, self.scenario.multipath.by_window)
                congestion_modules.load([name])
                self.laws.load(name)
                self.workload.set_cc(name)
            case targets.SetTier1Demand(ap, rate_bps):
                return pox.set_tier1_demand(ap, rate_bps)
        return None

    def _set_interface(self, change: SetInterfaceUp | SetEndpoint) -> None:
        _check_kernel_opens_subflows(self.scenario, change.host)
        interface = self.interfaces.check(change, self.workload.now_s())
        if interface is None:
            return
        network, known = self.emulated.network, self.interfaces
        if isinstance(change, SetInterfaceUp):
            network.set_interface(interface, change.up, known.roles[interface])
        elif interface not in known.down:
            network.set_endpoint(interface, known.roles[interface], change.role)
        known.change(change, self.workload.now_s())

    def _hear(self) -> None:
        lines = self.emulated.pox.take()
        self.telemetry.heard(lines)
        self._untold += lines

    def news(self) -> list[Answer | Reported]:
        if self.started_at is not None:
            self._find_start()
            self._hear()
        else:
            self._untold += self.emulated.pox.take()
        lines, self._untold = self._untold, []
        return [each for line in lines if (each := _told(line))]

    def _find_start(self) -> None:
        """Set `started_at` anew: programs of the run write the time of day, and somebody may have
        set the clock since the start."""
        self.started_at = time.time() + self.workload.zero_s - time.monotonic()

    def _change_link(self, change: targets.LinkChange) -> None:
        self.emulated.links.change(change)
        if isinstance(change, targets.SetLinkUp):
            self.emulated.pox.set_link(change.link, {"up": change.up})
        else:
            self.emulated.pox.set_link(change.link, self.emulated.links.shape(change.link))

    def close(self) -> Report | None:
        """End the run, and remove everything that the run has made on the machine.

        Returns the report of the run, or None if the traffic of the run never started.
        """
        try:
            return self._report() if self.started_at is not None else None
        finally:
            try:
                self.recorder.command_line("exit; # the run has ended; the rest removes it")
                self._undo.close()
            except (LabError, OSError) as problem:
                text = f"undo: {problem}. Type: ./run_lab.sh clean"
                self._record_event("warning", text=text)

    def _start_traffic(self) -> None:
        """Start the sampling, the AP agent, the thread for `exec` commands and the first flows.

        All first flows connect, and then begin to send at the same time, t = 0.
        """
        emulated, folder = self.emulated, self.recorder.folder
        if self.options.pcap:
            self._start_captures()
        self.telemetry = Telemetry(emulated, self.scenario.rate_scale)
        self._undo.callback(self.telemetry.close)
        if emulated.topology.cells:
            agent = self.telemetry.ap_agent = emulated.stations.agent = ApAgentProcess(
                access_points(
                    emulated.topology,
                    emulated.wiring,
                    {*emulated.users_of("up"), *emulated.topology.relays},
                ),
                emulated.ledger,
                (STATE, folder),
                KEY.read_text(),
            )
            self._undo.callback(agent.close)
        self.mobility = Mobility(self.scenario, emulated)
        self._undo.callback(self.mobility.stop)
        self.telemetry.places = self.mobility.places
        if emulated.host_agent:
            emulated.host_agent.wait()
        self._start_executor()
        congestion_modules.load(self.scenario.congestion_controls)
        self.laws = emulated.open_laws()
        self.laws.load(*self.scenario.congestion_controls)
        self.workload = Workload(
            self.scenario, emulated.wiring, emulated.programs, self.telemetry.sampler
        )
        self.felt = Felt(self.workload.to_come, self.telemetry.sampler.heard_ms)
        self.supervision = Supervision.of(emulated, self._warn)
        with self.supervision, emulated.pox.steps_held():
            reopened = self.workload.prepare()
        emulated.pox.wait_settled()
        if emulated.host_agent:
            emulated.host_agent.write_journal()  # now, and not while there is traffic
        for flow in reopened:
            self._record_event("warning", text=f"{flow} lacked a subflow: it was opened once more")
        if reopened:
            self._log_counters(self.recorder.log)
        self.workload.begin()
        zero_s = self.workload.zero_s
        self._find_start()
        self._hear()
        self.telemetry.begin(zero_s)
        self.mobility.start(zero_s)

    def _start_captures(self) -> None:
        """Capture the packets of hosts and switch ports into the folder `pcap` of the run."""
        emulated = self.emulated
        self._captures = Captures(self.recorder.folder / "pcap", emulated.network, emulated.ledger)
        self._undo.callback(self._stop_captures, self._captures)
        for host, file in self._captures.files.items():
            ports = {"ports": self._captures.ports} if host == SWITCH_PORTS else {}
            name = f"pcap/{file.name}"
            self._record_event("pcap", host=host, file=name, state="started", **ports)

    def _stop_captures(self, captures: Captures) -> None:
        for host, found in captures.stop().items():
            counts = {"packets": found.packets, "dropped": found.dropped}
            zero = {} if self.started_at is None else {"zero": round(self.started_at, 6)}
            file = f"pcap/{captures.files[host].name}"
            self._record_event("pcap", host=host, file=file, state="ended", **counts, **zero)

    def _start_executor(self) -> None:
        """Start the thread that runs commands from the subcommands `exec` and `cli` of the lab."""
        ledger = self.emulated.ledger
        executor = execute.Executor(
            self.recorder.folder,
            self._inside,
            lambda pid: ledger.record("process", pid=pid),
            self._run_prompt,
        )
        self._undo.callback(shutil.rmtree, executor.folder, ignore_errors=True)
        self._undo.callback(executor.close)

    def _inside(self, host: str, argv: list[str]) -> list[str]:
        return argv if host == execute.MACHINE else self.emulated.network.inside(host, argv)

    def _run_prompt(self, windows: Path, script: Sequence[str] | None) -> None:
        """Run Mininet-WiFi's command prompt. The executor calls this in a forked process."""
        from lab.engines.mininet.commands import prompt

        prompt.run(self.emulated.network.net, self.recorder.folder, windows, script)

    def _report(self) -> Report:
        """Return the report: connections, verification of Multipath TCP, machine overload."""
        self.mobility.stop()
        self._follow_users()
        sampler = self.telemetry.sampler
        users, servers = self.emulated.topology.multipath, self.emulated.topology.ids("server")
        counters = {host: self._mptcp_counters(host) for host in users}
        of_servers = {host: self._mptcp_counters(host) for host in servers}
        queued = probes.queued(counters | of_servers)
        connections = sampler.report(self.workload.now_s(), queued)
        checks = self.workload.mptcp_checks(
            sampler.connections.values(), self.telemetry.receiving()
        )
        verdict = mptcp_verdict(checks, probes.joins(of_servers), probes.fallbacks(counters))
        if verdict.verified is False:
            text = f"this was not Multipath TCP: {verdict.why}"
            self._record_event("warning", text=text, mptcp=False)
        self._log_counters(self.recorder.log if verdict.verified is False else self.recorder.trace)
        verdict = self.supervision.qualified(verdict)
        laws = {
            ebpf.our_name(subflow.cc)
            for each in connections
            for subflow in each.subflows
            if subflow.cc
        }
        if DCTCP_WITHOUT_ECN in laws:
            text = f"a connection has no ECN: its DCTCP is Reno ({DCTCP_WITHOUT_ECN})"
            self._record_event("warning", text=text)
        overload = self.telemetry.watchdog.verdict()
        exchanges = tuple(self.workload.exchange_reports())
        used, videos = "+".join(sorted(laws)) or None, tuple(self.workload.video_reports())
        calls = tuple(self.workload.call_reports())
        return Report(connections, verdict, used, overload, exchanges, videos, calls)

    def _mptcp_counters(self, host: str) -> dict[str, int]:
        pid = self.emulated.network.pid(host)
        return probes.mptcp_counters(Path(f"/proc/{pid}/net/netstat").read_text())

    def _log_counters(self, log: Callable[[str], None]) -> None:
        """Log the kernel's MPTCP counters of every host that has flows.

        They say how many joins were asked for, and help to find out why a subflow is missing.
        """
        for host in self.emulated.programs.hosts:
            counted = {name: count for name, count in self._mptcp_counters(host).items() if count}
            log(f"{host} counted {json.dumps(counted)}")

    def _warn(self, text: str) -> None:
        self._record_event("warning", text=text)

    def _record_event(self, kind: str, **fields: Any) -> None:
        t = time.monotonic() - self.workload.zero_s if self.started_at else 0.0
        self.recorder.event(t, kind, **fields)

    def _journal(self, at: float, argv: Sequence[str], stdin: str | None) -> None:
        """Append a command to commands.sh, which records the shell commands of the run.

        The command was issued at time `at` [s since 1970].
        """
        for line in self._script.lines(argv, stdin):
            self.recorder.command_line(line, at - self.recorder.started)


def _check_kernel_opens_subflows(scenario: Scenario, user: str) -> None:
    """Raise `RequestError` if the path manager of this lab opens the subflows of a user: it opens
    them at the start of a connection only."""
    topology = scenario.network
    if user in joins.hosts_that_need_it(topology, wire(topology), scenario.multipath):
        most = joins.MAX_SUBFLOWS + 1
        raise RequestError(
            f"interfaces of {user} on engine 'mininet': with more than {most} subflows, {user} "
            "opens none anew. Choose --engine sim, or fewer subflows"
        )


def _told(line: Line) -> Answer | Reported | None:
    """Convert a line of POX to an answer or a report for the runner.

    Links are changed by the engine itself, and POX is only notified. So POX's answer to a link
    change becomes a report on the number of flows that POX has moved to other paths. If the answer
    does not contain this number, the result is None.
    """
    if not isinstance(line, Answered) or line.kind == "steps":
        return Reported(line.at, line.kind, line.fields)
    if line.fields.get("what") != "link":
        return Answer(line.seq, line.at, line.refused)
    if line.fields.get("flows_moved") is None:
        return None
    link = {"link": line.fields["value"]["link"], "flows_moved": line.fields["flows_moved"]}
    return Reported(line.at, "reroute", link)
