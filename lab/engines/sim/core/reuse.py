"""Find the connections that a packet in flight or a scheduled event still names. If a connection is
over and nothing names it, nothing can change its records any more, so they can be used again."""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Packet, World


@jit
def mark_of_packets(w: World, packets: list[Packet], count: int) -> None:
    """Mark the connections of those of the first `count` packets that are in flight."""
    for n in range(count):
        s = packets[n].subflow
        if s != w.no_subflow:
            s.connection.is_named = 1


@jit
def mark_of_events(w: World) -> None:
    """Mark the connections of all scheduled events. Events of packets, queues and channels
    are of no connection: `mark_of_packets` finds their packets."""
    for n in range(w.heap_count):
        e = w.heap[n].event
        if e.kind >= at.RTO_DUE and e.kind != at.SENT and e.kind != at.ACCESS_DUE:
            e.connection.is_named = 1
