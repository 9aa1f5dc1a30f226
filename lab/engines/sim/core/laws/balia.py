"""BALIA, balanced linked adaptation (draft-walid-mptcp-congestion-control-04).

It is a compromise between the friendliness of LIA and the responsiveness of OLIA. Symbols: for each
subflow, w is the window in segments, rtt the smoothed RTT in s, and x = w/rtt the rate. Sums and
maxima are over all subflows of the connection.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import rate, rtt_s, siblings, total_rate


@jit
def alpha(w: at.World, f: int) -> float:
    """Return BALIA's alpha of subflow `f`, which is at least 1. It is the largest rate (window /
    RTT) of all subflows of the connection, divided by the rate of `f`."""
    best = 0.0
    for r in siblings(w, f):
        best = max(best, rate(w, r))
    own = rate(w, f)
    return best / own if own > 0.0 else 1.0


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Grow the window of subflow `f`. Each of `acked` segments adds x/rtt / (sum x)^2 (1 + alpha)/2
    (4 + alpha)/5, but at most 1. Here x is window / rtt, and the sum is over all subflows of the
    connection."""
    total, a = total_rate(w, f), alpha(w, f)
    grown = 1.0 / w.window[f + at.CWND]
    if total > 0.0:
        coupled = rate(w, f) / rtt_s(w, f) / (total * total)
        grown = coupled * (1.0 + a) / 2.0 * (4.0 + a) / 5.0
    w.window[f + at.CWND] += acked * min(grown, 1.0)


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Reduce the window w of subflow `f` by w/2 min(alpha, 1.5), and set SSTHRESH to the new
    window.

    alpha and w are rounded down as in the multipath-tcp.org kernel, unless the scenario chooses the
    formula of the draft. In a connection with a single subflow, the window is halved as in Reno.
    """
    row = w.row
    if row[row[f + at.CONNECTION] + at.COUNT] < 2:
        reno.on_loss(w, f, now_ns)
        return
    cwnd, a = w.window[f + at.CWND], alpha(w, f)
    cut = cwnd / 2.0 * min(a, 1.5)
    if row[at.BALIA_DECREASE] == at.KERNEL:
        cut = float(int(int(cwnd) // 2 * min(float(int(a)), 1.5)))
    w.window[f + at.SSTHRESH] = w.window[f + at.CWND] = max(cwnd - cut, 1.0)
