"""Cubic (RFC 9438): the window grows with the cube of the time since the last loss, at least as fast as Reno's would."""

from __future__ import annotations

from lab.engines.sim import layout as at
from lab.engines.sim.jit import jit

C, BETA = 0.4, 0.7  # RFC 9438, section 5: segments/s^3, and what is left after a loss
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # section 4.3: Reno's growth that is as fast with this BETA
W_MAX, K, W_EST, PRIOR, W_EPOCH = at.LAW_1, at.LAW_2, at.LAW_3, at.LAW_4, at.LAW_5


@jit
def cube_root(value: float) -> float:
    """By Newton's method, so that it is the same to the last bit on every machine."""
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
def begin_epoch(w: at.World, f: int, now_ns: int) -> None:
    """Congestion avoidance begins: W_max is ahead after a loss, or here and now without one (section 4.2)."""
    window = w.window
    w.sub[f + at.EPOCH_NS] = now_ns
    window[f + W_EPOCH] = window[f + W_EST] = window[f + at.CWND]
    window[f + W_MAX] = max(window[f + W_MAX], window[f + at.CWND])
    window[f + K] = cube_root((window[f + W_MAX] - window[f + at.CWND]) / C)


@jit
def curve(w: at.World, f: int, seconds: float) -> float:
    """W_cubic(t) = C (t - K)^3 + W_max (eq (1))."""
    ahead = seconds - w.window[f + K]
    return C * ahead * ahead * ahead + w.window[f + W_MAX]


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """w += (target - w)/w for every segment, and never below Reno's estimate (sections 4.2 to 4.4)."""
    window = w.window
    if w.sub[f + at.EPOCH_NS] == 0:
        begin_epoch(w, f, now_ns)
    cwnd = window[f + at.CWND]
    since_s = (now_ns - w.sub[f + at.EPOCH_NS]) / at.NS_PER_S
    target = min(max(curve(w, f, since_s + w.sub[f + at.SRTT_NS] / at.NS_PER_S), cwnd), 1.5 * cwnd)
    alpha = 1.0 if window[f + W_EST] >= window[f + PRIOR] else ALPHA
    window[f + W_EST] += alpha * acked / cwnd
    if curve(w, f, since_s) < window[f + W_EST]:
        window[f + at.CWND] = max(cwnd, window[f + W_EST])
    else:
        window[f + at.CWND] = cwnd + acked * (target - cwnd) / cwnd


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """w = 0.7 w; with fast convergence W_max falls below w if the last one was not reached (section 4.7)."""
    window = w.window
    cwnd = window[f + at.CWND]
    window[f + PRIOR] = cwnd
    window[f + W_MAX] = cwnd * (1 + BETA) / 2 if cwnd < window[f + W_MAX] else cwnd
    window[f + at.SSTHRESH] = max(cwnd * BETA, 2.0)
    window[f + at.CWND] = window[f + at.SSTHRESH]
    w.sub[f + at.EPOCH_NS] = 0
