"""How long a transfer takes that has the network to itself.

This is the yardstick of a slowdown: the round-trip time of a path plus the time that its slowest
link needs for the data in full frames, without a handshake and without slow start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from controller import paths
from lab.radio.cell import BOTH_WAYS
from lab.topologies.topology import (
    Direction,
    Interface,
    Topology,
    Wiring,
    link_delay_ns,
    neighbours,
    used,
    wire,
)

FRAME_BYTES, PAYLOAD_BYTES = 1514, 1420  # of a full frame of Multipath TCP
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class AlonePath:
    """A path between a user and its server. `rate_bps` is that of its slowest link, in Ethernet
    frames; 0 if no link has a rate."""

    rate_bps: int
    rtt_s: float

    def seconds(self, size_bytes: float) -> float:
        """Return how long a transfer of `size_bytes` of payload takes alone on this path."""
        sent_bits = size_bytes * 8 * FRAME_BYTES / PAYLOAD_BYTES
        return self.rtt_s + (sent_bits / self.rate_bps if self.rate_bps else 0.0)


def paths_alone(topology: Topology, user: str, direction: str) -> tuple[AlonePath, ...]:
    """Return a path for each interface over which a user sends: one of those with the fewest links,
    as the network is at the start. `direction` is that of the data."""
    wiring = wire(topology)
    return tuple(
        path
        for interface in used(topology, wiring, user)
        if (path := _path(topology, wiring, interface, direction))
    )


def _path(
    topology: Topology, wiring: Wiring, interface: Interface, direction: str
) -> AlonePath | None:
    server = wiring.of(topology.server_of(interface.node))[0]
    found = paths.shortest(neighbours(wiring), server.switch, interface.switch)
    if not found:
        return None
    hops = [(server.node, server.link, found[0][0])]
    for here, there in pairwise(found[0]):
        hops.append((here, _between(wiring, here, there), there))
    hops.append((found[0][-1], interface.link, interface.node))
    steps = [step for hop in hops for step in _step(topology, *hop, direction)]
    rates = [rate for rate, _ in steps if rate]
    return AlonePath(min(rates, default=0), sum(delay for _, delay in steps) / NS_PER_S)


def _between(wiring: Wiring, here: str, there: str) -> str:
    return next(each.link for each in wiring.trunks if {each.a, each.b} == {here, there})


def _step(
    topology: Topology, above: str, link: str, below: str, direction: str
) -> Iterator[tuple[int | None, int]]:
    """Yield the rate of a hop in bit/s, in the direction of the data, and its delay there and back
    in ns. `above` is its end at the server."""
    for cell in topology.cells:
        for station in cell.stations:
            if {cell.ap, station.user} == {above, below}:
                ways = {each: topology.bearer(cell, station, each) for each in BOTH_WAYS}
                yield ways[direction].rate_bps, sum(each.delay_ns or 0 for each in ways.values())
                return
    wired = next(each for each in topology.links if each.id == link)
    down: Direction = "ab" if wired.a == above else "ba"
    back: Direction = "ba" if down == "ab" else "ab"
    delays_ns = (link_delay_ns(wired.way(side), topology.cells)[0] for side in (down, back))
    yield wired.way(down if direction == "down" else back).rate_bps, sum(delays_ns)
