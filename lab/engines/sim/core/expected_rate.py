"""Apply S-MPTCP's flow control on the host (its Algorithm 5, as repaired) to a congestion control
law that reacts to losses.

Once per round trip, with t = w/rtt [segments/s] and q = w (rtt - base)/rtt segments in queues:
1) t above the expected rate: a fifth of the law's growth counts; if the queue has not shrunk, w =
   MU et base
2) else the law's growth counts in full
and for every acknowledgement
3) slow start ends at SSTHRESH or at the expected rate
A loss is left to the law.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

ALPHA, BETA, MU = 5.0, 1.0, 0.9
MIN_QUEUE = 2.0  # segments: a queue that was and is empty has not shrunk either
MIN_WINDOW = 2.0


@jit
def segments_per_s(w: at.World, f: int) -> float:
    """Return the expected rate in segments/s, counted as frames; 0 without one or if pacing applies
    it."""
    row = w.row
    if row[at.EXPECTED_BY_WINDOW] == 0:
        return 0.0
    return row[f + at.EXPECTED_BPS] / (8 * row[row[f + at.CONNECTION] + at.FRAME_BYTES])


@jit
def end_slow_start(w: at.World, f: int) -> None:
    """Set SSTHRESH to the window when the rate has reached the expected one."""
    window, rate = w.window, segments_per_s(w, f)
    if rate > 0.0 and window[f + at.CWND] * at.NS_PER_S / w.row[f + at.SRTT_NS] >= rate:  # 3
        window[f + at.SSTHRESH] = min(window[f + at.SSTHRESH], window[f + at.CWND])


@jit
def slow_growth(w: at.World, f: int, before: float) -> None:
    """Reduce the growth of a window from `before` to the part that counts."""
    if segments_per_s(w, f) > 0.0 and w.window[f + at.CWND] > before:
        growth = w.window[f + at.CWND] - before
        w.window[f + at.CWND] = before + growth / w.window[f + at.GROWTH_DIVISOR]


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """Compare a round trip's rate with the expected one; `rtt_ns` is the mean of its samples."""
    window, rate, base_ns = w.window, segments_per_s(w, f), w.row[f + at.BASE_RTT_NS]
    if rate <= 0.0:
        return
    queue = window[f + at.CWND] * (rtt_ns - base_ns) / rtt_ns
    above = window[f + at.CWND] * at.NS_PER_S / rtt_ns > rate
    window[f + at.GROWTH_DIVISOR] = ALPHA if above else 1.0  # 1, 2
    if above and queue >= MIN_QUEUE and queue >= BETA * window[f + at.LAST_ROUND_QUEUE]:
        window[f + at.CWND] = max(MU * rate * base_ns / at.NS_PER_S, MIN_WINDOW)
        window[f + at.SSTHRESH] = window[f + at.CWND]
    window[f + at.LAST_ROUND_QUEUE] = queue
