"""The scheduler of an LTE cell, once per TTI of 1 ms and in each direction by itself, while something waits.

1) blocks that failed are sent again first, 8 ms after the last time (HARQ; 3GPP TS 36.321, section 5.3.2.2)
2) what is left of the TTI goes to the waiting user with the largest weight x rate / mean rate of late, as much as it needs,
   then to the next one (proportional fair: Jalali et al., VTC 2000; with the weights of MP-SDN, eq (3))
3) a block of a user holds the next bytes of its queue, wherever packets begin and end (RLC segmentation), and fails with the
   target error rate; what comes after it waits for it (RLC keeps the order), so an error is delay and never loss

At a steady rate, rate / mean rate is 1 / (mean part of the TTIs' air), so that is what is kept; it rests while the cell does. It is taken
halfway through the TTI to be given, for one TTI is much of a small mean: the sum of weight x log(rate) is what is to grow most.
How often a block will fail is drawn when it is first sent, so everything about it is known then, and nothing happens in
between. Where all attempts fail, the last one counts: RLC would ask again, which is one block in ten thousand.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.links import MILLION, count_out, drop, forward, passes_meter
from lab.engines.sim.core.random_numbers import random_below

TTI_NS = 1_000_000
REMEMBERED_TTIS = 100  # over which the mean part of the air is taken
FINE = 1024  # of a ns of air, in these means
HALF_A_TTI = TTI_NS * FINE // REMEMBERED_TTIS // 2  # what half a TTI adds to them


@jit
def enqueue(row: Ints, h: int, p: int, now_ns: int) -> None:
    """Meter, then a queue of its own for every user; a scheduler that sleeps wakes at the next TTI. What goes up is metered behind
    the cell."""
    e = row[h + at.MEDIUM]
    count = row[h + at.QUEUE_COUNT]
    if (row[e + at.IS_UPLINK] == 0 and not passes_meter(row, h, p, now_ns)) or count >= row[
        h + at.QUEUE_SIZE
    ]:
        drop(row, h, p)
        return
    row[row[h + at.QUEUE] + (row[h + at.QUEUE_HEAD] + count) % row[h + at.QUEUE_SIZE]] = p
    row[h + at.QUEUE_COUNT] = count + 1
    row[at.PACKETS_IN_BEARERS] += 1
    if row[e + at.IS_AWAKE] == 0:
        row[e + at.IS_AWAKE] = 1
        events.schedule(row, (now_ns // TTI_NS + 1) * TTI_NS, e * at.EVENT_KINDS + at.TTI_DUE)


@jit
def on_tti(row: Ints, e: int, now_ns: int) -> None:
    """A TTI begins: share it out; there is another one as long as something waits."""
    now_tti = now_ns // TTI_NS
    left_ns = TTI_NS - _retransmissions_ns(row, e, now_tti)  # 1
    while left_ns > 0:
        h = _next_bearer(row, row[e + at.FIRST_BEARER])  # 2
        if h == at.NOTHING:
            break
        left_ns -= _send_block(row, e, h, left_ns, now_ns)  # 3
    row[e + at.IS_AWAKE] = 0
    h = row[e + at.FIRST_BEARER]
    while h != at.NOTHING:
        row[h + at.MEAN_AIRTIME] += (
            row[h + at.AIRTIME_NS] * FINE - row[h + at.MEAN_AIRTIME]
        ) // REMEMBERED_TTIS
        row[h + at.AIRTIME_NS] = 0
        if row[h + at.QUEUE_COUNT] > 0:
            row[e + at.IS_AWAKE] = 1
        h = row[h + at.NEXT_BEARER]
    if row[e + at.IS_AWAKE] == 1:
        events.schedule(row, now_ns + TTI_NS, e * at.EVENT_KINDS + at.TTI_DUE)


@jit
def _retransmissions_ns(row: Ints, e: int, now_tti: int) -> int:
    """How much of this TTI is taken by blocks that failed; what was taken of TTIs that nobody needed is forgotten."""
    again, size = row[e + at.HARQ_RING], row[e + at.HARQ_RING_SIZE]
    for tti in range(max(row[e + at.LAST_TTI] + 1, now_tti - size), now_tti):
        row[again + tti % size] = 0
    row[e + at.LAST_TTI] = now_tti
    taken_ns = row[again + now_tti % size]
    row[again + now_tti % size] = 0
    return taken_ns


@jit
def _next_bearer(row: Ints, h: int) -> int:
    """Of the bearers from `h` on that have something waiting, the one whose turn it is; the first of equals."""
    best = at.NOTHING
    while h != at.NOTHING:
        if row[h + at.QUEUE_COUNT] > 0 and (best == at.NOTHING or _goes_before(row, h, best)):
            best = h
        h = row[h + at.NEXT_BEARER]
    return best


@jit
def _goes_before(row: Ints, h: int, other: int) -> bool:
    """Whether bearer `h` gains more by a TTI than the other."""
    gain = row[h + at.WEIGHT_PPM] * (row[other + at.MEAN_AIRTIME] + HALF_A_TTI)
    return gain > row[other + at.WEIGHT_PPM] * (row[h + at.MEAN_AIRTIME] + HALF_A_TTI)


@jit
def _send_block(row: Ints, e: int, h: int, left_ns: int, now_ns: int) -> int:
    """Send as much of a queue as goes into `left_ns` of this TTI; returns how much of it was needed."""
    rate_bps = row[h + at.RATE_BPS]
    room = fits = left_ns * rate_bps // at.NS_PER_S  # in bits
    if fits == 0:
        return left_ns
    attempts = _attempts(row, e, h)
    done_ns = max(
        row[h + at.LAST_OUT_NS], now_ns + TTI_NS + (attempts - 1) * row[e + at.HARQ_TTIS] * TTI_NS
    )
    row[h + at.LAST_OUT_NS] = done_ns
    while row[h + at.QUEUE_COUNT] > 0 and room > 0:
        p = row[row[h + at.QUEUE] + row[h + at.QUEUE_HEAD]]
        rest = row[p + at.SIZE] * 8 - row[h + at.HEAD_SENT_BITS]
        if rest > room:
            row[h + at.HEAD_SENT_BITS] += room
            room = 0
        else:
            room -= rest
            _finish_packet(row, e, h, p, done_ns, now_ns)
    took_ns = left_ns if room == 0 else -(-(fits - room) * at.NS_PER_S // rate_bps)
    row[h + at.AIRTIME_NS] += took_ns
    for n in range(1, attempts):
        tti = now_ns // TTI_NS + n * row[e + at.HARQ_TTIS]
        row[row[e + at.HARQ_RING] + tti % row[e + at.HARQ_RING_SIZE]] += took_ns
    return took_ns


@jit
def _attempts(row: Ints, e: int, h: int) -> int:
    """How often a block will be sent."""
    attempts = 1
    while (
        attempts < row[e + at.ATTEMPTS]
        and random_below(row, h + at.RNG_1, MILLION) < row[e + at.BLOCK_ERROR_PPM]
    ):
        attempts += 1
    return attempts


@jit
def _finish_packet(row: Ints, e: int, h: int, p: int, done_ns: int, now_ns: int) -> None:
    """The last byte of the first packet in a queue has been sent: it arrives with its block."""
    row[h + at.HEAD_SENT_BITS] = 0
    row[h + at.QUEUE_HEAD] = (row[h + at.QUEUE_HEAD] + 1) % row[h + at.QUEUE_SIZE]
    row[h + at.QUEUE_COUNT] -= 1
    row[at.PACKETS_IN_BEARERS] -= 1
    if row[e + at.IS_UPLINK] == 1 and not passes_meter(row, h, p, done_ns):
        drop(row, h, p)
        return
    count_out(row, h, p)
    forward(row, p, done_ns + row[h + at.DELAY_NS], now_ns)
