"""Define the report that an engine returns when a run ends. Both engines fill in the same fields.

Rates are Mb/s of received payload on the wire; `Report.in_scenario_units` converts them. A figure
that was not measured is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in result.json


@dataclass(frozen=True)
class SubflowReport:
    """Describe one subflow over the whole run.

    `segments` counts all data segments that the sender transmitted, retransmissions included;
    `lost_segments` counts the transmitted segments that have not arrived and are not in flight at
    the end; `retransmitted_segments` counts the segments that repeat an earlier one on the same
    subflow. `path` lists the switches from server to user. `backup_s` is the time in s for which it
    was a backup.
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


@dataclass(frozen=True)
class ConnectionReport:
    """Describe one connection over the whole run.

    `completion_s` is the time in s from the start of the connection until its file was complete.
    `receive_buffer_max_bytes` is the most data that the receiver held because earlier data was
    missing; the emulation measures it every 50 ms.
    """

    id: str
    user: str
    throughput_mbps: float | None = None
    completion_s: float | None = None
    out_of_order_fraction: float | None = None
    receive_buffer_max_bytes: int | None = None
    subflows: tuple[SubflowReport, ...] = ()


@dataclass(frozen=True)
class MptcpVerdict:
    """Say whether the connections of multipath users were Multipath TCP with all their subflows.

    `verified` is None if the scenario has no multipath user with a connection. `joins` counts
    subflows after the first one of each connection, `fallbacks` connections that became plain TCP.
    `why` says what was missing.
    """

    verified: bool | None = False
    joins: int = 0
    fallbacks: int = 0
    why: str | None = None


@dataclass(frozen=True)
class MptcpCheck:
    """Describe one connection of a multipath user: whether it is Multipath TCP, how many subflows
    it has, and how many it should have."""

    id: str
    is_mptcp: bool
    subflows: int
    wanted_subflows: int


def mptcp_verdict(checks: Sequence[MptcpCheck], joins: int, fallbacks: int) -> MptcpVerdict:
    """Judge the connections of all multipath users.

    Each must be Multipath TCP with one subflow per address of its user. `joins` counts subflows
    after the first one of each connection, `fallbacks` connections that became plain TCP.
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
    """Say whether the machine was too slow for the network that it emulated. `reasons` are texts
    for people; `figures` are the measured numbers behind them, by name."""

    overloaded: bool = False
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the value of the key `overload` of result.json."""
        return {
            "overloaded": self.overloaded,
            "reasons": list(self.reasons),
            **self.figures,
        }


@dataclass(frozen=True)
class Report:
    """Hold what result.json needs in addition to the samples. `cc` is the congestion control that
    the open connections really had."""

    connections: tuple[ConnectionReport, ...] = ()
    mptcp: MptcpVerdict = MptcpVerdict()
    cc: str | None = None
    overload: Overload = Overload()

    def in_scenario_units(self, rate_scale: float) -> Report:
        """Return the report with every rate divided by `rate_scale`: rates as in the scenario
        instead of rates on the wire."""
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
        """Return the value of the key `connections` of result.json."""
        return [
            asdict(each) | {"subflows": [_subflow_json(subflow) for subflow in each.subflows]}
            for each in self.connections
        ]


def _divided(part: Any, rate_scale: float) -> Any:
    """Return the report of a connection or subflow with its throughput divided by `rate_scale`."""
    if part.throughput_mbps is None:
        return part
    return replace(part, throughput_mbps=round(part.throughput_mbps / rate_scale, DIGITS))


def _subflow_json(subflow: SubflowReport) -> dict[str, Any]:
    return asdict(subflow) | {"path": list(subflow.path)}
