"""The event loop: virtual time goes from event to event."""

from __future__ import annotations

from lab.engines.sim import heap, hops, mptcp, tcp
from lab.engines.sim.jit import jit
from lab.engines.sim.layout import (
    APP_DUE,
    ARRIVES,
    DELACK_DUE,
    EVENT_KINDS,
    FREE_COUNT,
    HEAP_COUNT,
    JOINED,
    NOTHING,
    NOW,
    PLACE,
    PUSH_DUE,
    RTO_DUE,
    SERVED_NOW,
    World,
)

ROOM = 2 * mptcp.BURST + 16  # more packets and events than one event can bring forth


@jit
def happens(w: World, what: int, now_ns: int) -> int:
    """One event; returns a packet that is at a stop now."""
    kind, row = what % EVENT_KINDS, what // EVENT_KINDS
    if kind == ARRIVES:
        return row
    if kind == SERVED_NOW:
        return hops.served(w, row, now_ns)
    if kind == DELACK_DUE:
        return tcp.delack_due(w, row, now_ns)
    if kind == RTO_DUE:
        mptcp.rto_due(w, row, now_ns)
    elif kind == JOINED:
        mptcp.joined(w, row, now_ns)
    elif kind == APP_DUE:
        mptcp.app_due(w, row, now_ns)
    else:
        w.conn[row + PUSH_DUE] = 0
        mptcp.push(w, row, now_ns)
    return NOTHING


@jit
def run(w: World, until_ns: int) -> bool:
    """Let everything happen that is due before `until_ns`; False if the tables have become too small to go on."""
    g, at = w.g, w.heap_at
    while g[HEAP_COUNT] > 0 and at[0] < until_ns:
        if g[FREE_COUNT] < ROOM or g[HEAP_COUNT] + ROOM > len(at):
            return False
        now_ns = at[0]
        g[NOW] = now_ns
        p = happens(w, heap.pop(w), now_ns)
        while p != NOTHING:
            h = w.route[w.packet[p + PLACE]]
            if h == NOTHING:
                hops.left_air(w, p)
                p = mptcp.arrived(w, p, now_ns)
            else:
                p = hops.at_hop(w, h, p, now_ns)
    g[NOW] = until_ns
    return True
