"""LIA, linked increases (RFC 6356).

Together the subflows of a connection grow as fast as one TCP connection on the best path would.
After a loss on a subflow, only this subflow halves its window, as Reno does.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws.siblings import can_send, rate, rtt_s, total_rate
from lab.engines.sim.core.state import Subflow


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `s` by min(alpha/w_total, 1/w) for each of `acked` segments (RFC
    6356, sections 3 and 4).

    alpha = w_total max(w/rtt^2) / (sum w/rtt)^2. Here w_total is the sum of all windows of the
    connection, and rtt is a subflow's smoothed RTT. Maximum and sum are over all subflows of the
    connection.
    """
    total, best = total_rate(s), 0.0
    for k in range(s.connection.count):
        r = s.connection.subflows[k]
        if can_send(r):  # others may have no RTT yet
            best = max(best, rate(r) / rtt_s(r))
    alone = 1.0 / s.cwnd
    s.cwnd += acked * (min(best / (total * total), alone) if total > 0.0 else alone)
