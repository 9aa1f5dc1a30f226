"""Implement Reno (RFC 5681, section 3.1): one segment more per round trip, half after a loss."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Set w += 1/w for every segment."""
    w.window[f + at.CWND] += acked / w.window[f + at.CWND]


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """Set w = max(w/2, 2)."""
    w.window[f + at.SSTHRESH] = max(w.window[f + at.CWND] / 2, 2.0)
    w.window[f + at.CWND] = w.window[f + at.SSTHRESH]
