"""OLIA, opportunistic linked increases (draft-khalili-mptcp-congestion-control-05).

OLIA shrinks the largest windows in favour of windows on better paths. It uses these terms for the
subflows of one connection:
- l of a subflow: the number of segments acknowledged between its last two losses or since its last
  loss, whichever is larger
- M: the subflows with the largest window
- B: the subflows with the best paths. In the multipath-tcp.org kernel they have the largest
  l/rtt^2, in the draft the largest l^2/rtt. rtt is the smoothed RTT
- C: the subflows that are in B but not in M
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import can_send, rate, rtt_s, siblings, total_rate

LOSS_SEQ = at.LAW_1  # SND_UNA at the last loss
BETWEEN = at.LAW_2  # l between the last two losses
SAME = 1.0 - 1e-9  # rounding must not break a tie


@jit
def path_quality(w: at.World, r: int) -> float:
    """Return how good the path of subflow `r` is: l/rtt^2 or, if the scenario chooses the draft,
    l^2/rtt. l is the number of segments acknowledged between the last two losses or since the last
    loss, whichever is larger."""
    since_loss = w.row[r + at.SND_UNA] - w.window[r + LOSS_SEQ]
    between, rtt = max(since_loss, w.window[r + BETWEEN]), rtt_s(w, r)
    is_draft = w.row[at.OLIA_METRIC] == at.DRAFT
    return between * between / rtt if is_draft else between / (rtt * rtt)


@jit
def alpha(w: at.World, f: int) -> float:
    """Return OLIA's alpha of subflow `f`. The module docstring defines the sets C and M; n is the
    number of subflows that can send.

    - `f` is in C (one of the best paths, but not the largest window): +1/(n |C|)
    - `f` is in M (the largest window), and C is not empty: -1/(n |M|)
    - otherwise: 0
    """
    n, largest, best = 0, 0, 0.0
    for r in siblings(w, f):
        if can_send(w, r):
            n += 1
            largest = max(largest, int(w.window[r + at.CWND]))
            best = max(best, path_quality(w, r))
    in_m, in_c, sign = 0, 0, 0
    for r in siblings(w, f):
        if can_send(w, r) and int(w.window[r + at.CWND]) == largest:
            in_m, sign = in_m + 1, -1 if r == f else sign
        elif can_send(w, r) and path_quality(w, r) >= best * SAME:
            in_c, sign = in_c + 1, 1 if r == f else sign
    if in_c == 0 or sign == 0:
        return 0.0
    return 1.0 / (n * in_c) if sign > 0 else -1.0 / (n * in_m)


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Change the window w of subflow `f` by (w/rtt^2) / (sum w/rtt)^2 + alpha/w for each of `acked`
    segments. Here rtt is the smoothed RTT, and the sum is over all subflows of the connection.

    The window may shrink. SSTHRESH is then lowered to the window, so that slow start does not
    begin.
    """
    total, cwnd = total_rate(w, f), w.window[f + at.CWND]
    grown = rate(w, f) / rtt_s(w, f) / (total * total) if total > 0.0 else 1.0 / cwnd
    w.window[f + at.CWND] = max(cwnd + acked * (grown + alpha(w, f) / cwnd), 1.0)
    w.window[f + at.SSTHRESH] = min(w.window[f + at.SSTHRESH], w.window[f + at.CWND])


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Halve the window of subflow `f` as Reno does, and begin a new count of the segments
    acknowledged between two losses."""
    w.window[f + BETWEEN] = w.row[f + at.SND_UNA] - w.window[f + LOSS_SEQ]
    w.window[f + LOSS_SEQ] = float(w.row[f + at.SND_UNA])
    reno.on_loss(w, f, now_ns)
