"""Change the queue of one direction of a link while packets wait there.

The packet in transmission is sent whatever the new queue is. Those that wait stay if the kind of
queue stays, otherwise they are dropped. RED always drops them, as Linux does. If a smaller codel or
fq_codel cannot hold them all, it drops from its head.
"""

from __future__ import annotations

from lab.engines.sim.core import changed_links, events, links, queues
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Hop, Packet, Queue, World


@jit
def change_queue(w: World, h: Hop, new: Queue, now_ns: int) -> None:
    """Give link `h` the queue `new`, which is empty."""
    if h.kind == at.WIRE:
        make_managed(w, h, new, now_ns)
        return
    old = h.managed
    if new.kind == old.kind and new.kind != at.RED:
        old.limit, old.is_marking = new.limit, new.is_marking
        old.target_ns, old.interval_ns = new.target_ns, new.interval_ns
        if new.kind != at.TAIL:
            drop_waiting(w, h, old, old.limit, now_ns)
        return
    drop_waiting(w, h, old, 0, now_ns)
    new.sent = old.sent
    new.marked = old.marked
    h.managed = new


@jit
def drop_waiting(w: World, h: Hop, q: Queue, left: int, now_ns: int) -> None:
    """Drop packets of a queue until at most `left` of them wait."""
    while q.count > left:
        if q.kind == at.FQ_CODEL:
            p = queues.take_in_turn(w, h, q, now_ns)  # CoDel may have dropped the others
        else:
            p = queues.take_first(w, q, q.flows[0])
        if p != w.no_packet:
            links.drop(w, h, p)


@jit
def make_managed(w: World, h: Hop, q: Queue, now_ns: int) -> None:
    """Give link `h`, which has a first-in first-out queue, the queue `q` instead."""
    p = changed_links.take_waiting(w, h, now_ns)
    h.queue_count, h.busy_until_ns = 0, now_ns
    while p != w.no_packet:
        following = p.next
        take_back(h, p)
        if q.sent.first == w.no_packet:
            q.sent.first = p
            h.busy_until_ns = p.departs_ns
            events.start_timer(w, q.sent, p.departs_ns)
        elif q.kind == at.TAIL:
            queues.append(w, q, q.flows[0], p)
        else:
            links.drop(w, h, p)
        p = following
    h.managed = q
    h.kind = at.MANAGED


@jit
def take_back(h: Hop, p: Packet) -> None:
    """Undo that packet `p` was counted as out of link `h`, and of the links without rate and jitter
    behind it."""
    while True:
        p.step = p.step.before
        here = p.step.hop
        here.out_packets -= 1
        here.out_bytes -= p.size
        if here == h:
            return
        here.in_packets -= 1
        here.in_bytes -= p.size
