"""BALIA, balanced linked adaptation (draft-walid-mptcp-congestion-control-04): between LIA's friendliness and OLIA's haste."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno, siblings


@jit
def alpha(w: at.World, f: int) -> float:
    """max x / x of this subflow, 1 or more."""
    best = 0.0
    for r in range(siblings.first(w, f), siblings.end(w, f), at.SUB_FIELDS):
        best = max(best, siblings.rate(w, r))
    own = siblings.rate(w, f)
    return best / own if own > 0.0 else 1.0


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """w += x/rtt / (sum x)^2 (1+alpha)/2 (4+alpha)/5 for every segment, 1 at most."""
    total, a = siblings.total_rate(w, f), alpha(w, f)
    grown = 1.0 / w.window[f + at.CWND]
    if total > 0.0:
        grown = (
            siblings.rate(w, f)
            / siblings.rtt_s(w, f)
            / (total * total)
            * (1.0 + a)
            / 2.0
            * (4.0 + a)
            / 5.0
        )
    w.window[f + at.CWND] += acked * min(grown, 1.0)


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """w -= w/2 min(alpha, 1.5). The kernel has alpha and w as whole numbers. Alone as Reno."""
    row = w.row
    if row[row[f + at.CONNECTION] + at.COUNT] < 2:
        reno.on_loss(w, f, now_ns)
        return
    cwnd, a = w.window[f + at.CWND], alpha(w, f)
    cut = cwnd / 2.0 * min(a, 1.5)
    if row[at.BALIA_DECREASE] == at.KERNEL:
        cut = float(int(int(cwnd) // 2 * min(float(int(a)), 1.5)))
    w.window[f + at.SSTHRESH] = w.window[f + at.CWND] = max(cwnd - cut, 1.0)
