"""Rows of a network's table, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints
from lab.engines.sim.network import Network


def places(network: Network, flow: str = "ue1-1") -> tuple[int, int]:
    """Where the rows of a connection and of its first subflow begin."""
    return network.tables.connections[flow], network.tables.subflows[flow][0].place


def free(network: Network) -> list[int]:
    """Free packets, in the order in which they will be taken."""
    row, found = network.w.row, []
    p = int(row[at.FREE_PACKET])
    while p:
        found.append(p)
        p = int(row[p + at.NEXT_FREE])
    return found


def on_links(network: Network) -> list[int]:
    """Packets whose arrival is scheduled; in a wired network these are all packets in flight."""
    row = network.w.row
    scheduled = [
        int(row[row[at.HEAP] + n * events.FIELDS + events.EVENT]) for n in range(row[at.HEAP_COUNT])
    ]
    return [packet for event in scheduled for packet in _arriving(row, event)]


def _arriving(row: Ints, event: int) -> Iterator[int]:
    """The packets whose arrival an event stands for: one, or all of a line."""
    place, kind = event // at.EVENT_KINDS, event % at.EVENT_KINDS
    if kind == at.ARRIVAL:
        yield place
    p = row[place] if kind == at.FIRST_ARRIVAL else 0
    while p != 0:
        yield int(p)
        p = row[p + at.NEXT_IN_LINE]
