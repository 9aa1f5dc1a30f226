"""OLIA, opportunistic linked increases (draft-khalili-mptcp-congestion-control-05): windows move from the largest to the best paths.

M  the subflows with the largest window            l  segments between the last two losses, or since the last if more
B  the best: largest l/rtt^2 (kernel) or l^2/rtt   C  those of B that are not in M
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno, siblings

LOST_AT, BETWEEN = (
    at.LAW_1,
    at.LAW_2,
)  # the first unacknowledged segment at the last loss; l between the last two
SAME = 1.0 - 1e-9  # rounding must not break a tie


@jit
def quality(w: at.World, r: int) -> float:
    """How good a subflow's path is: what it brings through between two losses."""
    between, rtt_s = (
        max(w.row[r + at.SND_UNA] - w.window[r + LOST_AT], w.window[r + BETWEEN]),
        siblings.rtt_s(w, r),
    )
    return (
        between * between / rtt_s
        if w.row[at.OLIA_METRIC] == at.DRAFT
        else between / (rtt_s * rtt_s)
    )


@jit
def alpha(w: at.World, f: int) -> float:
    """+1/(n |C|) in C, -1/(n |M|) in M if C is not empty, else 0."""
    n, largest, best = 0, 0, 0.0
    for r in range(siblings.first(w, f), siblings.end(w, f), at.SUB_FIELDS):
        if siblings.counts(w, r):
            n, largest, best = (
                n + 1,
                max(largest, int(w.window[r + at.CWND])),
                max(best, quality(w, r)),
            )
    in_m, in_c, mine = 0, 0, 0
    for r in range(siblings.first(w, f), siblings.end(w, f), at.SUB_FIELDS):
        if siblings.counts(w, r) and int(w.window[r + at.CWND]) == largest:
            in_m, mine = in_m + 1, -1 if r == f else mine
        elif siblings.counts(w, r) and quality(w, r) >= best * SAME:
            in_c, mine = in_c + 1, 1 if r == f else mine
    if in_c == 0 or mine == 0:
        return 0.0
    return 1.0 / (n * in_c) if mine > 0 else -1.0 / (n * in_m)


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """w += (w/rtt^2) / (sum w/rtt)^2 + alpha/w for every segment; it may shrink, which must not look like slow start."""
    total, cwnd = siblings.total_rate(w, f), w.window[f + at.CWND]
    grown = (
        siblings.rate(w, f) / siblings.rtt_s(w, f) / (total * total) if total > 0.0 else 1.0 / cwnd
    )
    w.window[f + at.CWND] = max(cwnd + acked * (grown + alpha(w, f) / cwnd), 1.0)
    w.window[f + at.SSTHRESH] = min(w.window[f + at.SSTHRESH], w.window[f + at.CWND])


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """As Reno; a new l begins."""
    w.window[f + BETWEEN] = w.row[f + at.SND_UNA] - w.window[f + LOST_AT]
    w.window[f + LOST_AT] = float(w.row[f + at.SND_UNA])
    reno.on_loss(w, f, now_ns)
