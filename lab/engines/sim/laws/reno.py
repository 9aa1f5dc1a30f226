"""Reno (RFC 5681): one segment more per round trip, half after a loss."""

from __future__ import annotations

from lab.engines.sim.jit import jit
from lab.engines.sim.layout import CWND, SSTHRESH, World


@jit
def on_ack(w: World, f: int, acked: int, now_ns: int) -> None:
    """w += 1/w for every segment."""
    w.window[f + CWND] += acked / w.window[f + CWND]


@jit
def on_loss(w: World, f: int, now_ns: int) -> None:
    """w = max(w/2, 2)."""
    w.window[f + SSTHRESH] = max(w.window[f + CWND] / 2, 2.0)
    w.window[f + CWND] = w.window[f + SSTHRESH]
