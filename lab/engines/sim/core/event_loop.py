"""The loop of the simulation. It handles the scheduled events in the order of their times; virtual
time jumps from one event to the next."""

from __future__ import annotations

from lab.engines.sim.core import application, events, links, lte, mptcp, receiver, reinjection
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# one event creates fewer packets and events than this, not counting packets that leave bearers
NEW_PER_EVENT = 2 * mptcp.BURST + 16


@jit
def handle(w: at.World, event: int, now_ns: int) -> int:
    """Handle one event, given as place * EVENT_KINDS + kind (see `events.pop`).

    If the event lets a packet continue now, return the packet. It continues into the next hop of
    its route or, at the end of the route, to the receiver. Otherwise return NOTHING (-1).
    """
    kind, place = event % at.EVENT_KINDS, event // at.EVENT_KINDS
    if kind == at.ARRIVAL:
        return links.leave_air(w.row, place)
    if kind == at.DELACK_DUE:
        return receiver.on_delayed_ack(w.row, place, now_ns)
    if kind == at.TTI_DUE:
        lte.on_tti(w.row, place, now_ns)
        return at.NOTHING
    c, may_send = place, True
    if kind in (at.RTO_DUE, at.JOINED, at.PRIORITY):
        c = w.row[place + at.CONNECTION]
    if kind == at.RTO_DUE:
        may_send = mptcp.on_rto(w, place, now_ns)
    elif kind == at.JOINED:
        may_send = mptcp.on_join(w.row, place)
    elif kind == at.PRIORITY:
        may_send = mptcp.on_priority(w.row, place)
    elif kind == at.APP_DUE:
        may_send = application.on_application(w.row, place, now_ns)
    elif kind == at.REINJECT_DUE:
        may_send = reinjection.on_reinject_timer(w.row, place, now_ns)
    else:
        w.row[place + at.PUSH_SCHEDULED] = 0
    if may_send:
        mptcp.push(w, c, now_ns)
    return at.NOTHING


@jit
def enter_hop(row: Ints, h: int, p: int, now_ns: int) -> int:
    """Let packet `p` enter hop `h`, one direction of a link or radio channel.

    Return `p` if it has already crossed the hop and continues now. Return NOTHING (-1) if it waits,
    is on its way, or was dropped.
    """
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
    """Handle all events that are due before `until_ns`, set the present time to `until_ns`, and
    return True.

    Return False earlier if the integer table `w.row` could become too short for new packets and
    events. The caller must then lengthen the table and call `run` again.
    """
    row = w.row
    while events.next_ns(row) < until_ns:
        may_be_scheduled = row[at.HEAP_COUNT] + row[at.PACKETS_IN_BEARERS] + NEW_PER_EVENT
        if row[at.FREE_PACKETS] < NEW_PER_EVENT or may_be_scheduled > row[at.HEAP_SIZE]:
            return False
        row[at.NOW] = now_ns = events.next_ns(row)
        p = handle(w, events.pop(row), now_ns)
        while p != at.NOTHING:
            h = row[row[p + at.ROUTE_POSITION]]
            p = mptcp.receive(w, p, now_ns) if h == at.NOTHING else enter_hop(row, h, p, now_ns)
    row[at.NOW] = until_ns
    return True
