"""Compute the expected rate and round-trip time of a path, and compare them with measurements.

This module also evaluates MPTCP counters. Its functions only compute; they measure nothing. Rates
in `PathFigures` are in the scenario's units, not the scaled rates on the wire.
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

PACKETS = 100  # in a burst that measures a rate; every queue on a path has room for them
PING_BITS = 98 * 8  # of one echo request in an Ethernet frame
TOLERANCE = 0.10
MAX_ATTEMPTS = 2
RTT_FLOOR_MS = 2.0  # what the machine itself may add to a round trip


@dataclass(frozen=True)
class PathFigures:
    """Hold the rate and the round-trip time of a path.

    An expected rate of None is unlimited. A measured figure of None means that no answer came.
    """

    rate_mbps: float | None
    rtt_ms: float | None

    def rounded(self, digits_of_rtt: int) -> PathFigures:
        """Return the figures, rounded to 4 (rate) and `digits_of_rtt` decimals (round trip)."""
        return PathFigures(_rounded(self.rate_mbps, 4), _rounded(self.rtt_ms, digits_of_rtt))


@dataclass(frozen=True)
class Comparison:
    """Hold the expected and the measured figures of one path."""

    expected: PathFigures
    measured: PathFigures

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `links_measured` in manifest.json."""
        return {"asked": asdict(self.expected), "measured": asdict(self.measured)}

    def complaints(self, name: str) -> Iterator[str]:
        """Yield a sentence for each measured figure that differs from the expectation by over 10 %.

        A round trip may also be up to `RTT_FLOOR_MS` off. `name` names the path in the sentence.
        """
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
    """Return the expected figures of the path from a user's server to an interface of the user.

    They apply without other traffic. The topology has wire rates; the returned rate is in the
    scenario's units. The round trip includes the transmission time of a ping on the slowest link,
    in both directions.
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
    """Return the links of a shortest path from a server to an interface, the last one included."""
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
    """Compare expected figures with a measured wire rate and a measured round-trip time.

    The measured rate is converted to the scenario's units by `rate_scale`.
    """
    rate_mbps = units.scenario_mbps(rate_bps, rate_scale) if rate_bps else None
    measured = PathFigures(rate_mbps, rtt_ms or None)
    return Comparison(wanted.rounded(4), measured.rounded(3))


def best_attempt(name: str, measure: Callable[[], Comparison]) -> tuple[Comparison, list[str]]:
    """Measure a path, and once more if there are complaints; return the better comparison.

    The second element of the result has its complaints (`Comparison.complaints`). A second attempt
    is useful because a busy machine delays only some packets, a wrong link delays all of them.
    """
    attempts: list[tuple[Comparison, list[str]]] = []
    while len(attempts) < MAX_ATTEMPTS and all(wrong for _, wrong in attempts):
        comparison = measure()
        attempts.append((comparison, list(comparison.complaints(name))))
    return min(attempts, key=lambda each: len(each[1]))


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def mptcp_counters(netstat: str) -> dict[str, int]:
    """Return the MPTcpExt counters by name, from the text of /proc/PID/net/netstat."""
    lines = [line.split() for line in netstat.splitlines() if line.startswith("MPTcpExt:")]
    return dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True)) if len(lines) == 2 else {}


def joins(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many subflows beyond the first the users' hosts have opened in total.

    `counters` has the MPTCP counters of each user.
    """
    return sum(each.get("MPJoinSynAckRx", 0) for each in counters.values())


def fallbacks(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many connections have fallen back to plain TCP.

    `counters` has the MPTCP counters of each user.
    """
    return sum(
        count for each in counters.values() for name, count in each.items() if "Fallback" in name
    )
