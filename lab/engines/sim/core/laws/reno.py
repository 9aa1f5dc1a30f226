"""Reno (RFC 5681, section 3.1): the window grows by one segment per round trip, and is halved after
a loss."""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `s` by 1/w for each of `acked` segments."""
    s.cwnd += acked / s.cwnd


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Set the window w of subflow `s`, and SSTHRESH, to max(w/2, 2)."""
    s.ssthresh = max(s.cwnd / 2, 2.0)
    s.cwnd = s.ssthresh
