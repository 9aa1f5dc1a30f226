"""Queues of links that drop or mark packets before they are full (active queue management).

- codel: CoDel (RFC 8289). A packet is dropped when it leaves the queue, if all packets of the last
  INTERVAL waited longer than TARGET; then more and more often, until one waits less.
- red: RED, see `red`.
- fq_codel: FQ-CoDel (RFC 8290). Each flow has a queue with CoDel, of FLOWS ones by its hash. They
  are served in turn (deficit round robin), and flows that have just begun first.

- tail: a first-in first-out queue, as in `links`, of a link whose queue was changed during the run.

Where these leave a choice, it is Linux's (sch_codel, sch_fq_codel, sch_red). With ECN (RFC 3168), a
packet of an ECN-capable sender is marked and sent instead of dropped.

Which packets leave is decided when a transmission begins, so such a link needs an event for each
packet (`on_sent`).
"""

from __future__ import annotations

import math

from lab.engines.sim.core import ecn, events, links, red
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Event, FlowList, FlowQueue, Hop, Packet, Queue, World

FLOWS = 1024
QUANTUM_BYTES = 1514  # that a flow sends in its turn
MTU_BYTES = 1514  # CoDel never drops the last packet
MOST_DROPPED = 64  # packets of one flow at a time, when fq_codel is full
REENTRY_INTERVALS = 16  # for so long CoDel remembers how often it had to drop


@jit
def enter(w: World, h: Hop, p: Packet, now_ns: int) -> None:
    """Put packet `p` into the queue of link `h`, or drop it. If the link is idle, begin a
    transmission."""
    if put(w, h, h.managed, p, now_ns) and h.managed.sent.first == w.no_packet:
        send_next(w, h, now_ns)


@jit
def put(w: World, h: Hop, q: Queue, p: Packet, now_ns: int) -> bool:
    """Put packet `p` into the queue `q` of hop `h`, or drop it and return False."""
    p.queued_ns = now_ns
    if q.kind == at.FQ_CODEL:
        n = p.subflow.flow_hash
        append(w, q, q.flows[n], p)
        if q.flows[n].is_listed == 0:
            q.flows[n].is_listed = 1
            q.flows[n].deficit = QUANTUM_BYTES
            put_behind(q, q.new_flows, n)
        if q.count > q.limit:
            drop_of_fattest(w, h, q)
    elif not (
        red.admits_early(h, q, p, now_ns)
        if q.kind == at.RED
        else q.count < q.limit or q.sent.first == w.no_packet
    ):
        links.drop(w, h, p)
        return False
    else:
        append(w, q, q.flows[0], p)
    return True


@jit
def send_next(w: World, h: Hop, now_ns: int) -> None:
    """Begin the transmission of the next packet in the queue of link `h`, if there is one."""
    q = h.managed
    p = next_packet(w, h, q, now_ns)
    q.sent.first = p
    if p != w.no_packet:
        p.wire = h
        h.busy_until_ns = now_ns + p.size * 8 * at.NS_PER_S // h.rate_bps
        events.start_timer(w, q.sent, h.busy_until_ns)


@jit
def next_packet(w: World, h: Hop, q: Queue, now_ns: int) -> Packet:
    """Take the packet out of queue `q` of hop `h` that is sent next, or no packet."""
    if q.kind == at.FQ_CODEL:
        p = take_in_turn(w, h, q, now_ns)
    elif q.kind == at.CODEL:
        p = take(w, h, q, q.flows[0], now_ns)
    else:
        p = take_first(w, q, q.flows[0])
    if p == w.no_packet:
        q.idle_since_ns = now_ns
    return p


@jit
def on_sent(w: World, e: Event, now_ns: int) -> Packet:
    """Handle the end of a transmission, unless a new rate of the link has moved it. Return the
    packet if it arrives immediately, over a link without delay."""
    if not events.has_expired(w, e, now_ns):
        return w.no_packet
    p = e.first
    h = p.wire
    p.departs_ns = now_ns
    p.out_ns = links.arrival_ns(h, now_ns, now_ns)
    links.count_out(h, p)
    send_next(w, h, now_ns)
    return links.forward(w, h.line, p, p.out_ns, now_ns)


@jit
def waiting(w: World, q: Queue) -> int:
    """Return how many packets wait in a queue or are in transmission."""
    return q.count + int(q.sent.first != w.no_packet)


# --- packets of one flow


@jit
def append(w: World, q: Queue, f: FlowQueue, p: Packet) -> None:
    p.next = w.no_packet
    if f.count == 0:
        f.first = p
    else:
        f.last.next = p
    f.last = p
    f.count += 1
    f.size_bytes += p.size
    q.count += 1
    q.size_bytes += p.size


