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

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.links import MILLION, count_out, drop, forward, passes_meter
from lab.engines.sim.core.random_numbers import random_below

TTI_NS = 1_000_000
MEAN_TTIS = 100  # TTIs over which the mean airtime is taken
FINE = 1024  # mean airtimes are kept in 1/1024 ns
HALF_A_TTI = TTI_NS * FINE // MEAN_TTIS // 2  # what half a TTI adds to a mean


@jit
def enqueue(row: Ints, h: int, p: int, now_ns: int) -> None:
    """Put packet `p` into the queue of bearer `h`. If the cell's scheduler sleeps because no
    packets waited, wake the scheduler at the next TTI.

    The packet is dropped if the queue is full. A downlink packet is also dropped if the meter in
    front of the cell refuses it. The meter for uplink packets is behind the cell: see
    `_finish_packet`.
    """
    e = row[h + at.MEDIUM]
    count, size = row[h + at.QUEUE_COUNT], row[h + at.QUEUE_SIZE]
    if (row[e + at.IS_UPLINK] == 0 and not passes_meter(row, h, p, now_ns)) or count >= size:
        drop(row, h, p)
        return
    row[row[h + at.QUEUE] + (row[h + at.QUEUE_HEAD] + count) % size] = p
    row[h + at.QUEUE_COUNT] = count + 1
    row[at.PACKETS_IN_BEARERS] += 1
    if row[e + at.IS_AWAKE] == 0:
        row[e + at.IS_AWAKE] = 1
        events.schedule(row, (now_ns // TTI_NS + 1) * TTI_NS, at.TTI_DUE, e)


@jit
def on_tti(row: Ints, e: int, now_ns: int) -> None:
    """Divide one TTI among the bearers of scheduler `e`, which serves one direction of an LTE cell
    (steps 1 to 3 of the module docstring). If packets are left, schedule the next TTI."""
    left_ns = TTI_NS - _retransmissions_ns(row, e, now_ns // TTI_NS)  # 1
    while left_ns > 0:
        h = _next_bearer(row, row[e + at.FIRST_BEARER])  # 2
        if h == at.NOTHING:
            break
        left_ns -= _send_block(row, e, h, left_ns, now_ns)  # 3
    row[e + at.IS_AWAKE] = 0
    h = row[e + at.FIRST_BEARER]
    while h != at.NOTHING:
        change = row[h + at.AIRTIME_NS] * FINE - row[h + at.MEAN_AIRTIME]
        row[h + at.MEAN_AIRTIME] += change // MEAN_TTIS
        row[h + at.AIRTIME_NS] = 0
        if row[h + at.QUEUE_COUNT] > 0:
            row[e + at.IS_AWAKE] = 1
        h = row[h + at.NEXT_BEARER]
    if row[e + at.IS_AWAKE] == 1:
        events.schedule(row, now_ns + TTI_NS, at.TTI_DUE, e)


@jit
def _retransmissions_ns(row: Ints, e: int, now_tti: int) -> int:
    """Return how much of the TTI number `now_tti` is used by HARQ retransmissions, in ns.

    The ring buffer HARQ_RING holds this airtime for the next TTIs. The entries of this TTI, and of
    TTIs skipped since the last call, are set to 0.
    """
    ring, size = row[e + at.HARQ_RING], row[e + at.HARQ_RING_SIZE]
    for tti in range(max(row[e + at.LAST_TTI] + 1, now_tti - size), now_tti):
        row[ring + tti % size] = 0
    row[e + at.LAST_TTI] = now_tti
    taken_ns = row[ring + now_tti % size]
    row[ring + now_tti % size] = 0
    return taken_ns


@jit
def _next_bearer(row: Ints, h: int) -> int:
    """Return the bearer to serve next, or NOTHING (-1) if no packets wait. It is the one with the
    highest priority in the linked list that begins with bearer `h`. Of bearers with the same
    priority, the first in the list is returned."""
    best = at.NOTHING
    while h != at.NOTHING:
        if row[h + at.QUEUE_COUNT] > 0 and (best == at.NOTHING or _goes_before(row, h, best)):
            best = h
        h = row[h + at.NEXT_BEARER]
    return best


@jit
def _goes_before(row: Ints, h: int, other: int) -> bool:
    """Return True if bearer `h` has a higher priority (weight / mean airtime) than bearer
    `other`."""
    gain = row[h + at.WEIGHT_PPM] * (row[other + at.MEAN_AIRTIME] + HALF_A_TTI)
    return gain > row[other + at.WEIGHT_PPM] * (row[h + at.MEAN_AIRTIME] + HALF_A_TTI)


@jit
def _send_block(row: Ints, e: int, h: int, left_ns: int, now_ns: int) -> int:
    """Send a block of bearer `h`: as much of its queue as fits into the rest of this TTI,
    `left_ns`. Return the airtime of the block in ns.

    If the block needs retransmissions, the same airtime is reserved in a later TTI for each of
    them.
    """
    rate_bps = row[h + at.RATE_BPS]
    free_bits = fitting_bits = left_ns * rate_bps // at.NS_PER_S
    if fitting_bits == 0:
        return left_ns
    attempts = _attempts(row, e, h)
    harq_ns = (attempts - 1) * row[e + at.HARQ_TTIS] * TTI_NS
    done_ns = max(row[h + at.LAST_OUT_NS], now_ns + TTI_NS + harq_ns)
    row[h + at.LAST_OUT_NS] = done_ns
    while row[h + at.QUEUE_COUNT] > 0 and free_bits > 0:
        p = row[row[h + at.QUEUE] + row[h + at.QUEUE_HEAD]]
        unsent_bits = row[p + at.SIZE] * 8 - row[h + at.HEAD_SENT_BITS]
        if unsent_bits > free_bits:
            row[h + at.HEAD_SENT_BITS] += free_bits
            free_bits = 0
        else:
            free_bits -= unsent_bits
            _finish_packet(row, e, h, p, done_ns, now_ns)
    took_ns = left_ns
    if free_bits > 0:
        took_ns = -(-(fitting_bits - free_bits) * at.NS_PER_S // rate_bps)
    row[h + at.AIRTIME_NS] += took_ns
    for n in range(1, attempts):
        tti = now_ns // TTI_NS + n * row[e + at.HARQ_TTIS]
        row[row[e + at.HARQ_RING] + tti % row[e + at.HARQ_RING_SIZE]] += took_ns
    return took_ns


@jit
def _attempts(row: Ints, e: int, h: int) -> int:
    """Draw at random how often a block of bearer `h` is sent until it arrives. The result is
    between 1 and ATTEMPTS."""
    attempts = 1
    while (
        attempts < row[e + at.ATTEMPTS]
        and random_below(row, h + at.RNG_1, MILLION) < row[e + at.BLOCK_ERROR_PPM]
    ):
        attempts += 1
    return attempts


@jit
def _finish_packet(row: Ints, e: int, h: int, p: int, done_ns: int, now_ns: int) -> None:
    """Remove packet `p` from the head of the queue of bearer `h`, because its last byte is sent in
    this TTI. The block with this byte arrives at `done_ns`. The packet arrives one delay of the
    bearer later.

    An uplink packet is dropped if the meter behind the cell refuses it.
    """
    row[h + at.HEAD_SENT_BITS] = 0
    row[h + at.QUEUE_HEAD] = (row[h + at.QUEUE_HEAD] + 1) % row[h + at.QUEUE_SIZE]
    row[h + at.QUEUE_COUNT] -= 1
    row[at.PACKETS_IN_BEARERS] -= 1
    if row[e + at.IS_UPLINK] == 1 and not passes_meter(row, h, p, done_ns):
        drop(row, h, p)
        return
    count_out(row, h, p)
    forward(row, h + at.LINE, p, done_ns + row[h + at.DELAY_NS], now_ns)
