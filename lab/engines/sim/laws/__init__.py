"""Congestion control laws, one small file each, and the place where a subflow's law is looked up.

    on_ack(w, f, acked, now_ns)     `acked` more segments have arrived, outside recovery and while the window was full
    on_loss(w, f, now_ns)           a loss, at most once per window: set SSTHRESH, and CWND to it

A law keeps what it needs in LAW_1 to LAW_6 of the subflow's row of `w.window`. The siblings of subflow f begin at
`w.conn[c + FIRST]` with `w.conn[c + COUNT]` of them, SUB_FIELDS apart, and c = `w.sub[f + OF_CONNECTION]`.
"""

from __future__ import annotations

from lab.engines.sim import layout as at
from lab.engines.sim.jit import jit
from lab.engines.sim.laws import cubic, reno

RENO, CUBIC = range(2)
LAWS = {"reno": RENO, "cubic": CUBIC}
MIN_WINDOW = 1.0  # segments


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Slow start up to the threshold, the same for every law (RFC 5681); what is left goes to the law."""
    room = w.window[f + at.SSTHRESH] - w.window[f + at.CWND]
    if room > 0:
        grown = min(float(acked), room)
        w.window[f + at.CWND] += grown
        acked -= int(grown)
    if acked <= 0:
        return
    if w.sub[f + at.LAW] == CUBIC:
        cubic.on_ack(w, f, acked, now_ns)
    else:
        reno.on_ack(w, f, acked, now_ns)


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """A loss event."""
    if w.sub[f + at.LAW] == CUBIC:
        cubic.on_loss(w, f, now_ns)
    else:
        reno.on_loss(w, f, now_ns)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """The threshold as for a loss, then slow start from one segment (RFC 5681, section 3.1)."""
    on_loss(w, f, now_ns)
    w.window[f + at.CWND] = MIN_WINDOW
