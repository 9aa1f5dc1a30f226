"""Schedule the radio channel of an LTE cell, separately for each direction. This happens once per
TTI (transmission time interval) of 1 ms while packets wait. A bearer is the queue of one station in
one direction. A block is the data that one bearer sends in one TTI.

1) Blocks that failed are retransmitted first, 8 ms after their last attempt (HARQ; 3GPP TS 36.321,
   section 5.3.2.2).
2) The rest of the TTI goes to bearers with waiting packets, in the order of weight x rate / mean
   rate, the largest first. Each bearer gets as much as it needs before the next one is served
   (proportional fair: Jalali et al., VTC 2000; with the weights of MP-SDN, eq (3)).
3) A block holds the next bytes of a bearer's queue, wherever packets begin and end (RLC
   segmentation). It fails with the target error rate. Later blocks of the bearer wait for it,
   because RLC keeps the order. An error therefore causes delay and never loss.

At a steady rate, rate / mean rate is 1 / (mean share of the channel). Therefore only each bearer's
mean airtime per TTI is stored. The mean does not change while no packets wait in the cell. When
bearers are compared, half a TTI is added to the mean, because a single TTI is a large part of a
small mean. With this addition, the scheduler maximises the sum of weight x log(rate).

The number of attempts of a block is drawn at random when it is first sent, so the time of its
arrival is known from then on. If all attempts fail, the block still arrives with the last one. In
reality RLC would retransmit such a block, which is one in ten thousand.
"""

from __future__ import annotations

from lab.engines.sim.core import events, queues
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.links import count_out, drop, forward, passes_meter
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Direction, Hop, Packet, World

TTI_NS = 1_000_000
MEAN_TTIS = 100  # TTIs over which the mean airtime is taken
FINE = 1024  # mean airtimes are kept in 1/1024 ns
HALF_A_TTI = TTI_NS * FINE // MEAN_TTIS // 2  # what half a TTI adds to a mean


