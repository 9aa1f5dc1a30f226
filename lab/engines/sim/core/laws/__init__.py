"""Congestion control laws, one small file each, and the place where a subflow's law is looked up.

    on_ack(w, f, acked, now_ns)       `acked` more segments have arrived, outside recovery and while the window was full
    on_loss(w, f, now_ns)             a loss, at most once per window: set SSTHRESH, and CWND to it
    on_round(w, f, rtt_ns, samples)   a round trip is over, if the law has it: `rtt_ns` is the mean of its samples

`expected` lies over all of them but wVegas. A law keeps what it needs in LAW_1 to LAW_6 of the subflow's row of `w.window`, and finds its siblings with `siblings`.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import balia, cubic, expected, lia, olia, reno, wvegas

RENO, CUBIC, LIA, OLIA, BALIA, WVEGAS = range(6)
LAWS = {"reno": RENO, "cubic": CUBIC, "lia": LIA, "olia": OLIA, "balia": BALIA, "wvegas": WVEGAS}
MIN_WINDOW = 1.0  # segments


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Slow start up to the threshold, the same for every law (RFC 5681); what is left goes to the law."""
    law = w.row[f + at.LAW]
    if law == CUBIC:
        cubic.look_for_the_end_of_slow_start(w, f, now_ns)
    expected.end_slow_start(w, f)
    room = w.window[f + at.SSTHRESH] - w.window[f + at.CWND]
    if room > 0:
        grown = min(float(acked), room)
        w.window[f + at.CWND] += grown
        acked -= int(grown)
    if acked <= 0:
        return
    before = w.window[f + at.CWND]
    if law == CUBIC:
        cubic.on_ack(w, f, acked, now_ns)
    elif law == LIA:
        lia.on_ack(w, f, acked, now_ns)
    elif law == OLIA:
        olia.on_ack(w, f, acked, now_ns)
    elif law == BALIA:
        balia.on_ack(w, f, acked, now_ns)
    elif law == RENO:
        reno.on_ack(w, f, acked, now_ns)
    expected.hold_back(w, f, before)


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    """A loss event."""
    law = w.row[f + at.LAW]
    if law == CUBIC:
        cubic.on_loss(w, f, now_ns)
    elif law == OLIA:
        olia.on_loss(w, f, now_ns)
    elif law == BALIA:
        balia.on_loss(w, f, now_ns)
    elif law == WVEGAS:
        wvegas.on_loss(w, f, now_ns)
    else:
        reno.on_loss(w, f, now_ns)


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """A round trip outside recovery is over, and the window was full at its end."""
    if w.row[f + at.LAW] == WVEGAS:
        wvegas.on_round(w, f, rtt_ns, samples)
    else:
        expected.on_round(w, f, rtt_ns)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """The threshold as for a loss, then slow start from one segment (RFC 5681, section 3.1)."""
    on_loss(w, f, now_ns)
    w.window[f + at.CWND] = MIN_WINDOW
