"""Cubic (RFC 9438): the window grows with the cube of the time since the last loss, and at least as
fast as Reno's window would.

HyStart ends slow start before the queue overflows, as in Linux. It does so if the RTT has grown, or
if acknowledgements have arrived close behind each other for half a round trip.
"""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow

C, BETA = 0.4, 0.7  # RFC 9438, section 5: segments/s^3, and what is left after a loss
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # section 4.3: the increase of Reno with this BETA
LOW_WINDOW = 16.0  # HyStart begins at this window
MIN_SAMPLES = 8  # of a round trip, before HyStart compares its RTT
TRAIN_GAP_NS, MIN_GROWTH_NS, MAX_GROWTH_NS = 2_000_000, 4_000_000, 16_000_000


@jit
def cube_root(value: float) -> float:
    """Return the cube root of `value`, or 0 if `value` is negative. Newton's method gives the same
    bits on every machine."""
    if value <= 0.0:
        return 0.0
    root = max(value, 1.0)
    for _ in range(200):
        better = (2.0 * root + value / (root * root)) / 3.0
        if better >= root:
            break
        root = better
    return root


@jit
def in_slow_start(s: Subflow, now_ns: int) -> None:
    """End the slow start of subflow `s` if HyStart finds that the path is full (Ha and Rhee, 2011;
    Linux, tcp_cubic.c). To do so, set SSTHRESH to the window."""
    if s.cwnd >= s.ssthresh or s.cwnd < LOW_WINDOW:
        return
    base_ns, start_ns = s.base_rtt_ns, s.round_start_ns
    growth_ns = min(max(base_ns // 8, MIN_GROWTH_NS), MAX_GROWTH_NS)
    has_samples = s.round_samples > MIN_SAMPLES
    grown = has_samples and s.round_min_rtt_ns > base_ns + growth_ns
    train_ns = max(s.law.train_ns, float(start_ns))
    if now_ns - train_ns <= TRAIN_GAP_NS:
        s.law.train_ns = train_ns = float(now_ns)
    if grown or 2.0 * (train_ns - start_ns) > base_ns:
        s.ssthresh = s.cwnd


@jit
def begin_epoch(s: Subflow, now_ns: int) -> None:
    """Begin congestion avoidance of subflow `s` (RFC 9438, section 4.2). If W_max is below the
    present window, raise W_max to the window. Compute K, the time in s until the window reaches
    W_max."""
    s.epoch_ns = now_ns
    s.law.w_est = s.cwnd
    s.law.w_max = max(s.law.w_max, s.cwnd)
    s.law.k_s = cube_root((s.law.w_max - s.cwnd) / C)


@jit
def curve(s: Subflow, seconds: float) -> float:
    """Return W_cubic(t) = C (t - K)^3 + W_max of subflow `s` in segments, where t = `seconds` since
    congestion avoidance began (RFC 9438, eq (1))."""
    since_k = seconds - s.law.k_s
    return C * since_k * since_k * since_k + s.law.w_max


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `s` by (target - w)/w for each of `acked` segments (RFC 9438,
    sections 4.2 to 4.4). target is W_cubic one RTT from now. The window never falls below an
    estimate of Reno's window."""
    if s.epoch_ns == 0:
        begin_epoch(s, now_ns)
    cwnd = s.cwnd
    since_s = (now_ns - s.epoch_ns) / at.NS_PER_S
    target = min(max(curve(s, since_s + s.srtt_ns / at.NS_PER_S), cwnd), 1.5 * cwnd)
    alpha = 1.0 if s.law.w_est >= s.law.prior_cwnd else ALPHA
    s.law.w_est += alpha * acked / cwnd
    if curve(s, since_s) < s.law.w_est:
        s.cwnd = max(cwnd, s.law.w_est)
    else:
        s.cwnd = cwnd + acked * (target - cwnd) / cwnd


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Set the window w of subflow `s` to 0.7 w, but at least 2 segments. Set SSTHRESH to the new
    window.

    Fast convergence (RFC 9438, section 4.7): W_max becomes 0.85 w if w is below the W_max of the
    last loss. Otherwise W_max becomes w.
    """
    cwnd = s.cwnd
    s.law.prior_cwnd = cwnd
    s.law.w_max = cwnd * (1 + BETA) / 2 if cwnd < s.law.w_max else cwnd
    s.ssthresh = max(cwnd * BETA, 2.0)
    s.cwnd = s.ssthresh
    s.epoch_ns = 0