@jit
def enqueue(w: World, h: Hop, p: Packet, now_ns: int) -> None:
    """Put packet `p` into the queue of bearer `h`. If the cell's scheduler sleeps because no
    packets waited, wake the scheduler at the next TTI.

    The packet is dropped if the queue is full, or earlier by another kind of queue. A downlink
    packet is also dropped if the meter in front of the cell refuses it. The meter for uplink
    packets is behind the cell: see `_finish_packet`.
    """
    e = h.direction
    if e.is_uplink == 0 and not passes_meter(h, p, now_ns):
        drop(w, h, p)
        return
    if h.has_managed == 1:
        queues.put(w, h, h.managed, p, now_ns)
        recount(w, h)
    elif h.queue_count >= h.queue_size:
        drop(w, h, p)
        return
    else:
        h.packets[(h.queue_head + h.queue_count) % h.queue_size].packet = p
        h.queue_count += 1
        w.packets_in_bearers += 1
    if e.is_awake == 0 and h.queue_count > 0:
        e.is_awake = 1
        events.schedule(w, (now_ns // TTI_NS + 1) * TTI_NS, e.tti)


@jit
def recount(w: World, h: Hop) -> None:
    """Count what is left of a queue that may have dropped packets."""
    count = queues.waiting(w, h.managed)
    w.packets_in_bearers += count - h.queue_count
    h.queue_count = count


@jit
def first(w: World, h: Hop, now_ns: int) -> Packet:
    """Return the packet that bearer `h` sends next. A queue that drops when packets leave does so
    when the first bit of one is sent."""
    if h.has_managed == 0:
        return h.packets[h.queue_head].packet
    q = h.managed
    if q.sent.first == w.no_packet:
        q.sent.first = queues.next_packet(w, h, q, now_ns)
        recount(w, h)
    return q.sent.first


@jit
def on_tti(w: World, e: Direction, now_ns: int) -> None:
    """Divide one TTI among the bearers of scheduler `e`, which serves one direction of an LTE cell
    (steps 1 to 3 of the module docstring). If packets are left, schedule the next TTI."""
    left_ns = TTI_NS - _retransmissions_ns(e, now_ns // TTI_NS)  # 1
    while left_ns > 0:
        h = _next_bearer(w, e.first_bearer)  # 2
        if h == w.no_hop:
            break
        left_ns -= _send_block(w, e, h, left_ns, now_ns)  # 3
    e.is_awake = 0
    h = e.first_bearer
    while h != w.no_hop:
        change = h.airtime_ns * FINE - h.mean_airtime
        h.mean_airtime += change // MEAN_TTIS
        h.airtime_ns = 0
        if h.queue_count > 0:
            e.is_awake = 1
        h = h.next_bearer
    if e.is_awake == 1:
        events.schedule(w, now_ns + TTI_NS, e.tti)


@jit
def _retransmissions_ns(e: Direction, now_tti: int) -> int:
    """Return how much of the TTI number `now_tti` is used by HARQ retransmissions, in ns.

    The ring buffer `harq` holds this airtime for the next TTIs. The entries of this TTI, and of
    TTIs skipped since the last call, are set to 0.
    """
    ring, size = e.harq, e.harq_size
    for tti in range(max(e.last_tti + 1, now_tti - size), now_tti):
        ring[tti % size] = 0
    e.last_tti = now_tti
    taken_ns = ring[now_tti % size]
    ring[now_tti % size] = 0
    return taken_ns


@jit
def _next_bearer(w: World, h: Hop) -> Hop:
    """Return the bearer to serve next, or no hop if no packets wait. It is the one with the
    highest priority in the linked list that begins with bearer `h`. Of bearers with the same
    priority, the first in the list is returned. A bearer whose rate is not one bit per TTI gets
    nothing."""
    best = w.no_hop
    while h != w.no_hop:
        waits = h.queue_count > 0 and h.rate_bps * TTI_NS >= at.NS_PER_S
        if waits and (best == w.no_hop or _goes_before(h, best)):
            best = h
        h = h.next_bearer
    return best


@jit
def _goes_before(h: Hop, other: Hop) -> bool:
    """Return True if bearer `h` has a higher priority (weight / mean airtime) than bearer
    `other`."""
    gain = h.weight_ppm * (other.mean_airtime + HALF_A_TTI)
    return gain > other.weight_ppm * (h.mean_airtime + HALF_A_TTI)


@jit
def _send_block(w: World, e: Direction, h: Hop, left_ns: int, now_ns: int) -> int:
    """Send a block of bearer `h`: as much of its queue as fits into the rest of this TTI,
    `left_ns`. Return the airtime of the block in ns.

    If the block needs retransmissions, the same airtime is reserved in a later TTI for each of
    them.
    """
    rate_bps = h.rate_bps
    free_bits = fitting_bits = left_ns * rate_bps // at.NS_PER_S
    if fitting_bits == 0:
        return left_ns
    attempts = _attempts(e, h)
    harq_ns = (attempts - 1) * e.harq_ttis * TTI_NS
    done_ns = max(h.last_out_ns, now_ns + TTI_NS + harq_ns)
    h.last_out_ns = done_ns
    while h.queue_count > 0 and free_bits > 0:
        p = first(w, h, now_ns)
        unsent_bits = p.size * 8 - h.head_sent_bits
        if unsent_bits > free_bits:
            h.head_sent_bits += free_bits
            free_bits = 0
        else:
            free_bits -= unsent_bits
            _finish_packet(w, e, h, p, done_ns, now_ns)
    took_ns = left_ns
    if free_bits > 0:
        took_ns = -(-(fitting_bits - free_bits) * at.NS_PER_S // rate_bps)
    h.airtime_ns += took_ns
    for n in range(1, attempts):
        tti = now_ns // TTI_NS + n * e.harq_ttis
        e.harq[tti % e.harq_size] += took_ns
    return took_ns


@jit
def _attempts(e: Direction, h: Hop) -> int:
    """Draw at random how often a block of bearer `h` is sent until it arrives. The result is
    between 1 and ATTEMPTS."""
    attempts = 1
    while attempts < e.attempts and random_below(h.random, at.MILLION) < e.block_error_ppm:
        attempts += 1
    return attempts


@jit
def _finish_packet(w: World, e: Direction, h: Hop, p: Packet, done_ns: int, now_ns: int) -> None:
    """Remove packet `p` from the head of the queue of bearer `h`, because its last byte is sent in
    this TTI. The block with this byte arrives at `done_ns`. The packet arrives one delay of the
    bearer later.

    An uplink packet is dropped if the meter behind the cell refuses it.
    """
    h.head_sent_bits = 0
    if h.has_managed == 1:
        h.managed.sent.first = w.no_packet
        if h.managed.count == 0:
            h.managed.idle_since_ns = now_ns
        recount(w, h)
    else:
        h.queue_head = (h.queue_head + 1) % h.queue_size
        h.queue_count -= 1
        w.packets_in_bearers -= 1
    if e.is_uplink == 1 and not passes_meter(h, p, done_ns):
        drop(w, h, p)
        return
    count_out(h, p)
    forward(w, h.line, p, done_ns + h.delay_ns, now_ns)
