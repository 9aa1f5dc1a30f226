"""Implement OLIA, opportunistic linked increases (draft-khalili-mptcp-congestion-control-05).

Windows move from the largest to the best paths:
l  segments between the last two losses, or since the last one if these are more
M  the subflows with the largest window
B  the best subflows: with the largest l/rtt^2 (kernel) or l^2/rtt (draft)
C  those of B that are not in M
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
    """Return l/rtt^2 or l^2/rtt: how much a path delivers between two losses."""
    since_loss = w.row[r + at.SND_UNA] - w.window[r + LOSS_SEQ]
    between, rtt = max(since_loss, w.window[r + BETWEEN]), rtt_s(w, r)
    is_draft = w.row[at.OLIA_METRIC] == at.DRAFT
    return between * between / rtt if is_draft else between / (rtt * rtt)


@jit
def alpha(w: at.World, f: int) -> float:
    """Return +1/(n |C|) in C, -1/(n |M|) in M if C is not empty, else 0."""
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
    """Set w += (w/rtt^2) / (sum w/rtt)^2 + alpha/w for every segment.

    A window may shrink; SSTHRESH follows it, so that this does not start slow start.
    """
    total, cwnd = total_rate(w, f), w.window[f + at.CWND]
    grown = rate(w, f) / rtt_s(w, f) / (total * total) if total > 0.0 else 1.0 / cwnd
    w.window[f + at.CWND] = max(cwnd + acked * (grown + alpha(w, f) / cwnd), 1.0)
    w.window[f + at.SSTHRESH] = min(w.window[f + at.SSTHRESH], w.window[f + at.CWND])


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Halve as Reno and begin a new l."""
    w.window[f + BETWEEN] = w.row[f + at.SND_UNA] - w.window[f + LOSS_SEQ]
    w.window[f + LOSS_SEQ] = float(w.row[f + at.SND_UNA])
    reno.on_loss(w, f, now_ns)
