"""Connect, start and stop the flows of a scenario, and change their rates, at the set times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from lab.engines.mininet.ebpf import kernel_name
from lab.engines.mininet.traffic.processes import TrafficProcesses
from lab.engines.mininet.traffic.sampler import (
    SERVER_PORT,
    Connection,
    OpenedFlow,
    Sampler,
    single_path,
)
from lab.errors import LabError
from lab.run.report import CallReport, ExchangeReport, MptcpCheck, VideoReport, exchange_reports
from lab.scenario import subflows
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
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface, Wiring

SUBFLOWS_WITHIN_S = 5.0  # if none joined for so long, the missing ones will not join
MOST_AT_ONCE = 8  # connections that are opened at the same time; POX sets up the paths of each
POLL_S = 0.05  # between two looks whether later connections are open
COMMAND_S = 0.05  # for a command to all hosts, in a VM without KVM
MAX_ATTEMPTS = 3  # the kernel tries each subflow once; a failed handshake is final


@dataclass(frozen=True)
class _Opening:
    """Connections that open in the background, to start together when all of them are open.

    `acts` are the changes that became due meanwhile. `cc` is the congestion control of all
    connections at the time of the request, if it had been changed.
    """

    flows: list[Flow]
    cc: str | None
    acts: list[Act] = field(default_factory=list)

    def has(self, flow: Flow) -> bool:
        return any(each.id == flow.id for each in self.flows)


class Workload:
    """Runs the flows of a scenario, and tells `sampler` about every connection."""

    def __init__(
        self, scenario: Scenario, wiring: Wiring, programs: TrafficProcesses, sampler: Sampler
    ) -> None:
        self.topology, self.wiring = scenario.network, wiring
        self.programs, self.sampler = programs, sampler
        self._multipath, self._by_window = scenario.multipath, scenario.multipath.by_window
        self.receive_buffer_bytes = scenario.multipath.receive_buffer_kb * 1000
        self._cc: str | None = None  # of all connections, if it was changed during the run
        self._acts = schedule(scaled_traffic(scenario), scenario.seed, scenario.duration_s)
        self._opened: dict[str, Flow] = {}
        self._opening: list[_Opening] = []
        self._started_s: dict[str, float] = {}
        self._demands = Demands()
        self._rate_scale = scenario.rate_scale
        self._planning: list[str] = []  # users whose programs open connections themselves
        self.zero_s = 0.0

    def prepare(self) -> list[str]:
        """Connect the flows that start at t = 0, with all subflows, so that all start together, and
        those that are to be warm when they start later.

        If a connection lacks a subflow, it is closed and opened again. Each connection is opened at
        most `MAX_ATTEMPTS` times. Returns the IDs of the flows that were opened again. A flow that
        was opened again twice is listed twice.
        """
        self._plan()
        reopened: list[str] = []
        connecting = [
            act.flow
            for act in self._acts
            if act.verb == "start" and (act.at_s == 0 or act.flow.warm)
        ]
        for attempt in range(1, MAX_ATTEMPTS + 1):
            self._connect(connecting)
            connecting = self._incomplete_flows()
            if not connecting or attempt == MAX_ATTEMPTS:
                break
            for flow in connecting:
                self.programs.send(flow.user, do="stop", id=flow.id)
                reopened.append(flow.id)
        return reopened

    def _plan(self) -> None:
        """Tell each user's program of the flows that it opens itself, at their times: those of
        workloads, which are too many for a command each."""
        planned = [act for act in self._acts if is_planned(act)]
        self._planning = list(dict.fromkeys(act.flow.user for act in planned))
        for user in self._planning:
            own = (act for act in planned if act.flow.user == user)
            flows = [self._request(act.flow) | {"at_s": act.at_s} for act in own]
            self.programs.send(user, do="plan", flows=flows)

    def begin(self) -> None:
        """Start the flows of t = 0 together. The clock of the run starts at the same time."""
        due = self._take_due() if self._acts and self._acts[0].at_s == 0 else []
        self.zero_s = time.monotonic() + lead_s(starting_flows(due))
        if self._planning:
            self.zero_s += COMMAND_S
            begin = {"do": "begin", "zero_s": self.zero_s}
            self.programs.send_all(dict.fromkeys(self._planning, begin))
        self._carry_out(due, 0.0)

    @property
    def to_come(self) -> Sequence[Act]:
        """What is left of the schedule."""
        return self._acts

    def now_s(self) -> float:
        return time.monotonic() - self.zero_s

    def until(self, t: float) -> None:
        """Sleep until time `t` of the run [s].

        Meanwhile, start flows, stop flows and change their rates when this is due. Flows with
        equal start times start together. A connection that is to open meanwhile may take seconds,
        where queues are long; nothing waits for it.
        """
        while self._acts and self._acts[0].at_s <= t:
            at_s = self._acts[0].at_s
            self._wait_until(at_s)
            self._carry_out(self._take_due(), at_s)
        self._wait_until(t)

    def set_demand(self, user: str, rate_bps: int | None) -> None:
        """Set the total rate of all flows of a user [bit/s]; None means no limit."""
        self._set_rates(self._demands.set_demand(user, rate_bps))

    def set_cc(self, name: str) -> None:
        """Change the congestion control of all connections: those that are open, and later ones.

        Raises `LabError` if the kernel refuses the change for a connection.
        """
        self._cc = name
        command = {"do": "cc", "cc": kernel_name(name, self._by_window)}
        self.programs.send_all(dict.fromkeys(self.programs.hosts, command))

    def completed(self, taken_s: Mapping[str, float]) -> list[tuple[float, dict[str, str | float]]]:
        """Note that flows are complete. Divide each user's total rate among its remaining flows.

        `taken_s` maps flow IDs to the durations of the transfers. Returns an event for each flow:
        the time in the run when it was complete [s], and the fields of the event.
        """
        found: list[tuple[float, dict[str, str | float]]] = []
        for name, seconds in taken_s.items():
            flow = self._opened[name]
            self._set_rates(self._demands.end(flow))
            fields: dict[str, str | float] = {"user": flow.user, "connection": name}
            fields |= {"completion_s": round(seconds, 3), **of_traffic(flow)}
            found.append((self._started_s[name] + seconds, fields))
        return found

    def exchanged(
        self, done: Iterable[tuple[str, Done]]
    ) -> Iterator[tuple[float, dict[str, str | float]]]:
        """Yield an event for each exchange that is complete: the time in the run when it was, and
        the fields of the event. `done` has the ID of its flow."""
        for name, each in sorted(done, key=lambda pair: pair[1].end_s):
            yield each.end_s, exchange_fields(self._opened[name], each, self._rate_scale)

    def exchange_reports(self) -> Iterator[ExchangeReport]:
        """Yield a report of each exchange, also of those that are not complete."""
        for name, each in self.sampler.connections.items():
            yield from exchange_reports(self._opened[name], each.done, each.waiting)

    def video_reports(self) -> Iterator[VideoReport]:
        for name, each in self.sampler.connections.items():
            if each.quality:
                yield VideoReport(name, each.opened.user, *each.quality)

    def call_reports(self) -> Iterator[CallReport]:
        for name, each in self.sampler.connections.items():
            if self._opened[name].call:
                yield CallReport(name, each.delays_ms)

    def mptcp_checks(
        self, connections: Iterable[Connection], receiving: Mapping[str, Mapping[str, Any]]
    ) -> list[MptcpCheck]:
        """Compare the number of subflows of each multipath connection with the expected number.

        A flow of a workload may end before its further subflows join, so none of them is missing.
        `receiving` has, by flow ID, what the receiver reports about the flow, for example whether
        the connection is MPTCP.
        """
        return [
            MptcpCheck(
                each.opened.id,
                bool(receiving.get(each.opened.id, {}).get("mptcp")),
                len(each.subflows),
                len(each.subflows)
                if each.opened.is_one_of_many
                else self._subflows(each.opened.user),
            )
            for each in connections
            if each.opened.multipath
            and (each.opened.id in receiving or not each.opened.is_one_of_many)
        ]

    def _set_rates(self, rates: Rates) -> None:
        for flow, rate_bps in rates.items():
            is_sent_by_server = flow.protocol == "udp" and flow.direction == "down"
            host = self.topology.server_of(flow.user) if is_sent_by_server else flow.user
            self.programs.send(host, do="rate", id=flow.id, rate_bps=rate_bps)

    def _wait_until(self, t: float) -> None:
        """Sleep until time `t` of the run [s], and start connections as soon as they are open."""
        while self._opening:
            self._start_opened()
            if self.now_s() >= t:
                break
            self._sleep_until(min(t, self.now_s() + POLL_S))
        self._sleep_until(t)

    def _sleep_until(self, t: float) -> None:
        time.sleep(max(0.0, self.zero_s + t - time.monotonic()))

    def _take_due(self) -> list[Act]:
        due = [act for act in self._acts if act.at_s <= self._acts[0].at_s]
        self._acts = self._acts[len(due) :]
        return due

    def _carry_out(self, due: list[Act], at_s: float) -> None:
        starting = starting_flows(act for act in due if not is_planned(act))
        self._started_s |= {flow.id: at_s for flow in starting_flows(due)}
        for flow in (act.flow for act in due if is_planned(act)):
            self._note_open(flow, flow.port)
        later = [
            each for each in starting if each.id not in self._opened and each.protocol != "udp"
        ]
        self._open(later)
        self._start([flow for flow in starting if flow not in later], at_s)
        for act in due:
            self._do(act)

    def _open(self, later: list[Flow]) -> None:
        """Begin to open connections that start now."""
        users = dict.fromkeys(flow.user for flow in later)
        if not users:
            return
        self._opening.append(_Opening(later, self._cc))
        of_user = {
            user: [self._request(flow) for flow in later if flow.user == user] for user in users
        }
        self.programs.send_all({user: {"do": "open", "flows": of_user[user]} for user in users})

    def _start_opened(self) -> None:
        """Start the connections that were to start together, if all of them are open.

        Raises `LabError` if one cannot be opened.
        """
        users = dict.fromkeys(flow.user for each in self._opening for flow in each.flows)
        answers = self.programs.send_all({user: {"do": "opened"} for user in users})
        for opening in list(self._opening):
            for flow in opening.flows:
                port = answers[flow.user]["opened"].get(flow.id)
                if isinstance(port, str):
                    raise LabError(f"ask {flow.user} to connect: {port}")
                if port is not None and flow.id not in self._opened:
                    self._note_open(flow, port)
            if all(flow.id in self._opened for flow in opening.flows):
                self._begin_opened(opening)

    def _begin_opened(self, opening: _Opening) -> None:
        self._opening.remove(opening)
        if self._cc and self._cc != opening.cc:
            self.set_cc(self._cc)
        now_s = self.now_s()
        self._started_s |= {flow.id: now_s for flow in opening.flows}
        self._start(opening.flows, now_s)
        for act in opening.acts:
            self._do(act)

    def _do(self, act: Act) -> None:
        opening = next((each for each in self._opening if each.has(act.flow)), None)
        if opening:
            if act.verb != "start":
                opening.acts.append(act)
        elif act.verb == "stop":
            for host in self._commanded(act.flow):
                self.programs.send(host, do="stop", id=act.flow.id)
            self._set_rates(self._demands.end(act.flow))
        elif act.verb == "rate":
            self._set_rates(self._demands.set_silent(act.flow, act.rate_bps == PAUSED_BPS))

    def _start(self, starting: list[Flow], at_s: float) -> None:
        """Start flows together, at time `at_s` of the run or as soon as possible after it.

        UDP flows that are not yet open are opened before.
        """
        self._connect(flow for flow in starting if flow.id not in self._opened)
        for flow in starting:
            self._set_rates(
                {
                    each: rate_bps
                    for each, rate_bps in self._demands.start(flow).items()
                    if each != flow or rate_bps != flow.rate_bps
                }
            )
        start_s = max(self.zero_s + at_s, time.monotonic() + lead_s(starting))
        for batch in one_each(starting):
            run_s = start_s - self.zero_s
            go = {"do": "go", "at_s": start_s, "run_s": run_s}
            self.programs.send_all({flow.user: go | {"id": flow.id} for flow in batch})
            for flow in batch:
                for server in self._commanded(flow)[1:]:
                    self.programs.send(server, do="go", id=flow.id, at_s=start_s)

    def _commanded(self, flow: Flow) -> list[str]:
        """Return the hosts to which the commands for a flow are sent.

        These are the user, and for UDP also the server. For TCP, the user's end passes commands on
        to the server's end.
        """
        server = self.topology.server_of(flow.user)
        return [flow.user, server] if flow.protocol == "udp" else [flow.user]

    def _subflows(self, user: str) -> int:
        return subflows.count(self.topology, self.wiring, self._multipath, user)

    def _is_multipath(self, flow: Flow) -> bool:
        return flow.user in self.topology.multipath and flow.protocol == "tcp"

    def _incomplete_flows(self) -> list[Flow]:
        """Wait for the subflows to join, and return the flows that still lack a subflow afterwards.

        The wait ends when all subflows have joined, or when none has joined for
        `SUBFLOWS_WITHIN_S`.
        """
        missing, deadline = self._missing(), time.monotonic() + SUBFLOWS_WITHIN_S
        while missing and time.monotonic() < deadline:
            time.sleep(0.1)
            before, missing = missing, self._missing()
            if sum(missing.values()) < sum(before.values()):
                deadline = time.monotonic() + SUBFLOWS_WITHIN_S
        return [self._opened[name] for name in missing]

    def _missing(self) -> dict[str, int]:
        """Return how many subflows each incomplete connection lacks, by flow ID.

        The servers count the subflows, because a user's kernel counts a subflow before it has
        joined. A connection that has fallen back to plain TCP lacks nothing.
        """
        flows = [flow for flow in self._opened.values() if self._is_multipath(flow)]
        servers = {self.topology.server_of(flow.user) for flow in flows}
        answers = self.programs.send_all({server: {"do": "subflows"} for server in sorted(servers)})
        found = {
            name: count for answer in answers.values() for name, count in answer["subflows"].items()
        }
        wanted = {flow.id: self._subflows(flow.user) - 1 for flow in flows}
        return {
            name: want - have
            for name, want in wanted.items()
            if (have := found.get(name, 0)) is not None and have < want
        }

    def _connect(self, connecting: Iterable[Flow]) -> None:
        for batch in at_most(MOST_AT_ONCE, one_each(connecting)):
            answers = self.programs.send_all({flow.user: self._request(flow) for flow in batch})
            for flow in batch:
                port = answers[flow.user]["port"]
                _, server = self._ends(flow)
                if flow.protocol == "udp":
                    expecting = self._request(flow) | {"do": "expect", "port": port}
                    self.programs.send_all({server.node: expecting})
                self._note_open(flow, port)

    def _note_open(self, flow: Flow, port: int) -> None:
        self.sampler.open(self._opened_flow(flow, port))
        self._opened[flow.id] = flow

    def _opened_flow(self, flow: Flow, port: int) -> OpenedFlow:
        user, server = self._ends(flow)
        is_multipath, is_udp = self._is_multipath(flow), flow.protocol == "udp"
        ports = None if is_udp else (SERVER_PORT, port)
        return OpenedFlow(
            flow.id,
            flow.user,
            (user.address, port),
            flow.direction,
            is_multipath,
            receiver=flow.user if flow.direction == "down" else server.node,
            path=() if is_multipath else single_path(self.wiring, server, user, ports),
            protocol=flow.protocol,
            is_one_of_many=flow.kind == "workload",
        )

    def _ends(self, flow: Flow) -> tuple[Interface, Interface]:
        """Return two interfaces: the user's and the server's, between which the flow is opened."""
        ends = subflows.of_call(self.topology, self.wiring, flow.user, flow.interface)
        return ends.user, ends.server

    def _request(self, flow: Flow) -> dict[str, Any]:
        user, server = self._ends(flow)
        return {
            "do": "connect",
            "id": flow.id,
            "protocol": flow.protocol,
            "server": server.address,
            "bind": user.address,
            "port": flow.port,
            "mptcp": self._is_multipath(flow),
            "direction": flow.direction,
            "cc": kernel_name(self._cc or flow.cc, self._by_window),
            "rate_bps": flow.rate_bps,
            "volume_bytes": flow.volume_bytes,
            "receive_buffer_bytes": self.receive_buffer_bytes,
            "client": flow.client,
            "place": flow.place,
            "call": flow.call,
        }


def one_each(starting: Iterable[Flow]) -> list[list[Flow]]:
    """Split flows into lists with at most one flow per user.

    The order of a user's flows is kept.
    """
    by_user: dict[str, list[Flow]] = {}
    for flow in starting:
        by_user.setdefault(flow.user, []).append(flow)
    return [[flow for flow in column if flow] for column in zip_longest(*by_user.values())]


def is_planned(act: Act) -> bool:
    """Return whether the program of a user starts a flow without a command at this time."""
    return act.flow.kind == "workload"


def starting_flows(acts: Iterable[Act]) -> list[Flow]:
    return [act.flow for act in acts if act.verb == "start"]


def lead_s(starting: list[Flow]) -> float:
    """Return how long before the common start of flows the commands have to be sent [s].

    A user gets one command for each of its flows. The commands for the first flow of every user are
    sent together, then those for the second flow, and so on. Each UDP flow needs one more command,
    to its server.
    """
    to_servers = sum(flow.protocol == "udp" for flow in starting)
    return COMMAND_S * (len(one_each(starting)) + to_servers)


def at_most(most: int, batches: list[list[Flow]]) -> list[list[Flow]]:
    return [
        batch[start : start + most] for batch in batches for start in range(0, len(batch), most)
    ]
