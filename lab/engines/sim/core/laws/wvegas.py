"""wVegas, weighted Vegas (Cao et al., ICNP 2012; multipath-tcp.org kernel 0.9x). The subflows of a
connection together keep ten segments in queues. Each subflow has a share of them.

Once per round trip, the window w of a subflow is divided into two parts: `diff` segments are in
queues, and `target` segments are on the wire.
1) Slow start ends when more than GAMMA segments are in queues.
2) alpha is the number of segments that the subflow may keep in queues. It is the share of
   TOTAL_ALPHA that corresponds to the rate of the subflow, and at least 2. It is computed again
   when `diff` has reached it.
3) w changes by at most one segment, so that `diff` approaches alpha.
4) MIN_QUEUE_NS is the lowest queueing delay so far. If the present queueing delay is at least twice
   as long, w is reduced so that the queue drains, and MIN_QUEUE_NS is reset.
5) SSTHRESH becomes at least three quarters of w (the kernel's tcp_current_ssthresh). After step 4,
   slow start therefore refills most of the window within a round trip.

Windows are whole numbers, as in the kernel. After a loss, the window is halved as in Reno, and
alpha, rate and MIN_QUEUE_NS are cleared.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import can_send, siblings

TOTAL_ALPHA, MIN_ALPHA, GAMMA, MIN_WINDOW = 10, 2, 1, 2.0  # segments
MIN_SAMPLES = 3
# a queueing delay below base RTT / NOISE counts as none: at a delay of 0, the kernel's test would
# halve w
NOISE = 100
ALPHA, RATE, MIN_QUEUE_NS = at.LAW_1, at.LAW_2, at.LAW_3


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """Change the window of subflow `f` after a round trip (steps 1 to 5 of the module docstring).
    `rtt_ns` is the mean of `samples` RTT samples. With fewer than three samples, the window grows
    as in Reno."""
    window, base_ns = w.window, w.row[f + at.BASE_RTT_NS]
    cwnd = int(window[f + at.CWND])
    if samples < MIN_SAMPLES:
        reno.on_ack(w, f, 1, 0)
        return
    diff, target = cwnd * (rtt_ns - base_ns) // rtt_ns, cwnd * base_ns // rtt_ns
    if window[f + at.CWND] < window[f + at.SSTHRESH]:
        if diff > GAMMA:  # 1
            window[f + at.CWND] = float(min(cwnd, target + 1))
            window[f + at.SSTHRESH] = min(window[f + at.SSTHRESH], window[f + at.CWND] - 1.0)
    else:
        window[f + at.CWND] = float(drain(w, f, step(w, f, cwnd, diff, rtt_ns), rtt_ns))
    window[f + at.CWND] = max(window[f + at.CWND], MIN_WINDOW)
    cwnd = int(window[f + at.CWND])
    window[f + at.SSTHRESH] = max(window[f + at.SSTHRESH], float(cwnd // 2 + cwnd // 4))  # 5


@jit
def step(w: at.World, f: int, cwnd: int, diff: int, rtt_ns: int) -> int:
    """Return the new window. It differs from `cwnd` by at most one segment, so that the number of
    segments in queues, `diff`, approaches alpha (steps 2 and 3 of the module docstring)."""
    if diff >= max(w.window[f + ALPHA], MIN_ALPHA):  # 2
        w.window[f + RATE] = cwnd * at.NS_PER_S / rtt_ns
        total = 0.0
        for r in siblings(w, f):
            total += w.window[r + RATE] if can_send(w, r) else 0.0
        share = TOTAL_ALPHA * w.window[f + RATE] / total if total > 0.0 else 0.0
        w.window[f + ALPHA] = float(int(share))
    alpha = max(w.window[f + ALPHA], MIN_ALPHA)
    if diff > alpha:  # 3
        w.window[f + at.SSTHRESH] = min(w.window[f + at.SSTHRESH], cwnd - 2.0)
        return cwnd - 1
    return cwnd + 1 if diff < alpha else cwnd


@jit
def drain(w: at.World, f: int, cwnd: int, rtt_ns: int) -> int:
    """Return the new window (step 4 of the module docstring). It is half of the segments on the
    wire if the queueing delay is at least twice the lowest delay so far. Otherwise it is `cwnd`."""
    base_ns = w.row[f + at.BASE_RTT_NS]
    queue_ns = float(rtt_ns - base_ns)
    min_ns = w.window[f + MIN_QUEUE_NS]
    if min_ns == 0.0 or min_ns > queue_ns:
        min_ns = queue_ns
    drains = queue_ns >= 2.0 * min_ns and queue_ns * NOISE > base_ns  # 4
    w.window[f + MIN_QUEUE_NS] = 0.0 if drains else min_ns
    return cwnd * base_ns // (2 * rtt_ns) if drains else cwnd


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Halve the window of subflow `f` as in Reno, rounded down to whole segments. Clear alpha, the
    rate and the lowest queueing delay."""
    reno.on_loss(w, f, now_ns)
    halved = max(float(int(w.window[f + at.CWND])), MIN_WINDOW)
    w.window[f + at.SSTHRESH] = w.window[f + at.CWND] = halved
    w.window[f + ALPHA] = w.window[f + RATE] = w.window[f + MIN_QUEUE_NS] = 0.0
