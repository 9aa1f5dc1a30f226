"""Compute the expected rate and round-trip time of paths, and compare them with measurements.

The module also evaluates the kernel's MPTCP counters. It does not measure anything itself. Rates in
`PathFigures` are in the units of the scenario. They have to be multiplied by `rate_scale` to get
rates on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from controller import units
from controller.paths import shortest
from lab.radio import dcf, wifi
from lab.radio.cell import Cell, Station, Towards
from lab.topologies.topology import BOTH, Direction, Interface, Link, Topology, link_delay_ns, wire

TOWARDS: tuple[Towards, Towards] = ("down", "up")
PACKETS = 100  # of a burst that measures a rate
LEAST_PACKETS, LONGEST_S = 25, 1.0  # on a slow path
MOST_PACKETS, SHORTEST_S = 1000, 0.2  # on a fast one: who reads late sees a short burst at once
EXCESS = 2  # a burst is sent at this multiple of the expected rate, so that a queue builds up
PING_BYTES = 98  # of one echo request, an Ethernet frame
PING_BITS = PING_BYTES * 8
FRAME_BITS = 1514 * 8
TOLERANCE, MISLEADING = 0.10, 0.30
MAX_ATTEMPTS = 2
BEARERS_BPS = 5_000_000  # of all LTE bearers that are measured at the same time
WMEDIUMD_MS = 2.0  # that a frame spends in the process wmediumd, in a VM without KVM
RTT_FLOOR_MS = 2.0  # that the machine itself may add to a round trip


@dataclass(frozen=True)
class PathFigures:
    """The rates and the round-trip time of a path, either expected or measured.

    `rate_mbps` is the rate towards the user, `up_mbps` the rate from the user. None has these
    meanings:

    - an expected rate: unlimited
    - an expected `up_mbps`: unlimited or not to be measured
    - a measured value: no answer came
    """

    rate_mbps: float | None
    rtt_ms: float | None
    up_mbps: float | None = None

    def rounded(self, digits_of_rtt: int) -> PathFigures:
        """Round the rates to 4 decimals, and the round-trip time to `digits_of_rtt` decimals."""
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
        """Return an entry for `links_measured` in the run's manifest.json."""
        return {"asked": asdict(self.expected), "measured": asdict(self.measured)}

    def complaints(self, name: str, tolerance: float = TOLERANCE) -> Iterator[str]:
        """Yield a sentence for each measured value that differs too much from the expected value.

        `tolerance` is a fraction of the expected value. A round-trip time may differ by
        `RTT_FLOOR_MS` more. `name` is the name of the path in the sentences.
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
    topology: Topology,
    interface: Interface,
    rate_scale: float = 1.0,
    up: bool = False,
    transmission_ns: Mapping[str, int] = MappingProxyType({}),
) -> PathFigures:
    """Return the expected rates and round-trip time of a path without other traffic.

    The path leads from the server of a user to an `interface` of the user. The expected rate is the
    lowest rate on the path in `topology`, divided by `rate_scale`. `up_mbps` is None unless `up` is
    True.

    If wmediumd models a cell on the path, the round-trip time includes the time in wmediumd. The
    round-trip time also includes the time to transmit a ping there and back in the WiFi cells and
    on wired links, or there what `transmission_ns` says by the ID of the link. An LTE bearer adds
    nothing, because it is a token bucket, and a single ping passes it at once.
    """
    server = topology.server_of(interface.node)
    links = _links_to(topology, server, interface)
    hops = _radio_hops(topology, interface, links)
    stations = [station for _, station in hops]
    ways = _ways(links, server)
    down_bps, up_bps = (
        min(
            [
                *(way.rate_bps for way in each if way.rate_bps),
                *(station.way(towards).rate_bps for station in stations),
            ],
            default=0,
        )
        for each, towards in zip(ways, TOWARDS, strict=True)
    )
    delays_ns = [link_delay_ns(way, topology.cells)[0] for each in ways for way in each]
    of_bearers_ns = [
        topology.bearer(*hop, towards).delay_ns or 0 for hop in hops for towards in TOWARDS
    ]
    delay_ns = sum(delays_ns) + sum(of_bearers_ns)
    in_cells_ms = sum(
        _in_cell_ms(cell, station.way(towards)) for cell, station in hops for towards in TOWARDS
    )
    on_links_ms = sum(_on_link_ms(link, transmission_ns) for link in links)
    serialisation_ms = in_cells_ms + on_links_ms
    down_mbps, up_mbps = (
        units.scenario_mbps(each, rate_scale) or None for each in (down_bps, up_bps)
    )
    in_user_space_ms = WMEDIUMD_MS * sum(cell.air == "wmediumd" for cell, _ in hops)
    rtt_ms = units.ms_from_ns(delay_ns) + 2 * in_user_space_ms + serialisation_ms
    return PathFigures(down_mbps, rtt_ms, up_mbps if up else None)


def _in_cell_ms(cell: Cell, station: Station) -> float:
    """Return the time of a ping in a cell, in the direction whose rate `station` has."""
    if cell.kind != "wifi":
        return 0.0
    if cell.air == "dcf":
        return units.ms_from_ns(dcf.alone_ns(cell, station, PING_BYTES))
    fixed_ms = units.ms_from_ns(wifi.fixed_ns(station)) * (1 - PING_BITS / FRAME_BITS)
    return PING_BITS / station.rate_bps * 1000 + fixed_ms


def _ways(links: Iterable[Link], server: str) -> tuple[list[Link], list[Link]]:
    """Return both directions of each link on a path: away from the server, and back."""
    down, up, here = [], [], server
    for link in links:
        sides: tuple[Direction, Direction] = ("ab", "ba") if link.a == here else ("ba", "ab")
        here = link.b if link.a == here else link.a
        down.append(link.way(sides[0]))
        up.append(link.way(sides[1]))
    return down, up


def _on_link_ms(link: Link, transmission_ns: Mapping[str, int]) -> float:
    if link.id in transmission_ns:
        return units.ms_from_ns(transmission_ns[link.id])
    rates_bps = (link.way(side).rate_bps for side in BOTH)
    return sum(PING_BITS / rate_bps * 1000 for rate_bps in rates_bps if rate_bps)


def _links_to(topology: Topology, server: str, interface: Interface) -> list[Link]:
    """Return the links of a shortest path from the first address of a server to an interface.

    The link of the interface itself is included.
    """
    links = {frozenset((link.a, link.b)): link for link in topology.links}
    neighbours: dict[str, set[str]] = {node.id: set() for node in topology.nodes}
    for link in topology.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    for host in topology.ids("user", "server"):
        neighbours[host] = set()  # a host forwards nothing
    first = wire(topology).of(server)[0].switch
    path = server, *shortest(neighbours, first, interface.switch)[0]
    own = [link for link in topology.links if link.id == interface.link]
    return [*(links[frozenset(ends)] for ends in pairwise(path)), *own]


def _radio_hops(
    topology: Topology, interface: Interface, links: Iterable[Link]
) -> list[tuple[Cell, Station]]:
    """Return the radio cells on a path, each with the station that the path uses in this cell.

    The station is the user, or a relay on the path (a switch with a radio).
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
    """Compare expected values (`wanted`) with measured rates and a measured round-trip time.

    `rate_bps` is the rate towards the user, `up_bps` the rate from the user, both measured on the
    wire. Both are divided by `rate_scale` for the comparison.
    """
    rate_mbps, up_mbps = (
        units.scenario_mbps(each, rate_scale) if each else None for each in (rate_bps, up_bps)
    )
    measured = PathFigures(rate_mbps, rtt_ms or None, up_mbps)
    return Comparison(wanted.rounded(4), measured.rounded(3))


