"""What tests look up in a network's table."""

from __future__ import annotations

from lab.engines.sim.core import event_heap as heap
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network


def places(network: Network, flow: str = "ue1-1") -> tuple[int, int]:
    """Where the row of a connection begins, and that of its first subflow."""
    return network.tables.connections[flow], network.tables.subflows[flow][0].place


def free(network: Network) -> list[int]:
    """Packets that are free, in the order in which they will be taken."""
    row, found = network.w.row, []
    p = int(row[at.FREE])
    while p:
        found.append(p)
        p = int(row[p + at.NEXT_FREE])
    return found


def on_links(network: Network) -> list[int]:
    """Packets that are under way to their next stop; with cables alone all that are under way."""
    row = network.w.row
    events = [
        int(row[row[at.HEAP] + n * heap.FIELDS + heap.WHAT]) for n in range(row[at.HEAP_COUNT])
    ]
    return [what // at.EVENT_KINDS for what in events if what % at.EVENT_KINDS == at.ARRIVES]
