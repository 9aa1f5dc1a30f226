"""Hold what an engine reports when a run ends; both engines fill it in.

Rates are Mb/s of received payload, on the wire; `in_scenario_units` converts them. A figure that
nobody measured is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in result.json


@dataclass(frozen=True)
class SubflowReport:
    """Describe one subflow over the whole run.

    `segments` counts every data segment the sender transmitted, retransmissions included;
    `lost_segments` those of them that neither arrived nor are in flight at the end;
    `retransmitted_segments` those that repeat an earlier one on the same subflow. `path` lists the
    switches from server to user.
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
    """Describe one connection over the whole run; `completion_s` counts from its own start.

    `receive_buffer_max_bytes` is the most data its receiver held back at once because data before
    it was missing. The emulation measures it every 50 ms.
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
    """Say whether multipath users' connections were Multipath TCP with all their subflows.

    `verified` is None if no user was meant to be multipath; `why` says what was missing.
    """

    verified: bool | None = False
    joins: int = 0
    fallbacks: int = 0
    why: str | None = None


@dataclass(frozen=True)
class MptcpCheck:
    """Describe one connection of a multipath user: what it is, and what it should be."""

    id: str
    is_mptcp: bool
    subflows: int
    wanted_subflows: int


def mptcp_verdict(checks: Sequence[MptcpCheck], joins: int, fallbacks: int) -> MptcpVerdict:
    """Judge the connections of all multipath users.

    Each must be Multipath TCP with one subflow per address of its user; `joins` counts the further
    subflows, `fallbacks` the connections that became plain TCP.
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
    """Say whether the machine kept up with what it emulated; `figures` is the evidence, by name."""

    overloaded: bool = False
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the `overload` of result.json."""
        return {
            "overloaded": self.overloaded,
            "reasons": list(self.reasons),
            **self.figures,
        }


@dataclass(frozen=True)
class Report:
    """Hold what result.json needs beside the samples; `cc` was read back from connections."""

    connections: tuple[ConnectionReport, ...] = ()
    mptcp: MptcpVerdict = MptcpVerdict()
    cc: str | None = None
    overload: Overload = Overload()

    def in_scenario_units(self, rate_scale: float) -> Report:
        """Return the report with every rate divided by `rate_scale`."""
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
        """Return the `connections` of result.json."""
        return [
            asdict(each) | {"subflows": [_subflow_json(subflow) for subflow in each.subflows]}
            for each in self.connections
        ]


def _divided(part: Any, rate_scale: float) -> Any:
    """Divide the throughput of a connection or subflow."""
    if part.throughput_mbps is None:
        return part
    return replace(part, throughput_mbps=round(part.throughput_mbps / rate_scale, DIGITS))


def _subflow_json(subflow: SubflowReport) -> dict[str, Any]:
    return asdict(subflow) | {"path": list(subflow.path)}
