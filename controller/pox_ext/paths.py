"""Shortest paths between switches, and which of several equally short ones a flow takes (ECMP by hash, RFC 2992)."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping

from controller.pox_ext.frames import Flow

MOST_PATHS = 64
Path = tuple[str, ...]
Neighbours = Mapping[str, Iterable[str]]


def shortest(neighbours: Neighbours, source: str, destination: str) -> list[Path]:
    """All paths with the fewest hops, in a fixed order, 64 at most; none when there is no way."""
    hops = _hops_to(neighbours, destination)
    if source not in hops:
        return []
    found: list[Path] = [(source,)]
    for left in range(hops[source] - 1, -1, -1):
        found = [(*path, near) for path in found for near in sorted(neighbours[path[-1]]) if hops.get(near) == left]
        found = found[:MOST_PATHS]
    return found


def _hops_to(neighbours: Neighbours, destination: str) -> dict[str, int]:
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


def digest(flow: Flow) -> int:
    """64 bits that name a flow, the same on every machine and after every restart."""
    text = f"{flow.protocol} {flow.source}:{flow.source_port} {flow.destination}:{flow.destination_port}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
