"""DCTCP (RFC 8257; Linux, tcp_dctcp.c of 6.12): the more of the segments of a round trip were
marked, the more the window is reduced.

1) The receiver says which segments were marked (`receiver.note_mark`).
2) Once per round trip, alpha moves by G = 1/16 towards the fraction of the segments that were
   marked in it. It begins at 1.
3) A mark reduces the window w to w (1 - alpha/2), once per round trip (`ecn`).

Otherwise it is Reno: growth, losses and timeouts. Without ECN it is nothing but Reno.

Where Linux differs from the RFC, this is Linux's: it counts segments, not bytes, alpha is a number
of 1/1024, a window is reduced by whole segments, and the acknowledgement that ends a round trip
counts for the next one.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws.reno import on_ack as on_ack
from lab.engines.sim.core.state import Subflow

ALL = 1024  # alpha if all segments are marked
G_LOG = 4  # G = 1 / 2^G_LOG


@jit
def begin(s: Subflow, now_ns: int) -> None:
    s.dctcp.alpha = ALL
    s.is_echoing = 0
    begin_round(s)


@jit
def begin_round(s: Subflow) -> None:
    s.dctcp.round_end = s.snd_nxt
    s.dctcp.delivered = s.dctcp.marked = 0


@jit
def count(s: Subflow, delivered: int, is_marked: int) -> None:
    """Count the segments of subflow `s` that an acknowledgement reports. It has `is_marked` 1 if
    they were marked. If it ends a round trip, update alpha first (dctcp_update_alpha)."""
    d = s.dctcp
    if s.snd_una >= d.round_end:
        part = d.alpha >> G_LOG
        d.alpha -= part if part > 0 else d.alpha
        d.alpha = min(ALL, d.alpha + (d.marked * (ALL >> G_LOG)) // max(1, d.delivered))
        begin_round(s)
    d.delivered += delivered
    d.marked += delivered * is_marked


@jit
def reduce(s: Subflow) -> None:
    """Reduce the window of subflow `s`, and SSTHRESH, because of a mark (dctcp_ssthresh)."""
    window = int(s.cwnd)
    s.ssthresh = max(float(window - window * s.dctcp.alpha // (2 * ALL)), 2.0)
    s.cwnd = s.ssthresh
