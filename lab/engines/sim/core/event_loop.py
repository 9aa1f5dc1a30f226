"""The loop of the simulation. It handles the scheduled events in the order of their times; virtual
time jumps from one event to the next."""

from __future__ import annotations

from lab.engines.sim.core import (
    announcements,
    application,
    dcf,
    events,
    exchanges,
    handshake,
    links,
    lte,
    mptcp,
    queues,
    receiver,
    reinjection,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Event, Hop, Packet, World

# one event creates fewer packets and events than this, not counting packets that leave bearers
NEW_PER_EVENT = 2 * mptcp.BURST + 16


@jit
def handle(w: World, e: Event, now_ns: int) -> Packet:
    """Handle the earliest event, which is `e`, and remove it.

    If the event lets a packet continue now, return the packet. It continues into the next hop of
    its route or, at the end of the route, to the receiver. Otherwise return no packet.
    """
    kind = e.kind
    if kind in (at.LINE, at.ARRIVAL):
        return links.leave_air(w, events.take_arrival(w, e))
    events.remove_first(w)
    if kind == at.SENT:
        return queues.on_sent(w, e, now_ns)
    if kind == at.DELACK_DUE:
        return receiver.on_delayed_ack(w, e.subflow, now_ns)
    if kind == at.TTI_DUE:
        lte.on_tti(w, e.direction, now_ns)
    elif kind == at.ACCESS_DUE:
        dcf.on_access(w, e.air, now_ns)
    elif kind == at.CLIENT_DUE:
        handshake.on_client_due(w, e.subflow, now_ns)
    elif kind == at.ASK_DUE:
        exchanges.on_ask_due(w, e.connection, now_ns)
    elif kind == at.ADDRESS_DUE:
        announcements.on_address_due(w, e.connection, now_ns)
    elif kind == at.SERVER_DUE:
        handshake.on_server_due(w, e.subflow, now_ns)
    elif may_send(w, e, kind, now_ns):
        mptcp.push(w, e.connection, now_ns)
    return w.no_packet


@jit
def may_send(w: World, e: Event, kind: int, now_ns: int) -> bool:
    """Handle event `e` of a sender. Return True if its connection may have something to send."""
    if kind == at.RTO_DUE:
        return mptcp.on_rto(w, e.subflow, now_ns)
    if kind == at.PRIORITY:
        return mptcp.on_priority(e.subflow)
    if kind == at.REMOVAL:
        return mptcp.on_removal(e.subflow)
    if kind == at.APP_DUE:
        return application.on_application(w, e.connection, now_ns)
    if kind == at.REINJECT_DUE:
        return reinjection.on_reinject_timer(w, e.connection, now_ns)
    e.connection.is_push_scheduled = 0
    return True


@jit
def enter_hop(w: World, h: Hop, p: Packet, now_ns: int) -> Packet:
    """Let packet `p` enter hop `h`, one direction of a link or radio channel, perhaps twice.

    Return `p` if it has already crossed the hop and continues now. Return no packet if it waits, is
    on its way, or was dropped.
    """
    if h.duplicate_ppm > 0 and random_below(h.random, at.MILLION) < h.duplicate_ppm:
        copy = cross(w, h, copy_of(w, p), now_ns)
        if copy != w.no_packet:
            events.line_up(w, h.line, now_ns, copy)
    return cross(w, h, p, now_ns)


@jit
def copy_of(w: World, p: Packet) -> Packet:
    """Return a new packet that is equal to packet `p`."""
    copy = links.new_packet(w, p.subflow, p.kind, p.step, p.size)
    copy.ecn = p.ecn
    copy.echo = p.echo
    copy.seq = p.seq
    copy.dsn = p.dsn
    copy.stamp_ns = p.stamp_ns
    copy.echo_ns = p.echo_ns
    copy.transmission = p.transmission
    copy.segments_so_far = p.segments_so_far
    copy.window_end = p.window_end
    return copy


@jit
def cross(w: World, h: Hop, p: Packet, now_ns: int) -> Packet:
    """Let packet `p` enter hop `h` once, and return as `enter_hop`."""
    if not links.admits(w, h, p):
        return w.no_packet
    kind = h.kind
    if kind == at.WIRE:
        return links.cross_wire(w, h, p, now_ns)
    if kind == at.AIR_UP:
        return links.send_up(w, h, p, now_ns)
    if kind == at.BEARER:
        lte.enqueue(w, h, p, now_ns)
    elif kind == at.MANAGED:
        queues.enter(w, h, p, now_ns)
    elif kind in (at.DCF_DOWN, at.DCF_UP):
        dcf.enter(w, h, p, now_ns)
    else:
        links.send_down(w, h, p, now_ns)
    return w.no_packet


@jit
def run(w: World, until_ns: int) -> bool:
    """Handle all events that are due before `until_ns`, set the present time to `until_ns`, and
    return True.

    Return False earlier if an application is to act (`World.halted_by`), or if new packets and
    events could need more space than there is. The caller must then see to this and call `run`
    again.
    """
    while events.next_ns(w) < until_ns:
        may_be_scheduled = w.heap_count + w.packets_in_bearers + NEW_PER_EVENT
        if w.free_packets < NEW_PER_EVENT or may_be_scheduled > w.heap_size:
            return False
        w.now_ns = now_ns = events.next_ns(w)
        p = handle(w, w.heap[0].event, now_ns)
        while p != w.no_packet:
            h = p.step.hop
            p = mptcp.receive(w, p, now_ns) if h.kind == at.END else enter_hop(w, h, p, now_ns)
        if w.halted_by > 0:
            return False
    w.now_ns = until_ns
    return True
