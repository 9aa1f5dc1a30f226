"""Compute the expected rate and round-trip time of a path, and compare them with measurements.

Also evaluates MPTCP counters. Nothing here measures. Rates in `PathFigures` are in the scenario's
units; rates on the wire are these times `rate_scale`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from controller import units
from controller.paths import shortest
from lab.radio import wifi
from lab.radio.cell import Cell, Station
from lab.topologies.topology import Interface, Link, Topology, link_delay_ns

PACKETS = 100  # at most, in a burst that measures a rate
LEAST_PACKETS, BURST_S = 25, 1.0
EXCESS = 2  # a burst is sent at this multiple of the expected rate, so that a queue builds up
PING_BITS = 98 * 8  # of one echo request in an Ethernet frame
FRAME_BITS = 1514 * 8
TOLERANCE, MISLEADING = 0.10, 0.30
MAX_ATTEMPTS = 2
BEARERS_BPS = 5_000_000  # of all LTE bearers that are measured at the same time
WMEDIUMD_MS = 2.0  # that a frame spends in the process wmediumd, in a VM without KVM
RTT_FLOOR_MS = 2.0  # that the machine itself may add to a round trip


@dataclass(frozen=True)
class PathFigures:
    """Rates of both directions and round-trip time of a path.

    `rate_mbps` is the rate towards the user, `up_mbps` the rate from the user. In expected figures,
    a rate of None means unlimited; an `up_mbps` of None can also mean that it is not measured. In
    measured figures, None means that no answer came.
    """

    rate_mbps: float | None
    rtt_ms: float | None
    up_mbps: float | None = None

    def rounded(self, digits_of_rtt: int) -> PathFigures:
        """Round rates to 4 decimals, and the round-trip time to `digits_of_rtt` decimals."""
        return PathFigures(
            _rounded(self.rate_mbps, 4),
            _rounded(self.rtt_ms, digits_of_rtt),
            _rounded(self.up_mbps, 4),
        )


@dataclass(frozen=True)
class Comparison:
    expected: PathFigures
    measured: PathFigures

    def to_json(self) -> dict[str, Any]:
        """Return the figures as an entry of `links_measured` in manifest.json."""
        return {"asked": asdict(self.expected), "measured": asdict(self.measured)}

    def complaints(self, name: str, tolerance: float = TOLERANCE) -> Iterator[str]:
        """Yield a sentence for each measured figure that differs too much from the expected one.

        `tolerance` is relative to the expected figure; a round-trip time may differ by
        `RTT_FLOOR_MS` more. The sentences call the path `name`.
        """
        for key, unit, slack in (
            ("rate_mbps", "Mb/s", 0.0),
            ("rtt_ms", "ms", RTT_FLOOR_MS),
            ("up_mbps", "Mb/s up", 0.0),
        ):
            wanted, got = getattr(self.expected, key), getattr(self.measured, key)
            if wanted is None:
                continue
            if got is None:
                yield f"{name}: expected {wanted:g} {unit}, but no answer came back"
            elif abs(got - wanted) > tolerance * wanted + slack:
                change = got / wanted - 1
                yield f"{name}: expected {wanted:g} {unit}, measured {got:g} ({change:+.0%})"


def expected_figures(
    topology: Topology, interface: Interface, rate_scale: float = 1.0, up: bool = False
) -> PathFigures:
    """Return what a path from a user's server to an `interface` of the user has without other
    traffic.

    The topology has wire rates; the returned rates are in the scenario's units. Links, stations and
    bearers have the same rate in both directions; `up_mbps` is None unless `up` is True. The
    round-trip time includes wmediumd, if that is the medium, and the transmission of a ping in both
    directions: in each WiFi cell, or on the slowest wired link if that takes longer. An LTE bearer
    is a token bucket, which lets a single ping pass at once.
    """
    links = _links_to(topology, topology.server_of(interface.node), interface)
    hops = _radio_hops(topology, interface, links)
    stations = [station for _, station in hops]
    wired_bps = [link.rate_bps for link in links if link.rate_bps]
    rates = [*wired_bps, *(station.rate_bps for station in stations)]
    delay_ns = sum(link_delay_ns(link, topology.cells)[0] for link in links)
    delay_ns += sum(station.delay_ns for station in stations)
    fixed_ns = sum(wifi.fixed_ns(station) for station in stations)
    fixed_ms = units.ms_from_ns(fixed_ns) * (1 - PING_BITS / FRAME_BITS)
    rate_bps = min(rates, default=0)
    in_cells_ms = sum(
        PING_BITS / station.rate_bps * 1000 for cell, station in hops if cell.kind == "wifi"
    )
    on_link_ms = PING_BITS / min(wired_bps) * 1000 if wired_bps else 0.0
    serialisation_ms = 2 * (max(in_cells_ms, on_link_ms) + fixed_ms)
    rate_mbps = units.scenario_mbps(rate_bps, rate_scale) or None
    in_user_space_ms = WMEDIUMD_MS * sum(cell.air == "wmediumd" for cell, _ in hops)
    rtt_ms = 2 * (units.ms_from_ns(delay_ns) + in_user_space_ms) + serialisation_ms
    return PathFigures(rate_mbps, rtt_ms, rate_mbps if up else None)


def _links_to(topology: Topology, server: str, interface: Interface) -> list[Link]:
    """Return the links of a shortest path from a server to an interface, with its own link."""
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


def _radio_hops(
    topology: Topology, interface: Interface, links: Iterable[Link]
) -> list[tuple[Cell, Station]]:
    """Return the cells that a path crosses, each with the station that the path uses there.

    The station is a relay on the path's `links`, or the user of the interface.
    """
    pairs = [*((link.a, link.b) for link in links), (interface.node, interface.link)]
    return [
        (cell, station)
        for pair in pairs
        for cell in topology.cells
        for station in cell.stations
        if {cell.ap, station.user} == set(pair)
    ]


def compare(
    wanted: PathFigures,
    rate_bps: float | None,
    rtt_ms: float | None,
    rate_scale: float = 1.0,
    up_bps: float | None = None,
) -> Comparison:
    """Compare expected figures (`wanted`) with measured wire rates and a measured round-trip time.

    `rate_bps` is the rate towards the user, `up_bps` the rate from the user. Both are divided by
    `rate_scale`, which gives the scenario's units.
    """
    rate_mbps, up_mbps = (
        units.scenario_mbps(each, rate_scale) if each else None for each in (rate_bps, up_bps)
    )
    measured = PathFigures(rate_mbps, rtt_ms or None, up_mbps)
    return Comparison(wanted.rounded(4), measured.rounded(3))


def best_attempts(
    names: Iterable[str], measure: Callable[[Collection[str]], Mapping[str, Comparison]]
) -> dict[str, tuple[Comparison, list[str]]]:
    """Measure the named paths with `measure`, and repeat those with complaints.

    Returns the better comparison of each path, with its complaints (`Comparison.complaints`).
    Repeating tells two causes apart: a busy machine delays only some packets, a wrongly configured
    link delays all.
    """
    best: dict[str, tuple[Comparison, list[str]]] = {}
    left = list(names)
    for _ in range(MAX_ATTEMPTS):
        for name, comparison in measure(left).items() if left else ():
            complaints = list(comparison.complaints(name))
            if name not in best or len(complaints) < len(best[name][1]):
                best[name] = comparison, complaints
        left = [name for name in left if best[name][1]]
    return best


def burst(expected: PathFigures, rate_scale: float) -> dict[str, int]:
    """Return the burst that measures the rate of a path: `packets`, and `send_bps` [bit/s].

    The burst takes at most `BURST_S` at the expected rate, but has at least `LEAST_PACKETS`.
    Without an expected rate, the packets are sent without pauses (`send_bps` is 0).
    """
    if expected.rate_mbps is None:
        return {"packets": PACKETS, "send_bps": 0}
    rate_bps = units.wire_bps(expected.rate_mbps, rate_scale)
    packets = min(PACKETS, max(LEAST_PACKETS, round(BURST_S * rate_bps / FRAME_BITS)))
    return {"packets": packets, "send_bps": EXCESS * rate_bps}


def rounds(topology: Topology, interfaces: Sequence[Interface]) -> list[list[Interface]]:
    """Divide interfaces into lists whose paths can be measured at the same time.

    Paths of one list lead to different users, use different WiFi channels, and cross no link with a
    rate. The rates of their LTE bearers add up to at most `BEARERS_BPS`, which a slow machine
    carries (a faster bearer is the only one in its list). A path over a link with a rate, which
    other paths may share, is alone in its list; so is a path without a radio.
    """
    waiting, found = list(interfaces), list[list[Interface]]()
    hops = {each.name: _only_radio_hops(topology, each) for each in interfaces}
    while waiting:
        together, taken, bearers_bps = list[Interface](), set[str](), 0
        for each in waiting:
            channels = {_channel(cell, each.node) for cell, _ in hops[each.name]}
            own_bps = sum(
                station.rate_bps for cell, station in hops[each.name] if cell.kind == "lte"
            )
            is_free = not taken & {each.node, *channels}
            if own_bps and bearers_bps:
                is_free = is_free and own_bps + bearers_bps <= BEARERS_BPS
            if not together or (taken and channels and is_free):
                together.append(each)
                taken |= {each.node, *channels} if channels else set()
                bearers_bps += own_bps
        found.append(together)
        waiting = [each for each in waiting if each not in together]
    return found


def _only_radio_hops(topology: Topology, interface: Interface) -> list[tuple[Cell, Station]]:
    """Return what `_radio_hops` does, but nothing if a wired link of the path has a rate."""
    links = _links_to(topology, topology.server_of(interface.node), interface)
    if any(link.rate_bps for link in links):
        return []
    return _radio_hops(topology, interface, links)


def _channel(cell: Cell, user: str) -> str:
    """Return a name for what only one path may use at a time.

    In a WiFi cell that is the channel, in an LTE cell the bearer of this user: during the
    measurement, each bearer has the rate that it would have alone in the cell.
    """
    return f"{cell.ap} {user}" if cell.kind == "lte" else cell.medium or cell.ap


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def mptcp_counters(netstat: str) -> dict[str, int]:
    """Return the MPTcpExt counters by name. `netstat` is the text of /proc/PID/net/netstat."""
    lines = [line.split() for line in netstat.splitlines() if line.startswith("MPTcpExt:")]
    return dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True)) if len(lines) == 2 else {}


def queued(counters: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return how many segments each host has put into MPTCP's out-of-order queue (OFOQueue).

    `counters` are the MPTCP counters by host. Hosts without this counter are left out.
    """
    return {host: each["OFOQueue"] for host, each in counters.items() if "OFOQueue" in each}


def joins(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many subflows beyond the first all users have opened; `counters` are by user."""
    return sum(each.get("MPJoinSynAckRx", 0) for each in counters.values())


def fallbacks(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many connections of all users fell back to TCP; `counters` are by user."""
    return sum(
        count for each in counters.values() for name, count in each.items() if "Fallback" in name
    )