@jit
def take_first(w: World, q: Queue, f: FlowQueue) -> Packet:
    if f.count == 0:
        return w.no_packet
    p = f.first
    f.first = p.next
    f.count -= 1
    f.size_bytes -= p.size
    q.count -= 1
    q.size_bytes -= p.size
    return p


# --- CoDel


@jit
def take(w: World, h: Hop, q: Queue, f: FlowQueue, now_ns: int) -> Packet:
    """Return the packet of flow `f` that is sent next, or no packet. Packets that CoDel drops
    before it are dropped now (RFC 8289, section 5.5)."""
    p = take_first(w, q, f)
    late = is_late(w, q, f, p, now_ns)
    if f.is_dropping == 1:
        if not late:
            f.is_dropping = 0
        while f.is_dropping == 1 and now_ns >= f.drop_next_ns:
            f.signals += 1
            if ecn.marks(q, p):
                f.drop_next_ns = next_signal_ns(q, f, f.drop_next_ns)
                return p
            links.drop(w, h, p)
            p = take_first(w, q, f)
            if is_late(w, q, f, p, now_ns):
                f.drop_next_ns = next_signal_ns(q, f, f.drop_next_ns)
            else:
                f.is_dropping = 0
    elif late:
        if not ecn.marks(q, p):
            links.drop(w, h, p)
            p = take_first(w, q, f)
            is_late(w, q, f, p, now_ns)
        begin_dropping(q, f, now_ns)
    return p


@jit
def is_late(w: World, q: Queue, f: FlowQueue, p: Packet, now_ns: int) -> bool:
    """Return True if all packets of the last interval, packet `p` included, waited too long."""
    if p == w.no_packet or now_ns - p.queued_ns < q.target_ns or q.size_bytes <= MTU_BYTES:
        f.first_above_ns = 0
        return False
    if f.first_above_ns == 0:
        f.first_above_ns = now_ns + q.interval_ns
        return False
    return now_ns >= f.first_above_ns


@jit
def begin_dropping(q: Queue, f: FlowQueue, now_ns: int) -> None:
    """Begin to drop. Soon after an earlier time, begin as often as was needed then."""
    grown = f.signals - f.last_signals
    is_soon = now_ns - f.drop_next_ns < REENTRY_INTERVALS * q.interval_ns
    f.signals = grown if grown > 1 and is_soon else 1
    f.last_signals = f.signals
    f.is_dropping = 1
    f.drop_next_ns = next_signal_ns(q, f, now_ns)


@jit
def next_signal_ns(q: Queue, f: FlowQueue, after_ns: int) -> int:
    """Return when CoDel drops the next packet of flow `f`, by its control law."""
    return after_ns + int(q.interval_ns / math.sqrt(f.signals))


# --- FQ-CoDel


@jit
def take_in_turn(w: World, h: Hop, q: Queue, now_ns: int) -> Packet:
    """Return the next packet of the flow whose turn it is, or no packet (RFC 8290, section 4.2)."""
    while True:
        is_new = q.new_flows.first != at.NOTHING
        listed = q.new_flows if is_new else q.old_flows
        n = listed.first
        if n == at.NOTHING:
            return w.no_packet
        f = q.flows[n]
        if f.deficit <= 0:
            f.deficit += QUANTUM_BYTES
            remove_first(q, listed)
            put_behind(q, q.old_flows, n)
            continue
        p = take(w, h, q, f, now_ns)
        if p != w.no_packet:
            f.deficit -= p.size
            return p
        remove_first(q, listed)
        if is_new and q.old_flows.first != at.NOTHING:
            put_behind(q, q.old_flows, n)  # it would starve the others if it were new again
        else:
            f.is_listed = 0


@jit
def drop_of_fattest(w: World, h: Hop, q: Queue) -> None:
    """Drop half of the bytes of the flow that has the most, from its head, but at most
    MOST_DROPPED packets."""
    fattest = q.flows[0]
    for n in range(1, FLOWS):
        if q.flows[n].size_bytes > fattest.size_bytes:
            fattest = q.flows[n]
    half_bytes = fattest.size_bytes // 2
    dropped, dropped_bytes = 0, 0
    while dropped == 0 or (dropped < MOST_DROPPED and dropped_bytes < half_bytes):
        p = take_first(w, q, fattest)
        dropped += 1
        dropped_bytes += p.size
        links.drop(w, h, p)
    fattest.signals += dropped


@jit
def put_behind(q: Queue, listed: FlowList, n: int) -> None:
    """Put flow number `n` at the end of a list."""
    if listed.first == at.NOTHING:
        listed.first = n
    else:
        q.flows[listed.last].next = n
    listed.last = n
    q.flows[n].next = at.NOTHING


@jit
def remove_first(q: Queue, listed: FlowList) -> None:
    listed.first = q.flows[listed.first].next


# --- RED
