"""Change the rate and the delay of one direction of a link while packets wait there.

1) What is left of the packet in transmission, and all packets behind it, are sent at the new rate.
   The packets in a queue are sent one after another, so each has to wait old rate / new rate times
   as long as before.
2) These packets get the new delay. Packets that have left the queue keep their delay: they are
   already on the cable.
3) No packet overtakes another, except those that skip the delay. After a shorter delay, packets
   wait for those that left before.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.links import queue_length
from lab.engines.sim.core.state import Hop, Packet, World


@jit
def change(w: World, h: Hop, rate_bps: int, delay_ns: int, now_ns: int) -> None:
    """Set the rate and the delay of link `h`, also for the packets that wait there. A managed queue
    gives them to each packet when it leaves."""
    if rate_bps == h.rate_bps and delay_ns == h.delay_ns:
        return
    stretch = h.rate_bps / rate_bps if h.rate_bps > 0 and rate_bps > 0 else 1.0
    added_ns = delay_ns - h.delay_ns
    h.rate_bps, h.delay_ns = rate_bps, delay_ns
    stretch_queue(h, stretch, now_ns)
    p = take_waiting(w, h, now_ns)
    while p != w.no_packet:
        following = p.next
        departs_ns = stretched(p.departs_ns, stretch, now_ns)
        if h.reorder_ppm > 0 and p.out_ns == p.departs_ns:  # it skips the delay
            out_ns = departs_ns
        else:
            out_ns = p.out_ns + departs_ns - p.departs_ns + added_ns
            out_ns = h.last_out_ns = max(now_ns, out_ns, h.last_out_ns)
        due_ns = p.due_ns + out_ns - p.out_ns
        p.departs_ns = departs_ns
        p.out_ns = out_ns
        events.line_up(w, h.line, due_ns, p)
        p = following
    if h.kind == at.MANAGED and h.managed.sent.first != w.no_packet:
        events.start_timer(w, h.managed.sent, h.busy_until_ns)


@jit
def stretched(at_ns: int, stretch: float, now_ns: int) -> int:
    return now_ns + int((at_ns - now_ns) * stretch)


@jit
def stretch_queue(h: Hop, stretch: float, now_ns: int) -> None:
    for n in range(queue_length(h, now_ns)):
        place = (h.queue_head + n) % h.queue_size
        h.queue[place] = stretched(h.queue[place], stretch, now_ns)
    if h.busy_until_ns > now_ns:
        h.busy_until_ns = stretched(h.busy_until_ns, stretch, now_ns)


@jit
def take_waiting(w: World, h: Hop, now_ns: int) -> Packet:
    """Remove the arrivals of all packets that wait at link `h`. Return the first of these packets,
    which are chained by `next` in the order in which they leave. The time at which each would have
    arrived is its `due_ns`. Also set `h.last_out_ns` to that of the last packet that has left.
    """
    first = cut_line(w, h, now_ns)
    kept = 0
    for n in range(w.heap_count):
        entry = w.heap[n]
        e = entry.event
        if e == h.line and e.first == w.no_packet:
            continue
        if e.kind == at.ARRIVAL and e.first.wire == h:
            p = e.first
            if p.departs_ns > now_ns:
                p.due_ns = entry.at_ns
                first = insert(w, first, p)
                continue
            h.last_out_ns = max(h.last_out_ns, p.out_ns)
        here = w.heap[kept]
        here.at_ns = entry.at_ns
        here.order = entry.order
        here.event = e
        kept += 1
    if kept < w.heap_count:
        w.heap_count = kept
        events.restore_order(w)
    return first


@jit
def cut_line(w: World, h: Hop, now_ns: int) -> Packet:
    """Cut the line of packets that leave link `h` in front of the first one that still waits, and
    return this packet, or no packet."""
    last, p = w.no_packet, h.line.first
    while p != w.no_packet and p.departs_ns <= now_ns:
        last, p = p, p.next
    if last == w.no_packet:
        h.line.first = last
    else:
        last.next = w.no_packet
    h.line.last = last
    h.last_out_ns = last.out_ns
    return p


@jit
def insert(w: World, first: Packet, p: Packet) -> Packet:
    """Insert packet `p` into the chain that begins with `first`. Return its first packet now."""
    before, after = w.no_packet, first
    while after != w.no_packet and after.departs_ns <= p.departs_ns:
        before, after = after, after.next
    p.next = after
    if before == w.no_packet:
        return p
    before.next = p
    return first
