"""RED (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993). An arriving packet is dropped at random, the
more often the longer the queue has been on average, and always above a maximum. Where this leaves a
choice, it is Linux's (sch_red)."""

from __future__ import annotations

from lab.engines.sim.core import ecn
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Hop, Packet, Queue

FRAME_BYTES = 1514  # of a full frame


@jit
def admits_early(h: Hop, q: Queue, p: Packet, now_ns: int) -> bool:
    """Return True if RED lets packet `p` into the queue of link `h`, perhaps with a mark."""
    average(h, q, now_ns)
    mean_bytes = q.scaled_average >> q.weight_log
    if mean_bytes < q.min_bytes:
        q.since_mark = -1
    elif mean_bytes >= q.max_bytes:
        q.since_mark = -1
        if not ecn.marks(q, p):
            return False
    elif is_chosen(h, q, mean_bytes) and not ecn.marks(q, p):
        return False
    return q.size_bytes + p.size <= q.limit * FRAME_BYTES


@jit
def average(h: Hop, q: Queue, now_ns: int) -> None:
    """Give the present length of the queue to its average. If it was empty, the average falls as if
    that many full frames had found it empty as the link could have sent."""
    if q.idle_since_ns == 0:
        q.scaled_average += q.size_bytes - (q.scaled_average >> q.weight_log)
        return
    frames = (now_ns - q.idle_since_ns) * h.rate_bps // (FRAME_BYTES * 8 * at.NS_PER_S)
    q.idle_since_ns = 0
    while frames > 0 and q.scaled_average >> q.weight_log > 0:
        q.scaled_average -= q.scaled_average >> q.weight_log
        frames -= 1


@jit
def is_chosen(h: Hop, q: Queue, mean_bytes: int) -> bool:
    """Return True if a packet is to be dropped or marked. The number of packets between two that
    are chosen is uniformly distributed (section VII of the paper, method 2)."""
    q.since_mark += 1
    chosen = q.since_mark > 0 and (mean_bytes - q.min_bytes) * q.since_mark >= q.gap
    if chosen or q.since_mark == 0:
        q.since_mark = 0
        q.gap = random_below(h.random, at.MILLION) * q.span // at.MILLION
    return chosen
