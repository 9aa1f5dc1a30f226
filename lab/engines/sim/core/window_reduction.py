"""Reduce the window of a subflow during a loss recovery, or after a mark (PRR, RFC 9937; Linux,
tcp_cwnd_reduction).

The window does not fall at once. Each acknowledgement sets it to the segments in flight and those
that may be sent now:
1) While more are in flight than the reduced window, as many are sent as have arrived, times the
   reduced window over the one before.
2) With fewer in flight, as many are sent as have arrived, and one more if the acknowledgement is
   cumulative and shows no further loss. So segments in a row that were lost are repeated as in slow
   start, one round trip after another, and not in one burst.

When the recovery is over, the window is the reduced one.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow


@jit
def begin(s: Subflow, before: float) -> None:
    """Begin with the window that the congestion control of subflow `s` has just set after a loss or
    a mark; `before` is the one before."""
    aim(s, before)
    s.reduction_from = max(int(before), 1)
    s.reduction_delivered = s.reduction_sent = 0


@jit
def aim(s: Subflow, before: float) -> None:
    """Reduce towards the window that the congestion control of subflow `s` has just set. Until then
    the window is again what it was, `before`."""
    s.reduced_cwnd, s.cwnd = s.cwnd, before


@jit
def go_on(s: Subflow, acked: int, lost: int, advanced: bool) -> None:
    """Set the window of subflow `s` after an acknowledgement of `acked` segments that shows that
    `lost` others are lost. `advanced` is True if it is cumulative. A subflow that sends at a rate
    keeps its window."""
    if s.is_rate_based == 1 or acked <= 0:
        return
    s.reduction_delivered += acked
    delivered, sent, target = s.reduction_delivered, s.reduction_sent, int(s.reduced_cwnd)
    room = target - s.pipe
    if room < 0:  # 1
        may_send = -(-target * delivered // s.reduction_from) - sent
    else:  # 2
        slow_start = int(advanced and lost == 0)
        may_send = min(room, max(delivered - sent, acked) + slow_start)
    s.cwnd = float(s.pipe + max(may_send, int(sent == 0)))


@jit
def end(s: Subflow) -> None:
    if s.is_rate_based == 0:
        s.cwnd = s.reduced_cwnd
