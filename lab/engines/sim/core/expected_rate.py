"""S-MPTCP's flow control on the host (its Algorithm 5, as repaired), laid over any law that goes by losses.

Once per round trip, with t = w/rtt [segments/s] and q = w (rtt - base)/rtt segments in queues:
1) t above what is expected: the law's growth counts a fifth; if the queue has not shrunk, w = MU et base
2) else the law's growth counts in full
and for every acknowledgement
3) slow start ends at the threshold or at the rate that is expected
A loss is the law's own business.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

ALPHA, BETA, MU = 5.0, 1.0, 0.9
LEAST_QUEUE = 2.0  # segments: at 0 and 0 the queue has not shrunk either
LEAST_WINDOW = 2.0


@jit
def segments_per_s(w: at.World, f: int) -> float:
    """What is expected, of Ethernet frames; 0 if nothing is, or if it is held by pacing."""
    row = w.row
    if row[at.EXPECTED_BY_WINDOW] == 0:
        return 0.0
    return row[f + at.EXPECTED_BPS] / (8 * row[row[f + at.CONNECTION] + at.FRAME_BYTES])


@jit
def end_slow_start(w: at.World, f: int) -> None:
    """The threshold comes down to the window when the rate is what is expected."""
    window, rate = w.window, segments_per_s(w, f)
    if rate > 0.0 and window[f + at.CWND] * at.NS_PER_S / w.row[f + at.SRTT_NS] >= rate:  # 3
        window[f + at.SSTHRESH] = min(window[f + at.SSTHRESH], window[f + at.CWND])


@jit
def slow_growth(w: at.World, f: int, before: float) -> None:
    """The law has made the window grow from `before`: take back what does not count."""
    if segments_per_s(w, f) > 0.0 and w.window[f + at.CWND] > before:
        w.window[f + at.CWND] = (
            before + (w.window[f + at.CWND] - before) / w.window[f + at.GROWTH_DIVISOR]
        )


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """`rtt_ns` is the mean over the round."""
    window, rate, base_ns = w.window, segments_per_s(w, f), w.row[f + at.BASE_RTT_NS]
    if rate <= 0.0:
        return
    queue = window[f + at.CWND] * (rtt_ns - base_ns) / rtt_ns
    above = window[f + at.CWND] * at.NS_PER_S / rtt_ns > rate
    window[f + at.GROWTH_DIVISOR] = ALPHA if above else 1.0  # 1, 2
    if above and queue >= LEAST_QUEUE and queue >= BETA * window[f + at.LAST_ROUND_QUEUE]:
        window[f + at.CWND] = max(MU * rate * base_ns / at.NS_PER_S, LEAST_WINDOW)
        window[f + at.SSTHRESH] = window[f + at.CWND]
    window[f + at.LAST_ROUND_QUEUE] = queue
