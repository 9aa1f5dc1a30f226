"""LIA, linked increases (RFC 6356): together the subflows grow as one connection on the best path would; each halves by itself."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import siblings


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """w += min(alpha/w_total, 1/w) for every segment, alpha = w_total max(w/rtt^2) / (sum w/rtt)^2 (sections 3 and 4)."""
    total, best = siblings.total_rate(w, f), 0.0
    for r in range(siblings.first(w, f), siblings.end(w, f), at.SUB_FIELDS):
        best = max(best, siblings.rate(w, r) / siblings.rtt_s(w, r))
    alone = 1.0 / w.window[f + at.CWND]
    w.window[f + at.CWND] += acked * (min(best / (total * total), alone) if total > 0.0 else alone)
