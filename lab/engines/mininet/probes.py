"""From text and reports to numbers, and what to think of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from controller import units
from controller.paths import shortest
from lab.topologies.topology import Interface, Link, Topology

PACKETS = 100  # of a burst that measures a rate; every queue holds as many
TOLERANCE = 0.10
TRIES = 2
RTT_FLOOR_MS = 2.0  # what the machine itself may add to a round trip


def asked(topology: Topology, interface: Interface) -> dict[str, float | None]:
    """Rate [Mb/s] and round trip [ms] an interface should have when nobody else is there."""
    cell = next((cell for cell in topology.cells if cell.ap == interface.link), None)
    way = _way(topology, topology.server_of(interface.node), interface)
    rates = [link.rate_bps for link in way if link.rate_bps]
    delay_ns = sum(link.delay_ns for link in way)
    if cell is not None:
        rates.append(next(each.rate_bps for each in cell.stations if each.user == interface.node))
        delay_ns += cell.delay_ns
    rate_bps = min(rates, default=0)
    serialisation_ms = 2 * 98 * 8 / rate_bps * 1000 if rate_bps else 0.0
    return {
        "rate_mbps": units.mbps_from_bps(rate_bps) or None,
        "rtt_ms": 2 * units.ms_from_ns(delay_ns) + serialisation_ms,
    }


def _way(topology: Topology, server: str, interface: Interface) -> list[Link]:
    """The links of a shortest way from a server to an interface, its own included when it is wired."""
    links = {frozenset((link.a, link.b)): link for link in topology.links}
    neighbours: dict[str, set[str]] = {node.id: set() for node in topology.nodes}
    for link in topology.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    for user in topology.users:
        neighbours[user] = set()  # nobody's way leads through a user
    way = shortest(neighbours, server, interface.switch)[0]
    own = [link for link in topology.links if link.id == interface.link]
    return [*(links[frozenset(ends)] for ends in pairwise(way)), *own]


def compare(wanted: Mapping[str, float | None], got: Mapping[str, float | None]) -> dict[str, Any]:
    """What was asked of a link beside what was measured."""
    rate, rtt = got.get("rate_bps"), got.get("rtt_ms")
    return {
        "asked": {key: None if value is None else round(value, 4) for key, value in wanted.items()},
        "measured": {
            "rate_mbps": round(rate / 1e6, 4) if rate else None,
            "rtt_ms": round(rtt, 3) if rtt else None,
        },
    }


def tried(
    name: str, wanted: Mapping[str, float | None], measure: Callable[[], Mapping[str, float | None]]
) -> tuple[dict[str, Any], list[str]]:
    """The best of a few measurements, and what is wrong with it: a busy machine delays some packets, a wrong link all of them."""
    tries: list[tuple[dict[str, Any], list[str]]] = []
    while len(tries) < TRIES and all(wrong for _, wrong in tries):
        measured = compare(wanted, measure())
        tries.append((measured, list(complaints(name, measured))))
    return min(tries, key=lambda each: len(each[1]))


def complaints(name: str, measured: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each number that is more than a tenth off."""
    for key, unit, slack in (("rate_mbps", "Mb/s", 0.0), ("rtt_ms", "ms", RTT_FLOOR_MS)):
        wanted, got = measured["asked"][key], measured["measured"][key]
        if wanted is None:
            continue
        if got is None:
            yield f"{name}: asked for {wanted:g} {unit}, and nothing came back"
        elif abs(got - wanted) > TOLERANCE * wanted + slack:
            yield f"{name}: asked for {wanted:g} {unit}, measured {got:g} ({got / wanted - 1:+.0%})"


def tier1_occupancy(report: Mapping[str, Any], tiers: Mapping[str, Mapping[str, int]]) -> float:
    """An access point's MAC occupancy; of an LTE cell, the mean over the bearers that carry Tier 1."""
    bearers = [
        each["mac_occupancy"]
        for user, each in report["stations"].items()
        if "mac_occupancy" in each and tiers.get(user, {}).get(report["ap"], 1) == 1
    ]
    return sum(bearers) / len(bearers) if bearers else float(report["mac_occupancy"])


def mptcp_counters(netstat: str) -> dict[str, int]:
    """The MPTcpExt counters of /proc/PID/net/netstat."""
    lines = [line.split() for line in netstat.splitlines() if line.startswith("MPTcpExt:")]
    return dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True)) if len(lines) == 2 else {}


def joins(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Count the further subflows that users' kernels opened, from their MPTCP counters."""
    return sum(each.get("MPJoinSynAckRx", 0) for each in counters.values())


def fallbacks(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Count the connections that became plain TCP, from the kernels' MPTCP counters."""
    return sum(
        count for each in counters.values() for name, count in each.items() if "Fallback" in name
    )
