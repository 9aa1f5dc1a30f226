"""Shortest paths between switches, and which of several equally short ones a flow takes (ECMP by hash, RFC 2992)."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

MOST_PATHS, MOST_DIGESTS = 64, 8192
TCP = 6  # its protocol number
Path = tuple[str, ...]
Neighbours = Mapping[str, Iterable[str]]


@dataclass(frozen=True, order=True)
class Flow:
    """One direction of traffic: a TCP 5-tuple, or for any other protocol a pair of addresses (ports 0)."""

    source: str
    destination: str
    protocol: int
    source_port: int = 0
    destination_port: int = 0

    def back(self) -> Flow:
        """The opposite direction."""
        return Flow(
            self.destination, self.source, self.protocol, self.destination_port, self.source_port
        )


def shortest(neighbours: Neighbours, source: str, destination: str) -> list[Path]:
    """All paths with the fewest hops, in a fixed order, 64 at most; none when there is no way."""
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
    """All shortest paths; those of the opposite direction come in the same order, each turned round."""
    if source <= destination:
        return shortest(neighbours, source, destination)
    return [path[::-1] for path in shortest(neighbours, destination, source)]


def hops_to(neighbours: Neighbours, destination: str) -> dict[str, int]:
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
    """One of the paths; a flow and its opposite direction take the same."""
    return candidates[digest(min(flow, flow.back())) % len(candidates)]


@lru_cache(MOST_DIGESTS)
def digest(flow: Flow) -> int:
    """64 bits that name a flow, the same on every machine and after every restart."""
    text = f"{flow.protocol} {flow.source}:{flow.source_port} {flow.destination}:{flow.destination_port}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
