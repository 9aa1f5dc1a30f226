"""The event loop: virtual time goes from event to event."""

from __future__ import annotations

from lab.engines.sim.core import events, lte, mptcp, receiver
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links as hops
from lab.engines.sim.core import reinjection as again
from lab.engines.sim.core.jit import Ints, jit

ROOM = (
    2 * mptcp.BURST + 16
)  # more packets and events than one event can bring forth, beside those that wait in bearers


@jit
def happens(w: at.World, what: int, now_ns: int) -> int:
    """One event; returns a packet that is at a stop now."""
    kind, place = what % at.EVENT_KINDS, what // at.EVENT_KINDS
    if kind == at.ARRIVES:
        hops.left_air(w.row, place)
        return place
    if kind == at.DELACK_DUE:
        return receiver.delack_due(w.row, place, now_ns)
    if kind == at.TTI_DUE:
        lte.tti_due(w.row, place, now_ns)
        return at.NOTHING
    c, sends = place, True
    if kind in (at.RTO_DUE, at.JOINED, at.PRIORITY):
        c = w.row[place + at.OF_CONNECTION]
    if kind == at.RTO_DUE:
        sends = mptcp.rto_due(w, place, now_ns)
    elif kind == at.JOINED:
        sends = mptcp.joined(w.row, place)
    elif kind == at.PRIORITY:
        sends = mptcp.set_priority(w.row, place)
    elif kind == at.APP_DUE:
        sends = mptcp.app_due(w.row, place, now_ns)
    elif kind == at.REINJECT_DUE:
        sends = again.reinject_due(w.row, place, now_ns)
    else:
        w.row[place + at.PUSH_DUE] = 0
    if sends:
        mptcp.push(w, c, now_ns)
    return at.NOTHING


@jit
def at_hop(row: Ints, h: int, p: int, now_ns: int) -> int:
    """A packet has come to hop `h`; returns it if it is at the next stop already."""
    if not hops.enters(row, h, p):
        return at.NOTHING
    kind = row[h + at.KIND]
    if kind == at.WIRE:
        return hops.through_wire(row, h, p, now_ns)
    if kind == at.AIR_UP:
        return hops.over_air_up(row, h, p, now_ns)
    if kind == at.BEARER:
        lte.into_bearer(row, h, p, now_ns)
    else:
        hops.over_air_down(row, h, p, now_ns)
    return at.NOTHING


@jit
def run(w: at.World, until_ns: int) -> bool:
    """Let everything happen that is due before `until_ns`; False if there is too little room to go on."""
    row = w.row
    while events.first_ns(row) < until_ns:
        if (
            row[at.FREE_COUNT] < ROOM
            or row[at.HEAP_COUNT] + row[at.IN_BEARERS] + ROOM > row[at.HEAP_SIZE]
        ):
            return False
        row[at.NOW] = now_ns = events.first_ns(row)
        p = happens(w, events.pop(row), now_ns)
        while p != at.NOTHING:
            h = row[row[p + at.PLACE]]
            p = mptcp.arrived(w, p, now_ns) if h == at.NOTHING else at_hop(row, h, p, now_ns)
    row[at.NOW] = until_ns
    return True