def best_attempts(
    names: Iterable[str], measure: Callable[[Collection[str]], Mapping[str, Comparison]]
) -> dict[str, tuple[Comparison, list[str]]]:
    """Measure the paths in `names`. Measure paths with complaints once more.

    For each path, return the comparison with fewer complaints, and these complaints
    (`Comparison.complaints`). `measure` is called with the names of the paths to measure; it
    returns their comparisons of expected and measured values. The second attempt tells two
    causes apart: a busy machine delays only some packets, but a wrongly configured link delays all.
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
    """Return the parameters of the packet burst that measures a path: `packets` and `send_bps`.

    The burst has `PACKETS`, fewer if the expected rate carries these in no less than `LONGEST_S`,
    and more if in less than `SHORTEST_S`. If the expected rate is None (unlimited), `packets` is
    `PACKETS`, and `send_bps` is 0, which means no pauses.
    """
    if expected.rate_mbps is None:
        return {"packets": PACKETS, "send_bps": 0}
    rate_bps = units.wire_bps(expected.rate_mbps, rate_scale)
    shortest, longest = (round(each * rate_bps / FRAME_BITS) for each in (SHORTEST_S, LONGEST_S))
    packets = max(min(PACKETS, longest), shortest, LEAST_PACKETS)
    return {"packets": min(packets, MOST_PACKETS), "send_bps": EXCESS * rate_bps}


def rounds(topology: Topology, interfaces: Sequence[Interface]) -> list[list[Interface]]:
    """Divide interfaces into lists. The paths to all interfaces of one list are measured together.

    Paths in one list must not disturb each other. So they lead to different users and use different
    WiFi channels. The rates of their LTE bearers add up to at most `BEARERS_BPS`, which a slow
    machine can carry. A path without a radio is alone in its list. So is a path on which a wired
    link has a limited rate, because other paths may use this link too.
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
    """Return the radio cells on a path, like `_radio_hops`; [] if a wired link limits the rate."""
    links = _links_to(topology, topology.server_of(interface.node), interface)
    if any(link.rate_bps for link in links):
        return []
    return _radio_hops(topology, interface, links)


def _channel(cell: Cell, user: str) -> str:
    """Return a name for a resource that only one path may use at a time.

    In a WiFi cell, this is the channel. In an LTE cell, it is the bearer of this user, because a
    measurement gives each bearer the rate that it would have alone.
    """
    return f"{cell.ap} {user}" if cell.kind == "lte" else cell.medium or cell.ap


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def mptcp_counters(netstat: str) -> dict[str, int]:
    """Return the kernel's MPTcpExt counters. `netstat` is the text of /proc/PID/net/netstat."""
    lines = [line.split() for line in netstat.splitlines() if line.startswith("MPTcpExt:")]
    return dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True)) if len(lines) == 2 else {}


def queued(counters: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return how many segments each host has put into MPTCP's out-of-order queue (OFOQueue).

    `counters` maps hosts to their MPTCP counters. Hosts without this counter are left out.
    """
    return {host: each["OFOQueue"] for host, each in counters.items() if "OFOQueue" in each}


def joins(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many subflows beyond the first the servers have let in; `counters` is by server.

    A user's MPJoinSynAckRx would also count those that the server refuses afterwards, because its
    application has closed its side.
    """
    return sum(each.get("MPJoinAckRx", 0) for each in counters.values())


def fallbacks(counters: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many connections of all users fell back to plain TCP; `counters` is by user."""
    return sum(
        count for each in counters.values() for name, count in each.items() if "Fallback" in name
    )
