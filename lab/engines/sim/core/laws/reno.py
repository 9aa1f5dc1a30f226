"""Reno (RFC 5681, section 3.1): the window grows by one segment per round trip, and is halved after
a loss."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Grow the window w of subflow `f` by 1/w for each of `acked` segments."""
    w.window[f + at.CWND] += acked / w.window[f + at.CWND]


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Set the window w of subflow `f`, and SSTHRESH, to max(w/2, 2)."""
    w.window[f + at.SSTHRESH] = max(w.window[f + at.CWND] / 2, 2.0)
    w.window[f + at.CWND] = w.window[f + at.SSTHRESH]
