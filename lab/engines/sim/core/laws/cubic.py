"""Cubic (RFC 9438): the window grows with the cube of the time since the last loss, and at least as
fast as Reno's window would.

HyStart ends slow start before the queue overflows, as in Linux. It does so if the RTT has grown, or
if acknowledgements have arrived close behind each other for half a round trip.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

C, BETA = 0.4, 0.7  # RFC 9438, section 5: segments/s^3, and what is left after a loss
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # section 4.3: the increase of Reno with this BETA
W_MAX, K, W_EST, PRIOR, TRAIN_NS = at.LAW_1, at.LAW_2, at.LAW_3, at.LAW_4, at.LAW_5
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
def in_slow_start(w: at.World, f: int, now_ns: int) -> None:
    """End the slow start of subflow `f` if HyStart finds that the path is full (Ha and Rhee, 2011;
    Linux, tcp_cubic.c). To do so, set SSTHRESH to the window."""
    row = w.row
    window = w.window
    if window[f + at.CWND] >= window[f + at.SSTHRESH] or window[f + at.CWND] < LOW_WINDOW:
        return
    base_ns, start_ns = row[f + at.BASE_RTT_NS], row[f + at.ROUND_START_NS]
    growth_ns = min(max(base_ns // 8, MIN_GROWTH_NS), MAX_GROWTH_NS)
    has_samples = row[f + at.ROUND_SAMPLES] > MIN_SAMPLES
    grown = has_samples and row[f + at.ROUND_MIN_RTT_NS] > base_ns + growth_ns
    train_ns = max(window[f + TRAIN_NS], float(start_ns))
    if now_ns - train_ns <= TRAIN_GAP_NS:
        window[f + TRAIN_NS] = train_ns = float(now_ns)
    if grown or 2.0 * (train_ns - start_ns) > base_ns:
        window[f + at.SSTHRESH] = window[f + at.CWND]


@jit
def begin_epoch(w: at.World, f: int, now_ns: int) -> None:
    """Begin congestion avoidance of subflow `f` (RFC 9438, section 4.2). If W_max is below the
    present window, raise W_max to the window. Compute K, the time in s until the window reaches
    W_max."""
    window = w.window
    w.row[f + at.EPOCH_NS] = now_ns
    window[f + W_EST] = window[f + at.CWND]
    window[f + W_MAX] = max(window[f + W_MAX], window[f + at.CWND])
    window[f + K] = cube_root((window[f + W_MAX] - window[f + at.CWND]) / C)


@jit
def curve(w: at.World, f: int, seconds: float) -> float:
    """Return W_cubic(t) = C (t - K)^3 + W_max of subflow `f` in segments, where t = `seconds` since
    congestion avoidance began (RFC 9438, eq (1))."""
    since_k = seconds - w.window[f + K]
    return C * since_k * since_k * since_k + w.window[f + W_MAX]


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `f` by (target - w)/w for each of `acked` segments (RFC 9438,
    sections 4.2 to 4.4). target is W_cubic one RTT from now. The window never falls below an
    estimate of Reno's window."""
    row = w.row
    window = w.window
    if row[f + at.EPOCH_NS] == 0:
        begin_epoch(w, f, now_ns)
    cwnd = window[f + at.CWND]
    since_s = (now_ns - row[f + at.EPOCH_NS]) / at.NS_PER_S
    target = min(max(curve(w, f, since_s + row[f + at.SRTT_NS] / at.NS_PER_S), cwnd), 1.5 * cwnd)
    alpha = 1.0 if window[f + W_EST] >= window[f + PRIOR] else ALPHA
    window[f + W_EST] += alpha * acked / cwnd
    if curve(w, f, since_s) < window[f + W_EST]:
        window[f + at.CWND] = max(cwnd, window[f + W_EST])
    else:
        window[f + at.CWND] = cwnd + acked * (target - cwnd) / cwnd


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Set the window w of subflow `f` to 0.7 w, but at least 2 segments. Set SSTHRESH to the new
    window.

    Fast convergence (RFC 9438, section 4.7): W_max becomes 0.85 w if w is below the W_max of the
    last loss. Otherwise W_max becomes w.
    """
    window = w.window
    cwnd = window[f + at.CWND]
    window[f + PRIOR] = cwnd
    window[f + W_MAX] = cwnd * (1 + BETA) / 2 if cwnd < window[f + W_MAX] else cwnd
    window[f + at.SSTHRESH] = max(cwnd * BETA, 2.0)
    window[f + at.CWND] = window[f + at.SSTHRESH]
    w.row[f + at.EPOCH_NS] = 0
