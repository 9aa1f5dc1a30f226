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

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import can_send
from lab.engines.sim.core.state import Subflow

TOTAL_ALPHA, MIN_ALPHA, GAMMA, MIN_WINDOW = 10, 2, 1, 2.0  # segments
MIN_SAMPLES = 3
# a queueing delay below base RTT / NOISE counts as none: at a delay of 0, the kernel's test would
# halve w
NOISE = 100


@jit
def on_round(s: Subflow, rtt_ns: int, samples: int) -> None:
    """Change the window of subflow `s` after a round trip (steps 1 to 5 of the module docstring).
    `rtt_ns` is the mean of `samples` RTT samples. With fewer than three samples, the window grows
    as in Reno."""
    base_ns = s.base_rtt_ns
    cwnd = int(s.cwnd)
    if samples < MIN_SAMPLES:
        reno.on_ack(s, 1, 0)
        return
    diff, target = cwnd * (rtt_ns - base_ns) // rtt_ns, cwnd * base_ns // rtt_ns
    if s.cwnd < s.ssthresh:
        if diff > GAMMA:  # 1
            s.cwnd = float(min(cwnd, target + 1))
            s.ssthresh = min(s.ssthresh, s.cwnd - 1.0)
    else:
        s.cwnd = float(drain(s, step(s, cwnd, diff, rtt_ns), rtt_ns))
    s.cwnd = max(s.cwnd, MIN_WINDOW)
    cwnd = int(s.cwnd)
    s.ssthresh = max(s.ssthresh, float(cwnd // 2 + cwnd // 4))  # 5


@jit
def step(s: Subflow, cwnd: int, diff: int, rtt_ns: int) -> int:
    """Return the new window. It differs from `cwnd` by at most one segment, so that the number of
    segments in queues, `diff`, approaches alpha (steps 2 and 3 of the module docstring)."""
    if diff >= max(s.law.alpha, MIN_ALPHA):  # 2
        s.law.rate = cwnd * at.NS_PER_S / rtt_ns
        total = 0.0
        for k in range(s.connection.count):
            r = s.connection.subflows[k]
            total += r.law.rate if can_send(r) else 0.0
        share = TOTAL_ALPHA * s.law.rate / total if total > 0.0 else 0.0
        s.law.alpha = float(int(share))
    alpha = max(s.law.alpha, MIN_ALPHA)
    if diff > alpha:  # 3
        s.ssthresh = min(s.ssthresh, cwnd - 2.0)
        return cwnd - 1
    return cwnd + 1 if diff < alpha else cwnd


@jit
def drain(s: Subflow, cwnd: int, rtt_ns: int) -> int:
    """Return the new window (step 4 of the module docstring). It is half of the segments on the
    wire if the queueing delay is at least twice the lowest delay so far. Otherwise it is `cwnd`."""
    base_ns = s.base_rtt_ns
    queue_ns = float(rtt_ns - base_ns)
    min_ns = s.law.min_queue_ns
    if min_ns == 0.0 or min_ns > queue_ns:
        min_ns = queue_ns
    drains = queue_ns >= 2.0 * min_ns and queue_ns * NOISE > base_ns  # 4
    s.law.min_queue_ns = 0.0 if drains else min_ns
    return cwnd * base_ns // (2 * rtt_ns) if drains else cwnd


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Halve the window of subflow `s` as in Reno, rounded down to whole segments. Clear alpha, the
    rate and the lowest queueing delay."""
    reno.on_loss(s, now_ns)
    halved = max(float(int(s.cwnd)), MIN_WINDOW)
    s.ssthresh = s.cwnd = halved
    s.law.alpha = s.law.rate = s.law.min_queue_ns = 0.0
