"""The report that an engine (the emulation or the simulator) returns when a run ends. Both engines
fill in the same fields.

An engine reports rates in Mb/s of received payload as they are on the wire.
`Report.in_scenario_units` divides them by the scenario's `rate_scale`. A value that was not
measured is None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lab.scenario.clients import Done
from lab.scenario.flows import Flow

DIGITS = 4  # decimals of a rate in result.json


@dataclass(frozen=True, slots=True)
class SubflowReport:
    """One subflow over the whole run.

    - `path`: the switches from the server to the user
    - `tier`: 1 if the subflow uses its user's primary access point or link, else 2 (MP-SDN)
    - `throughput_mbps`: the rate of received payload
    - `segments`: all data segments that the sender transmitted, retransmissions included
    - `lost_segments`: transmitted segments that have not arrived and are not in flight when the run
      ends
    - `retransmitted_segments`: transmissions of data that the same subflow had sent before
    - `backup_s`: the time in s during which the subflow had the MPTCP backup flag
    - `cc`: the congestion control of the subflow
    """

    id: str
    path: tuple[str, ...] = ()
    tier: int | None = None
    throughput_mbps: float | None = None
    rtt_ms_mean: float | None = None
    segments: int | None = None
    out_of_order_segments: int | None = None
    lost_segments: int | None = None
    retransmitted_segments: int | None = None
    backup_s: float | None = None
    cc: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """One connection over the whole run.

    `completion_s` is the time in s from the start of the connection until its file was complete.
    `receive_buffer_max_bytes` is the largest amount of out-of-order data that the receiver held
    while earlier data was missing; the emulation measures it every 50 ms.
    """

    id: str
    user: str
    throughput_mbps: float | None = None
    completion_s: float | None = None
    out_of_order_fraction: float | None = None
    receive_buffer_max_bytes: int | None = None
    subflows: tuple[SubflowReport, ...] = ()


@dataclass(frozen=True, slots=True)
class ExchangeReport:
    """A request and its answer over a connection. `at_s` is when the user wanted it, in s since the
    start of the run; `completion_s` is None if it was not complete at the end. `size_bytes` is that
    of the answer on the wire."""

    connection: str
    user: str
    kind: str
    at_s: float
    completion_s: float | None
    size_bytes: int


def exchange_reports(
    flow: Flow, done: Iterable[Done], waiting: Iterable[tuple[float, int]]
) -> Iterator[ExchangeReport]:
    """Yield a report of each exchange of a client, whose first connection is `flow`. `waiting` has
    those that are not complete, as `lab.scenario.clients.Client` keeps them."""
    for each in done:
        taken_s = round(each.end_s - each.at_s, 6)
        yield ExchangeReport(flow.id, flow.user, flow.kind, each.at_s, taken_s, each.size_bytes)
    for at_s, size_bytes in waiting:
        yield ExchangeReport(flow.id, flow.user, flow.kind, at_s, None, size_bytes)


@dataclass(frozen=True)
class VideoReport:
    """What the viewer of a video saw; the fields are those of `lab.scenario.clients.Quality`."""

    connection: str
    user: str
    bitrate_mbps: float | None
    startup_s: float
    stalls: int
    stall_s: float
    switches: int


@dataclass(frozen=True)
class CallReport:
    """One direction of a call. `delays_ms` has the one-way delay of each datagram that arrived, by
    its number from 0."""

    connection: str
    delays_ms: Mapping[int, float]


@dataclass(frozen=True)
class MptcpVerdict:
    """Whether the connections of all multipath users were Multipath TCP and had all their subflows.

    `verified` is None if no multipath user had a connection. `joins` counts the subflows after the
    first one of each connection. `fallbacks` counts the connections that became plain TCP. `why`
    says what was missing; it is None if nothing was.
    """

    verified: bool | None = False
    joins: int = 0
    fallbacks: int = 0
    why: str | None = None


@dataclass(frozen=True)
class MptcpCheck:
    """One connection of a multipath user: whether it is Multipath TCP, how many subflows it has,
    and how many it should have."""

    id: str
    is_mptcp: bool
    subflows: int
    wanted_subflows: int


def mptcp_verdict(checks: Sequence[MptcpCheck], joins: int, fallbacks: int) -> MptcpVerdict:
    """Decide whether the connections of all multipath users really used Multipath TCP.

    `verified` of the result is True if each connection in `checks` is Multipath TCP and has at
    least its `wanted_subflows`. It is None if `checks` is empty. `joins` and `fallbacks` are copied
    into the result.
    """
    why = [
        f"{each.id} is plain TCP"
        if not each.is_mptcp
        else f"{each.id} has {each.subflows} of {each.wanted_subflows} subflows"
        for each in checks
        if not each.is_mptcp or each.subflows < each.wanted_subflows
    ]
    return MptcpVerdict(not why if checks else None, joins, fallbacks, "; ".join(why) or None)


@dataclass(frozen=True)
class Overload:
    """Whether the machine was too slow to run the network in real time.

    `reasons` are sentences for the user. `figures` are the measurements behind them, by name.
    """

    overloaded: bool = False
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object under the key `overload` of result.json."""
        return {
            "overloaded": self.overloaded,
            "reasons": list(self.reasons),
            **self.figures,
        }


@dataclass(frozen=True)
class Report:
    """The part of result.json that cannot be computed from the samples.

    `cc` is the congestion control that the connections really used.
    """

    connections: tuple[ConnectionReport, ...] = ()
    mptcp: MptcpVerdict = MptcpVerdict()
    cc: str | None = None
    overload: Overload = Overload()
    exchanges: tuple[ExchangeReport, ...] = ()
    videos: tuple[VideoReport, ...] = ()
    calls: tuple[CallReport, ...] = ()

    def in_scenario_units(self, rate_scale: float) -> Report:
        """Return a copy with every rate divided by `rate_scale`.

        This converts rates on the wire to the rates of the scenario file.
        """
        if rate_scale == 1:
            return self
        connections = tuple(
            replace(
                _divided(each, rate_scale),
                subflows=tuple(_divided(subflow, rate_scale) for subflow in each.subflows),
            )
            for each in self.connections
        )
        return replace(self, connections=connections)

    def connections_json(self) -> list[dict[str, Any]]:
        """Return the list under the key `connections` of result.json."""
        return [
            asdict(each) | {"subflows": [_subflow_json(subflow) for subflow in each.subflows]}
            for each in self.connections
        ]


def _divided(part: Any, rate_scale: float) -> Any:
    """Return a copy of a `ConnectionReport` or `SubflowReport` with its throughput divided by
    `rate_scale`."""
    if part.throughput_mbps is None:
        return part
    return replace(part, throughput_mbps=round(part.throughput_mbps / rate_scale, DIGITS))


def _subflow_json(subflow: SubflowReport) -> dict[str, Any]:
    return asdict(subflow) | {"path": list(subflow.path)}
