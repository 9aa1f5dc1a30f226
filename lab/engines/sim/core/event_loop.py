"""The event loop: virtual time goes from event to event."""

from __future__ import annotations

from lab.engines.sim.core import events, links, lte, mptcp, receiver, reinjection
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

NEW_PER_EVENT = (
    2 * mptcp.BURST + 16
)  # more packets and events than one event can bring forth, beside those that wait in bearers


@jit
def handle(w: at.World, what: int, now_ns: int) -> int:
    """One event; returns a packet that is at a stop now."""
    kind, place = what % at.EVENT_KINDS, what // at.EVENT_KINDS
    if kind == at.ARRIVAL:
        links.leave_air(w.row, place)
        return place
    if kind == at.DELACK_DUE:
        return receiver.on_delayed_ack(w.row, place, now_ns)
    if kind == at.TTI_DUE:
        lte.on_tti(w.row, place, now_ns)
        return at.NOTHING
    c, sends = place, True
    if kind in (at.RTO_DUE, at.JOINED, at.PRIORITY):
        c = w.row[place + at.CONNECTION]
    if kind == at.RTO_DUE:
        sends = mptcp.on_rto(w, place, now_ns)
    elif kind == at.JOINED:
        sends = mptcp.on_join(w.row, place)
    elif kind == at.PRIORITY:
        sends = mptcp.on_priority(w.row, place)
    elif kind == at.APP_DUE:
        sends = mptcp.on_application(w.row, place, now_ns)
    elif kind == at.REINJECT_DUE:
        sends = reinjection.on_reinject_timer(w.row, place, now_ns)
    else:
        w.row[place + at.PUSH_SCHEDULED] = 0
    if sends:
        mptcp.push(w, c, now_ns)
    return at.NOTHING


@jit
def enter_hop(row: Ints, h: int, p: int, now_ns: int) -> int:
    """A packet has come to hop `h`; returns it if it is at the next stop already."""
    if not links.admits(row, h, p):
        return at.NOTHING
    kind = row[h + at.KIND]
    if kind == at.WIRE:
        return links.cross_wire(row, h, p, now_ns)
    if kind == at.AIR_UP:
        return links.send_up(row, h, p, now_ns)
    if kind == at.BEARER:
        lte.enqueue(row, h, p, now_ns)
    else:
        links.send_down(row, h, p, now_ns)
    return at.NOTHING


@jit
def run(w: at.World, until_ns: int) -> bool:
    """Let everything happen that is due before `until_ns`; False if there is too little room to go on."""
    row = w.row
    while events.next_ns(row) < until_ns:
        if (
            row[at.FREE_PACKETS] < NEW_PER_EVENT
            or row[at.HEAP_COUNT] + row[at.PACKETS_IN_BEARERS] + NEW_PER_EVENT > row[at.HEAP_SIZE]
        ):
            return False
        row[at.NOW] = now_ns = events.next_ns(row)
        p = handle(w, events.pop(row), now_ns)
        while p != at.NOTHING:
            h = row[row[p + at.ROUTE_POSITION]]
            p = mptcp.receive(w, p, now_ns) if h == at.NOTHING else enter_hop(row, h, p, now_ns)
    row[at.NOW] = until_ns
    return True
