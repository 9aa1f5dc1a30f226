"""Find the shortest paths between switches, and choose one for a flow by hash (ECMP, RFC 2992)."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

MOST_PATHS, MOST_DIGESTS = 64, 8192
TCP = 6  # the protocol number in an IP header
Path = tuple[str, ...]
Neighbours = Mapping[str, Iterable[str]]  # from each switch to the switches next to it


@dataclass(frozen=True, order=True)
class Flow:
    """The 5-tuple of one direction of a TCP connection.

    For other protocols both ports are 0.
    """

    source: str
    destination: str
    protocol: int
    source_port: int = 0
    destination_port: int = 0

    def __str__(self) -> str:
        if not (self.source_port or self.destination_port):
            return f"{self.source} to {self.destination} (protocol {self.protocol})"
        ports = self.source_port, self.destination_port
        return f"{self.source}:{ports[0]} to {self.destination}:{ports[1]}"

    def back(self) -> Flow:
        """Return the flow of the opposite direction."""
        return Flow(
            self.destination, self.source, self.protocol, self.destination_port, self.source_port
        )


def shortest(neighbours: Neighbours, source: str, destination: str) -> list[Path]:
    """Return all paths with the fewest hops from `source` to `destination`, at most 64.

    A path lists its switches, both ends included. The same input always gives the same order. The
    list is empty if no path exists.
    """
    hops = hops_to(neighbours, destination)
    if source not in hops:
        return []
    found: list[Path] = [(source,)]
    for left in range(hops[source] - 1, -1, -1):
        found = [
            (*path, near)
            for path in found
            for near in sorted(neighbours[path[-1]])
            if hops.get(near) == left
        ]
        found = found[:MOST_PATHS]
    return found


def between(neighbours: Neighbours, source: str, destination: str) -> list[Path]:
    """Return all paths with the fewest hops between two switches, at most 64.

    Exchanging `source` and `destination` gives the same list with each path reversed.
    """
    if source <= destination:
        return shortest(neighbours, source, destination)
    return [path[::-1] for path in shortest(neighbours, destination, source)]


def hops_to(neighbours: Neighbours, destination: str) -> dict[str, int]:
    """Map each switch that can reach `destination` to its distance in hops."""
    hops = {destination: 0}
    waiting = deque([destination])
    while waiting:
        here = waiting.popleft()
        for near in neighbours.get(here, ()):
            if near not in hops:
                hops[near] = hops[here] + 1
                waiting.append(near)
    return hops


def choose(candidates: list[Path], flow: Flow) -> Path:
    """Choose one of the candidate paths by a hash of the flow.

    The hash is the same for both directions of a connection. If `candidates` comes from `between`,
    both directions therefore get the same path.
    """
    return candidates[digest(min(flow, flow.back())) % len(candidates)]


@lru_cache(MOST_DIGESTS)
def digest(flow: Flow) -> int:
    """Return a 64-bit hash of a flow; it is the same on every machine and after every restart."""
    ends = f"{flow.source}:{flow.source_port} {flow.destination}:{flow.destination_port}"
    text = f"{flow.protocol} {ends}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
