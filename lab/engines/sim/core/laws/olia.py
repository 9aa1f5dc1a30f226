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

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import reno
from lab.engines.sim.core.laws.siblings import can_send, rate, rtt_s, total_rate
from lab.engines.sim.core.state import Subflow

SAME = 1.0 - 1e-9  # rounding must not break a tie


@jit
def path_quality(r: Subflow) -> float:
    """Return how good the path of subflow `r` is: l/rtt^2 or, if the scenario chooses the draft,
    l^2/rtt. l is the number of segments acknowledged between the last two losses or since the last
    loss, whichever is larger."""
    since_loss = r.snd_una - r.law.loss_seq
    between, rtt = max(since_loss, r.law.between_losses), rtt_s(r)
    is_draft = r.connection.olia_metric == at.DRAFT
    return between * between / rtt if is_draft else between / (rtt * rtt)


@jit
def alpha(s: Subflow) -> float:
    """Return OLIA's alpha of subflow `s`. The module docstring defines the sets C and M; n is the
    number of subflows that can send.

    - `s` is in C (one of the best paths, but not the largest window): +1/(n |C|)
    - `s` is in M (the largest window), and C is not empty: -1/(n |M|)
    - otherwise: 0
    """
    n, largest, best = 0, 0, 0.0
    for k in range(s.connection.count):
        r = s.connection.subflows[k]
        if can_send(r):
            n += 1
            largest = max(largest, int(r.cwnd))
            best = max(best, path_quality(r))
    in_m, in_c, sign = 0, 0, 0
    for k in range(s.connection.count):
        r = s.connection.subflows[k]
        if can_send(r) and int(r.cwnd) == largest:
            in_m, sign = in_m + 1, -1 if r == s else sign
        elif can_send(r) and path_quality(r) >= best * SAME:
            in_c, sign = in_c + 1, 1 if r == s else sign
    if in_c == 0 or sign == 0:
        return 0.0
    return 1.0 / (n * in_c) if sign > 0 else -1.0 / (n * in_m)


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Change the window w of subflow `s` by (w/rtt^2) / (sum w/rtt)^2 + alpha/w for each of `acked`
    segments. Here rtt is the smoothed RTT, and the sum is over all subflows of the connection.

    The window may shrink. SSTHRESH is then lowered to the window, so that slow start does not
    begin.
    """
    total, cwnd = total_rate(s), s.cwnd
    grown = rate(s) / rtt_s(s) / (total * total) if total > 0.0 else 1.0 / cwnd
    s.cwnd = max(cwnd + acked * (grown + alpha(s) / cwnd), 1.0)
    s.ssthresh = min(s.ssthresh, s.cwnd)


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Halve the window of subflow `s` as Reno does, and begin a new count of the segments
    acknowledged between two losses."""
    s.law.between_losses = s.snd_una - s.law.loss_seq
    s.law.loss_seq = float(s.snd_una)
    reno.on_loss(s, now_ns)
