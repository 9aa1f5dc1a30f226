"""The simulator as an engine of the lab. It runs in virtual time, as fast as possible.

The packet simulation stops for three reasons:
1) traffic: a flow starts, stops, pauses or resumes
2) measurement, ten times a second: the MAC occupancy of the access points is measured, and the
   controller acts if its next control step is due. At every fifth measurement, users that walk are
   moved first
3) sample: `advance` returns one sample of all users, subflows, access points and links
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from controller import decision_log, units
from controller.command import Command, Expect, Route, SetBackup, Throttle, Unthrottle
from controller.control import Control, Step
from controller.observation import SubflowKey, Tiers
from lab import congestion
from lab.engines.sim import compiler, routes, user_laws
from lab.engines.sim.cells import Cells
from lab.engines.sim.clients import Clients
from lab.engines.sim.connections import Connection, Connections, SubflowCounters, rate_mbps
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.observer import Observer
from lab.engines.sim.sampler import Sampler
from lab.engines.sim.tables import LARGEST_WINDOW, MPTCP_PAYLOAD_BYTES
from lab.engines.sim.wireless import Wireless
from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.radio import dcf
from lab.radio.occupancy import PERIOD_S
from lab.run.engine import Engine
from lab.run.felt import Felt
from lab.run.recorder import Recorder
from lab.run.report import (
    CallReport,
    ConnectionReport,
    MptcpCheck,
    MptcpVerdict,
    Report,
    SubflowReport,
    mptcp_verdict,
)
from lab.scenario import targets
from lab.scenario.clients import Done
from lab.scenario.flows import (
    PAUSED_BPS,
    Act,
    Demands,
    Flow,
    Rates,
    exchange_fields,
    of_traffic,
    scaled_traffic,
    schedule,
)
from lab.scenario.interfaces import Interfaces, SetEndpoint, SetInterfaceUp
from lab.scenario.movement import STEP_S, Movement
from lab.scenario.schema import Scenario
from lab.scenario.targets import Change

# The controller: the same class `Control` as in POX, in virtual time

Logged = tuple[tuple[str, ...], bool, int | None]  # path, backup flag, expected rate in bit/s
RecordEvent = Callable[..., None]  # kind, then the fields of an event


def _logged(subflow: routes.Subflow) -> Logged:
    s = subflow.record
    return subflow.path, bool(s.backup), s.expected_bps or None


class SimController:
    """The controller inside the simulation. In each control step, it lets the strategy decide. It
    then executes and records the decisions.

    `tiers` maps (user, access point) to 1 for the user's primary access point, and to 2 for another
    one. `limits_bps` maps each access point to the limit of its secondary (Tier 2) traffic in
    bit/s, or to None if it has no limit.
    """

    def __init__(
        self, wireless: Wireless, observer: Observer, control: Control, record: RecordEvent
    ) -> None:
        self.wireless, self.network = wireless, wireless.network
        self.observer, self.control, self.record = observer, control, record
        self.tiers: Tiers = {}
        self.limits_bps: dict[str, int | None] = dict.fromkeys(self.network.tables.cells)
        self._tier1_demands_bps: dict[str, int | None] = {}
        self._known: dict[SubflowKey, Logged] = {}

    def step_if_due(self, now_ns: int) -> None:
        """Take a control step if one is due: observe the network, let the strategy decide, and
        record and execute the decisions. Subflows that are new or have changed are recorded in any
        case."""
        self._update_subflows(self.observer.active_subflows())
        if not self.control.due(now_ns):
            return
        step = self.control.step(self.observer.observe(now_ns, self.tiers, self.limits_bps))
        self.tiers = step.observation.tiers
        self._record(step)
        for decision in step.decisions:
            if decision.command is not None:
                self._execute(decision.command)
        for text in step.refused:
            self.record("warning", text=text)
        for ap in self._tier1_demands_bps:
            self._meter_tier1(ap)
        self._update_subflows(self.observer.active_subflows())

    def set_tier1_demand(self, ap: str, rate_bps: int | None) -> None:
        """Limit the data of all primary (Tier 1) users of an access point together to `rate_bps`.
        None removes the limit.

        The limit uses the second meter of the access point's switch. The first meter is for
        secondary (Tier 2) traffic.
        """
        self._tier1_demands_bps[ap] = rate_bps
        self._meter_tier1(ap)

    def hand_over(self, user: str, old: str, new: str) -> None:
        """Let a user that moves from access point `old` to `new` keep its tier (1 or 2) until the
        next control step."""
        self.tiers = {
            (each, new if (each, ap) == (user, old) else ap): tier
            for (each, ap), tier in self.tiers.items()
        }

    def _record(self, step: Step) -> None:
        """Record one event for the observation of a control step, and one event for each decision
        of the strategy."""
        scale = step.observation.rate_scale
        lines = [decision_log.decision_line(step.strategy, each, scale) for each in step.decisions]
        for line in (decision_log.observation_line(step), *lines):
            self.record(line.pop("kind"), **line)

    def _meter_tier1(self, ap: str) -> None:
        here = (each.node for each in self.network.tables.wiring.interfaces if each.link == ap)
        users = [user for user in here if self.tiers.get((user, ap), 1) == 1]
        self.wireless.set_meter(ap, users, self._tier1_demands_bps[ap], at.DEMAND_METER)

    def _update_subflows(self, active: Mapping[SubflowKey, routes.Subflow]) -> None:
        """Record each active subflow that is new, or whose path, backup flag or expected rate has
        changed.

        If a subflow is new or has ended, wake the controller. A strategy that reacts to such a
        change then decides now and not at the end of its period.
        """
        known = {key: _logged(active[key]) for key in sorted(active)}
        for key, logged in known.items():
            if self._known.get(key) != logged:
                subflow = self.observer.subflow(key, self.tiers)
                line = decision_log.subflow_line(subflow, self.control.rate_scale)
                self.record(line.pop("kind"), **line)
        if self._known.keys() != known.keys():
            self.control.wake()
        self._known = known

    def _execute(self, command: Command) -> None:
        network = self.network
        match command:
            case Route(key, path):
                network.route(network.subflow(key), path)
            case Expect(key, rate_bps):
                network.expect(network.subflow(key), rate_bps)
            case SetBackup(key, backup):
                network.set_backup(network.subflow(key), backup)
            case Throttle(ap, addresses, rate_bps):
                here = [each for each in network.tables.wiring.interfaces if each.link == ap]
                users = [each.node for each in here if addresses & {each.address, *each.further}]
                self._meter_tier2(ap, users, rate_bps)
            case Unthrottle(ap):
                self._meter_tier2(ap, [], None)

    def _meter_tier2(self, ap: str, users: list[str], rate_bps: int | None) -> None:
        self.limits_bps[ap] = rate_bps
        self.wireless.set_meter(ap, users, rate_bps)


# Report of a run that has ended


def report(network: Network, connections: Connections) -> Report:
    """Return the report of a run that has ended. In the report, `cc` has the names of all
    congestion controls that were used, joined by "+". It is None if there was no TCP connection."""
    elapsed_ns = max(1, network.now_ns)
    laws = {each.cc for each in connections.values() if each.cc}
    return Report(
        tuple(_connection(connections, each, elapsed_ns) for each in connections.values()),
        _verdict(network, connections),
        "+".join(sorted(laws)) or None,
    )


def _connection(
    connections: Connections, connection: Connection, elapsed_ns: int
) -> ConnectionReport:
    c, subflows = connection.record, connection.subflows
    segments = sum(each.record.segments_received for each in subflows)
    return ConnectionReport(
        id=connection.flow.id,
        user=connection.flow.user,
        throughput_mbps=round(rate_mbps(connections.read_bytes(connection), elapsed_ns), 4),
        completion_s=round((c.done_ns - c.started_ns) / at.NS_PER_S, 6) if c.done_ns else None,
        out_of_order_fraction=round(c.data_out_of_order / segments, 5) if segments else 0.0,
        receive_buffer_max_bytes=c.reorder_buffered_max * c.segment_bytes,
        subflows=tuple(
            _subflow(connections, connection, number, elapsed_ns)
            for number, each in enumerate(subflows, 1)
            if connections.is_established(each)
        ),
    )


def _subflow(
    connections: Connections, connection: Connection, number: int, elapsed_ns: int
) -> SubflowReport:
    subflow: SubflowCounters = connection.subflows[number - 1]
    received_bytes = connections.received_bytes(connection, subflow)
    s = subflow.record
    return SubflowReport(
        id=f"{connection.flow.id}/{number}",
        path=tuple(subflow.subflow.path),
        tier=subflow.tier,
        throughput_mbps=round(rate_mbps(received_bytes, elapsed_ns), 4),
        rtt_ms_mean=round(subflow.rtt_sum_ms / subflow.samples, 3) if subflow.samples else None,
        segments=s.segments_sent,
        out_of_order_segments=s.segments_out_of_order,
        lost_segments=s.segments_dropped,
        retransmitted_segments=s.segments_retransmitted,
        backup_s=round(subflow.backup_ns / at.NS_PER_S, 3),
        cc=connection.cc,
    )


def _verdict(network: Network, connections: Connections) -> MptcpVerdict:
    """Return whether each TCP connection of a multipath user used Multipath TCP, and how many of
    its subflows were established. A subflow whose first SYN may still be answered, or that a short
    file did not wait for, is not missing."""
    multipath = network.tables.topology.multipath
    meant = [each for each in connections.values() if each.cc and each.flow.user in multipath]
    is_mptcp = network.tables.multipath.server_enabled
    checks = [
        MptcpCheck(
            each.flow.id,
            is_mptcp,
            found := sum(map(connections.is_established, each.subflows)),
            found + sum(map(connections.is_missing, each.subflows)),
        )
        for each in meant
    ]
    joins = sum(max(0, each.subflows - 1) for each in checks)
    fallbacks = 0 if is_mptcp else sum(each.subflows for each in checks)
    return mptcp_verdict(checks, joins, fallbacks)


MEASUREMENT_NS = round(PERIOD_S * at.NS_PER_S)
STEP_MEASUREMENTS = round(STEP_S / PERIOD_S)  # measurements of the cells between two steps


class SimEngine(Engine):
    """One simulation. Call `open` first and `close` last, and in between `advance` and `apply` as
    often as needed."""

    _network: Network | None = None

    @classmethod
    def check(cls, scenario: Scenario) -> None:
        if any(cell.air == "wmediumd" for cell in scenario.network.cells):
            raise RequestError(
                "topology.air 'wmediumd' on engine 'sim': wmediumd is a program of the emulation. "
                "Choose --engine mininet, or topology.air=dcf"
            )
        dcf.check(scenario.network.cells, scenario.traced_bps())

    @classmethod
    def load_law(cls, path: Path, source: bytes) -> None:
        user_laws.register(path, source=source)

    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network and its controller. No packet is sent yet: flows that start at t = 0
        start in the first call of `advance`."""
        self.recorder, self.scenario = recorder, scenario
        self._compile_for_the_next_run()
        self._acts: list[Act] = schedule(
            scaled_traffic(scenario), scenario.seed, scenario.duration_s
        )
        flows = {act.flow.id: act.flow for act in self._acts}
        self.network = self._network = Network(
            scenario.network, scenario.multipath, flows.values(), scenario.seed
        )
        self.felt = Felt(self._acts, self._heard_ms)
        self._cc: str | None = None
        self._measurement_ns = 0
        self._occupancies: dict[str, list[float]] = {}
        self.demands, self.interfaces = Demands(), Interfaces(scenario)
        self._build(scenario)
        for interface, role in self.interfaces.roles.items():
            self.network.set_endpoint(interface, role)
        self._check_receive_buffer(scenario)

    def _build(self, scenario: Scenario) -> None:
        """Create the objects that measure, control and sample the network. `self.network` must
        exist."""
        topology, network = scenario.network, self.network
        wireless = Wireless(network)
        self.connections = Connections(network)
        self.clients = Clients(network, self._exchanged)
        self.cells = Cells(wireless, topology.cells)
        self.observer = Observer(topology, network, self.cells, scenario.rate_scale)
        strategy = scenario.strategy
        control = Control(strategy.name, strategy.params, scenario.rate_scale)
        self.controller = SimController(wireless, self.observer, control, self._event)
        self.movement = Movement(
            topology, scenario.mobility, scenario.seed, self.cells, self._handed_over
        )
        self.sampler = Sampler(topology, network, self.connections, self.cells, self.movement)

    def _check_receive_buffer(self, scenario: Scenario) -> None:
        """Record a warning if the scenario's receive buffer is larger than `LARGEST_WINDOW`
        segments. The simulation then uses `LARGEST_WINDOW`."""
        largest_bytes = LARGEST_WINDOW * MPTCP_PAYLOAD_BYTES
        if scenario.multipath.receive_buffer_kb * 1000 > largest_bytes:
            self._event(
                "warning", text=f"receive buffers hold {largest_bytes // 1_000_000} MB at most"
            )

    def _compile_for_the_next_run(self) -> None:
        """If there is no compiled code, start the compiler, and log that this run is interpreted
        and slow. If an earlier compilation has failed, log the reason instead."""
        try:
            is_to_come = compiler.is_to_come()
        except LabError as error:
            self.recorder.log(f"this run is slow, interpreted: {error}")
            return
        if is_to_come:
            self.recorder.log(
                "the simulator is being compiled, once for this version; this run is interpreted, "
                "about 12 times slower, and the next one is compiled"
            )

    def advance(self, until_s: float) -> list[Frame]:
        """Simulate until t = `until_s`. Return a list with one sample of the network, whose rates
        are means since the last call.

        This never waits for real time. If a run is to keep pace with real time, the caller waits.
        """
        self.run_until(until_s)
        means = {ap: sum(values) / len(values) for ap, values in self._occupancies.items()}
        self._occupancies = {}
        for flow in sorted(self.sampler.completed(), key=self._done_ns):
            self._complete(flow)
        frame = self.sampler.frame(self.controller.tiers, means, self.controller.limits_bps)
        return [self.felt.added_to(frame, self.clients.videos())]

    def run_until(self, until_s: float) -> float:
        """Simulate until t = `until_s`, with all changes of traffic and all measurements that are
        due by then."""
        until_ns = round(until_s * at.NS_PER_S)
        while True:
            act_ns = round(self._acts[0].at_s * at.NS_PER_S) if self._acts else until_ns
            next_ns = min(until_ns, self._measurement_ns, act_ns, self.clients.next_ns)
            self.network.run(max(next_ns, self.network.now_ns))
            self.clients.wake()
            now_ns = self.network.now_ns
            if self._acts and act_ns <= now_ns:
                self._act(self._acts.pop(0))
            elif self._measurement_ns <= now_ns:
                self._measure()
            elif now_ns >= until_ns:
                return until_s

    def apply(self, change: Change) -> None:
        """Apply one change to the running network or its controller.

        Raise `LabError` if the change selects a delay-based congestion control, but the scenario
        limits congestion windows to the expected rates (`multipath.expected_by: window`).
        """
        match change:
            case targets.SetStrategy(name, params):
                self.controller.control.switch(name, dict(params))
            case targets.SetStrategyParameter(key, value):
                self.controller.control.change({key: value})
            case (
                targets.SetLinkRate()
                | targets.SetLinkDelay()
                | targets.SetLinkLoss()
                | targets.SetLinkUp()
                | targets.SetLinkQueue()
            ):
                self.network.set_link(change)
            case targets.SetTier1Demand(ap, rate_bps):
                self.controller.set_tier1_demand(ap, rate_bps)
            case targets.SetStationRate(ap, user, rate_bps, ways):
                self.cells.set_rate(ap, user, rate_bps, ways)
            case SetInterfaceUp() | SetEndpoint():
                self._set_interface(change)
            case targets.SetPlace(user, place):
                self.movement.place(user, place)
            case targets.SetDemand(user, rate_bps):
                self._set_rates(self.demands.set_demand(user, rate_bps))
            case targets.SetCongestionControl(name):
                self._set_cc(name)

    def _set_interface(self, change: SetInterfaceUp | SetEndpoint) -> None:
        now_s = self.network.now_ns / at.NS_PER_S
        changed = self.interfaces.check(change, now_s)
        if changed is None:
            return
        own = self.network.tables.wiring.of(change.host)  # at the user's present access points
        interface = next(each for each in own if each.name == changed.name)
        if isinstance(change, SetEndpoint):
            joined = self.network.set_endpoint(interface, change.role)
        else:
            joined = self.network.set_interface(interface, change.up)
        for flow, subflow in joined:
            self.connections.joined(flow, subflow)
        self.interfaces.change(change, now_s)

    def _set_cc(self, name: str) -> None:
        congestion.check_change(name, self.scenario.multipath.by_window)
        self._cc = name
        self.connections.set_cc(name)

    def close(self) -> Report | None:
        """Return the report of the run, or None if `open` failed before the network was built. The
        network is given up: 10,000 connections take 50 MB."""
        found = self.report() if self._network else None
        vars(self).clear()
        return found

    def report(self) -> Report:
        """Return the report of the run until now."""
        return replace(
            report(self.network, self.connections),
            exchanges=tuple(self.clients.reports()),
            videos=tuple(self.clients.videos()),
            calls=tuple(self._calls()),
        )

    def _calls(self) -> Iterator[CallReport]:
        for connection in self.connections.values():
            if connection.flow.call:
                delays_ns = self.network.delays_ns(connection.flow)
                delays_ms = {n: units.ms_from_ns(each) for n, each in delays_ns.items()}
                yield CallReport(connection.flow.id, delays_ms)

    def _heard_ms(self, flow: Flow, numbers: range) -> list[float]:
        delays_ns = self.network.delays_ns(flow)
        return [units.ms_from_ns(delays_ns[n]) for n in numbers if n in delays_ns]

    # --- traffic and measurements

    def _act(self, act: Act) -> None:
        """Start, stop, pause or resume a flow, as one entry of the traffic schedule says."""
        if act.verb == "start":
            cc = self._cc or act.flow.cc
            rates = self.demands.start(act.flow)
            self.network.start(replace(act.flow, rate_bps=rates.pop(act.flow)), cc)
            self.connections.add(act.flow, cc)
            self._set_rates(rates)
            if act.flow.client:
                self.clients.begin(act.flow)
        elif act.verb == "stop":
            self.network.stop(act.flow)
            self._set_rates(self.demands.end(act.flow))
        else:
            self._set_rates(self.demands.set_silent(act.flow, act.rate_bps == PAUSED_BPS))

    def _complete(self, flow: Flow) -> None:
        """Record that the file of `flow` is complete. Divide the user's demand (a rate) among the
        flows that the user still has."""
        done_ns = self._done_ns(flow)
        started_ns = self.connections[flow.id].record.started_ns
        fields: dict[str, str | float] = {"user": flow.user, "connection": flow.id}
        fields |= {"completion_s": round((done_ns - started_ns) / at.NS_PER_S, 3)}
        fields |= of_traffic(flow)
        self._completed(done_ns / at.NS_PER_S, fields)
        self._set_rates(self.demands.end(flow))

    def _exchanged(self, flow: Flow, done: Done) -> None:
        self._completed(done.end_s, exchange_fields(flow, done, self.scenario.rate_scale))

    def _completed(self, t: float, fields: dict[str, str | float]) -> None:
        self.recorder.event(t, "completion", **fields)
        self.felt.completed(fields)

    def _done_ns(self, flow: Flow) -> int:
        return self.connections[flow.id].record.done_ns

    def _set_rates(self, rates: Rates) -> None:
        for flow, rate_bps in rates.items():
            self.network.set_demand(flow, rate_bps)

    def _measure(self) -> None:
        """Measure the MAC occupancy of all access points, and let the controller take a step if one
        is due. At every fifth call, users that walk are moved first."""
        if (
            self.movement.walkers
            and self._measurement_ns % (STEP_MEASUREMENTS * MEASUREMENT_NS) == 0
        ):
            self.movement.step(self._measurement_ns / at.NS_PER_S)
        occupancies = self.cells.measure(self.controller.tiers)
        for ap, value in occupancies.items():
            self._occupancies.setdefault(ap, []).append(value)
        self.observer.add_occupancies(occupancies)
        self.controller.step_if_due(self.network.now_ns)
        for flow_id in self.network.forget_ended():
            self.connections.forget(flow_id)
        self._measurement_ns += MEASUREMENT_NS

    def _handed_over(self, user: str, old: str, new: str, rssi_dbm: float) -> None:
        """Update the controller and the observer after a user's handover from WiFi access point
        `old` to `new`, and record the handover. The strategy reacts at its next control step."""
        self.controller.hand_over(user, old, new)
        self.observer.update_arcs()
        self._event("handover", **{"user": user, "from": old, "to": new, "rssi_dbm": rssi_dbm})

    def _event(self, kind: str, **fields: Any) -> None:
        now_ns = self._network.now_ns if self._network else 0
        self.recorder.event(now_ns / at.NS_PER_S, kind, **fields)
