"""wVegas, weighted Vegas (Cao et al., ICNP 2012; kernel 0.9x): each subflow keeps a share of ten segments in queues.

Once per round trip, `diff` of the w segments under way being in queues and `target` on the wire:
1) slow start ends when more than GAMMA are in queues
2) alpha, the segments it may keep there, is its share of TOTAL_ALPHA by rate, 2 at least; it is looked at when reached
3) w goes by one towards alpha
4) a queue twice the smallest since the last time is given the time to drain
Windows are whole numbers, as in the kernel. Losses as Reno; the subflow then begins anew.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno, siblings

TOTAL_ALPHA, FIRST_ALPHA, GAMMA, LEAST = 10, 2, 1, 2.0  # segments
LEAST_SAMPLES = 3
NOISE = 100  # a queue below a hundredth of the round trip is none: the kernel's test would halve w where it sees 0
ALPHA, RATE, LEAST_QUEUE_NS = at.LAW_1, at.LAW_2, at.LAW_3


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """`rtt_ns` is the mean over the round."""
    window, base_ns = w.window, w.row[f + at.BASE_RTT_NS]
    cwnd = int(window[f + at.CWND])
    if samples < LEAST_SAMPLES:
        reno.on_ack(w, f, 1, 0)
        return
    diff, target = cwnd * (rtt_ns - base_ns) // rtt_ns, cwnd * base_ns // rtt_ns
    if window[f + at.CWND] < window[f + at.SSTHRESH]:
        if diff > GAMMA:  # 1
            window[f + at.CWND] = float(min(cwnd, target + 1))
            window[f + at.SSTHRESH] = min(window[f + at.SSTHRESH], window[f + at.CWND] - 1.0)
    else:
        window[f + at.CWND] = float(drained(w, f, nearer(w, f, cwnd, diff, rtt_ns), rtt_ns))
    window[f + at.CWND] = max(window[f + at.CWND], LEAST)


@jit
def nearer(w: at.World, f: int, cwnd: int, diff: int, rtt_ns: int) -> int:
    """The window one segment nearer to what leaves alpha in queues."""
    if diff >= max(w.window[f + ALPHA], FIRST_ALPHA):  # 2
        w.window[f + RATE] = cwnd * at.NS_PER_S / rtt_ns
        total = 0.0
        for r in range(siblings.first(w, f), siblings.end(w, f), at.SUB_FIELDS):
            total += w.window[r + RATE] if siblings.counts(w, r) else 0.0
        w.window[f + ALPHA] = (
            float(int(TOTAL_ALPHA * w.window[f + RATE] / total)) if total > 0.0 else 0.0
        )
    alpha = max(w.window[f + ALPHA], FIRST_ALPHA)
    if diff > alpha:  # 3
        w.window[f + at.SSTHRESH] = min(w.window[f + at.SSTHRESH], cwnd - 2.0)
        return cwnd - 1
    return cwnd + 1 if diff < alpha else cwnd


@jit
def drained(w: at.World, f: int, cwnd: int, rtt_ns: int) -> int:
    """The window, or what lets the queue drain if that has doubled."""
    base_ns = w.row[f + at.BASE_RTT_NS]
    queue_ns = float(rtt_ns - base_ns)
    least_ns = w.window[f + LEAST_QUEUE_NS]
    if least_ns == 0.0 or least_ns > queue_ns:
        least_ns = queue_ns
    drains = queue_ns >= 2.0 * least_ns and queue_ns * NOISE > base_ns  # 4
    w.window[f + LEAST_QUEUE_NS] = 0.0 if drains else least_ns
    return cwnd * base_ns // (2 * rtt_ns) if drains else cwnd


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """As Reno, in whole segments."""
    reno.on_loss(w, f, now_ns)
    w.window[f + at.SSTHRESH] = w.window[f + at.CWND] = max(
        float(int(w.window[f + at.CWND])), LEAST
    )
    w.window[f + ALPHA] = w.window[f + RATE] = w.window[f + LEAST_QUEUE_NS] = 0.0
