"""LIA, linked increases (RFC 6356).

Together the subflows of a connection grow as fast as one TCP connection on the best path would.
After a loss on a subflow, only this subflow halves its window, as Reno does.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws.siblings import rate, rtt_s, siblings, total_rate


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `f` by min(alpha/w_total, 1/w) for each of `acked` segments (RFC
    6356, sections 3 and 4).

    alpha = w_total max(w/rtt^2) / (sum w/rtt)^2. Here w_total is the sum of all windows of the
    connection, and rtt is a subflow's smoothed RTT. Maximum and sum are over all subflows of the
    connection.
    """
    total, best = total_rate(w, f), 0.0
    for r in siblings(w, f):
        best = max(best, rate(w, r) / rtt_s(w, r))
    alone = 1.0 / w.window[f + at.CWND]
    w.window[f + at.CWND] += acked * (min(best / (total * total), alone) if total > 0.0 else alone)
