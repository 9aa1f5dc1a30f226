"""Limit the window of a subflow to the expected rate that a strategy has set. This is S-MPTCP's
flow control on the host (Algorithm 5, with corrections), for congestion controls that react to
losses.

Symbols: w is the window in segments, rtt the mean RTT of a round trip, base the lowest RTT, and et
the expected rate in segments/s. After each round trip, t = w/rtt is the rate in segments/s, and q =
w (rtt - base)/rtt is the number of segments in queues.
1) If t > et, only a fifth of the growth by the congestion control counts. If q has also not
   decreased since the last round trip, w becomes MU et base.
2) If t <= et, the growth counts in full.
3) For every acknowledgement: slow start ends at SSTHRESH, or when the rate reaches et.

After a loss, only the congestion control reduces the window.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

ALPHA, BETA, MU = 5.0, 1.0, 0.9
MIN_QUEUE = 2.0  # segments; otherwise a queue that stays empty would count as not smaller
MIN_WINDOW = 2.0


@jit
def segments_per_s(w: at.World, f: int) -> float:
    """Return the expected rate of subflow `f` in segments/s, where each segment counts as a whole
    Ethernet frame. Return 0 if `f` has no expected rate, or if the scenario applies expected rates
    by pacing."""
    row = w.row
    if row[at.EXPECTED_BY_WINDOW] == 0:
        return 0.0
    return row[f + at.EXPECTED_BPS] / (8 * row[row[f + at.CONNECTION] + at.FRAME_BYTES])


@jit
def end_slow_start(w: at.World, f: int) -> None:
    """End the slow start of subflow `f` if its rate (window / RTT) has reached its expected rate.
    To do so, lower SSTHRESH to the window."""
    window, rate = w.window, segments_per_s(w, f)
    if rate > 0.0 and window[f + at.CWND] * at.NS_PER_S / w.row[f + at.SRTT_NS] >= rate:  # 3
        window[f + at.SSTHRESH] = min(window[f + at.SSTHRESH], window[f + at.CWND])


@jit
def slow_growth(w: at.World, f: int, before: float) -> None:
    """Reduce the last growth of the window of subflow `f` to 1/GROWTH_DIVISOR of it. `before` is
    the window before the growth, in segments. Do nothing if `f` has no expected rate."""
    if segments_per_s(w, f) > 0.0 and w.window[f + at.CWND] > before:
        growth = w.window[f + at.CWND] - before
        w.window[f + at.CWND] = before + growth / w.window[f + at.GROWTH_DIVISOR]


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """Limit the window of subflow `f` if its rate in the last round trip was above its expected
    rate (steps 1 and 2 of the module docstring). `rtt_ns` is the mean RTT of the round trip."""
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
