"""BALIA, balanced linked adaptation (draft-walid-mptcp-congestion-control-04).

It is a compromise between the friendliness of LIA and the responsiveness of OLIA. Symbols: for each
subflow, w is the window in segments, rtt the smoothed RTT in s, and x = w/rtt the rate. Sums and
maxima are over all subflows of the connection.
"""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import rate, rtt_s, total_rate
from lab.engines.sim.core.state import Subflow


@jit
def alpha(s: Subflow) -> float:
    """Return BALIA's alpha of subflow `s`, which is at least 1. It is the largest rate (window /
    RTT) of all subflows of the connection, divided by the rate of `s`."""
    best = 0.0
    for k in range(s.connection.count):
        r = s.connection.subflows[k]
        best = max(best, rate(r))
    own = rate(s)
    return best / own if own > 0.0 else 1.0


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Grow the window of subflow `s`. Each of `acked` segments adds x/rtt / (sum x)^2 (1 + alpha)/2
    (4 + alpha)/5, but at most 1. Here x is window / rtt, and the sum is over all subflows of the
    connection."""
    total, a = total_rate(s), alpha(s)
    grown = 1.0 / s.cwnd
    if total > 0.0:
        coupled = rate(s) / rtt_s(s) / (total * total)
        grown = coupled * (1.0 + a) / 2.0 * (4.0 + a) / 5.0
    s.cwnd += acked * min(grown, 1.0)


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Reduce the window w of subflow `s` by w/2 min(alpha, 1.5), and set SSTHRESH to the new
    window.

    alpha and w are rounded down as in the multipath-tcp.org kernel, unless the scenario chooses the
    formula of the draft. In a connection with a single subflow, the window is halved as in Reno.
    """
    if s.connection.count < 2:
        reno.on_loss(s, now_ns)
        return
    cwnd, a = s.cwnd, alpha(s)
    cut = cwnd / 2.0 * min(a, 1.5)
    if s.connection.balia_decrease == at.KERNEL:
        cut = float(int(int(cwnd) // 2 * min(float(int(a)), 1.5)))
    s.ssthresh = s.cwnd = max(cwnd - cut, 1.0)
