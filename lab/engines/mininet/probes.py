"""Compute what a path should achieve, compare it with what was measured, and read counters. Pure.

Figures of a path are a `PathFigures`. Rates of one that is reported are in the scenario's units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from controller import units
from controller.paths import shortest
from lab.topologies.link_delay import link_delay_ns
from lab.topologies.topology import Interface, Link, Topology

PACKETS = 100  # of a burst that measures a rate; every queue holds as many
PING_BITS = 98 * 8  # of one echo request in an Ethernet frame
TOLERANCE = 0.10
MAX_ATTEMPTS = 2
RTT_FLOOR_MS = 2.0  # what the machine itself may add to a round trip


@dataclass(frozen=True)
class PathFigures:
    """Hold the rate in Mb/s and the round trip in ms of a path; None is unlimited or unknown."""

    rate_mbps: float | None
    rtt_ms: float | None

    def rounded(self, digits_of_rtt: int) -> PathFigures:
        """Return the figures as a document shows them."""
        return PathFigures(_rounded(self.rate_mbps, 4), _rounded(self.rtt_ms, digits_of_rtt))


@dataclass(frozen=True)
class Comparison:
    """Hold what a path should achieve beside what was measured."""

    expected: PathFigures
    measured: PathFigures

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `links_measured` in manifest.json."""
        return {"asked": asdict(self.expected), "measured": asdict(self.measured)}

    def complaints(self, name: str) -> Iterator[str]:
        """Yield a sentence for each figure that is off by more than a tenth."""
        for key, unit, slack in (("rate_mbps", "Mb/s", 0.0), ("rtt_ms", "ms", RTT_FLOOR_MS)):
            wanted, got = getattr(self.expected, key), getattr(self.measured, key)
            if wanted is None:
                continue
            if got is None:
                yield f"{name}: expected {wanted:g} {unit}, but no answer came back"
            elif abs(got - wanted) > TOLERANCE * wanted + slack:
                change = got / wanted - 1
                yield f"{name}: expected {wanted:g} {unit}, measured {got:g} ({change:+.0%})"


def expected_figures(
    topology: Topology, interface: Interface, rate_scale: float = 1.0
) -> PathFigures:
    """Return what the path to an interface achieves without other traffic.

    The topology holds wire rates; the returned rate is in the scenario's units. The round trip
    includes the time that one ping takes on the slowest link in both directions.
    """
    cell = next((cell for cell in topology.cells if cell.ap == interface.link), None)
    links = _links_to(topology, topology.server_of(interface.node), interface)
    rates = [link.rate_bps for link in links if link.rate_bps]
    delay_ns = sum(link_delay_ns(link, topology.cells)[0] for link in links)
    if cell is not None:
        rates.append(next(each.rate_bps for each in cell.stations if each.user == interface.node))
    rate_bps = min(rates, default=0)
    serialisation_ms = 2 * PING_BITS / rate_bps * 1000 if rate_bps else 0.0
    rate_mbps = units.scenario_mbps(rate_bps, rate_scale) or None
    return PathFigures(rate_mbps, 2 * units.ms_from_ns(delay_ns) + serialisation_ms)


def _links_to(topology: Topology, server: str, interface: Interface) -> list[Link]:
    """Return the links of a shortest path from a server to an interface, its own wire included."""
    links = {frozenset((link.a, link.b)): link for link in topology.links}
    neighbours: dict[str, set[str]] = {node.id: set() for node in topology.nodes}
    for link in topology.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    for user in topology.users:
        neighbours[user] = set()  # a user forwards nothing
    path = shortest(neighbours, server, interface.switch)[0]
    own = [link for link in topology.links if link.id == interface.link]
    return [*(links[frozenset(ends)] for ends in pairwise(path)), *own]


def compare(
    wanted: PathFigures, rate_bps: float | None, rtt_ms: float | None, rate_scale: float = 1.0
) -> Comparison:
    """Return the comparison of expected figures with a wire rate and a round trip."""
    rate_mbps = units.scenario_mbps(rate_bps, rate_scale) if rate_bps else None
    measured = PathFigures(rate_mbps, rtt_ms or None)
    return Comparison(wanted.rounded(4), measured.rounded(3))


def best_attempt(name: str, measure: Callable[[], Comparison]) -> tuple[Comparison, list[str]]:
    """Measure up to twice; return the best comparison and its complaints.

    A busy machine delays some packets; a wrong link delays all of them.
    """
    attempts: list[tuple[Comparison, list[str]]] = []
    while len(attempts) < MAX_ATTEMPTS and all(wrong for _, wrong in attempts):
        comparison = measure()
        attempts.append((comparison, list(comparison.complaints(name))))
    return min(attempts, key=lambda each: len(each[1]))


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def mptcp_counters(netstat: str) -> dict[str, int]:
    """Return the MPTcpExt counters of /proc/PID/net/netstat."""
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
