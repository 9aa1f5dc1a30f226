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

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow

ALPHA, BETA, MU = 5.0, 1.0, 0.9
MIN_QUEUE = 2.0  # segments; otherwise a queue that stays empty would count as not smaller
MIN_WINDOW = 2.0


@jit
def segments_per_s(s: Subflow) -> float:
    """Return the expected rate of subflow `s` in segments/s, where each segment counts as a whole
    Ethernet frame. Return 0 if `s` has no expected rate, or if the scenario applies expected rates
    by pacing."""
    if s.connection.is_expected_by_window == 0:
        return 0.0
    return s.expected_bps / (8 * s.connection.frame_bytes)


@jit
def end_slow_start(s: Subflow) -> None:
    """End the slow start of subflow `s` if its rate (window / RTT) has reached its expected rate.
    To do so, lower SSTHRESH to the window."""
    rate = segments_per_s(s)
    if rate > 0.0 and s.cwnd * at.NS_PER_S / s.srtt_ns >= rate:  # 3
        s.ssthresh = min(s.ssthresh, s.cwnd)


@jit
def slow_growth(s: Subflow, before: float) -> None:
    """Reduce the last growth of the window of subflow `s` to 1/GROWTH_DIVISOR of it. `before` is
    the window before the growth, in segments. Do nothing if `s` has no expected rate."""
    if segments_per_s(s) > 0.0 and s.cwnd > before:
        growth = s.cwnd - before
        s.cwnd = before + growth / s.growth_divisor


@jit
def on_round(s: Subflow, rtt_ns: int, samples: int) -> None:
    """Limit the window of subflow `s` if its rate in the last round trip was above its expected
    rate (steps 1 and 2 of the module docstring). `rtt_ns` is the mean RTT of the round trip."""
    rate, base_ns = segments_per_s(s), s.base_rtt_ns
    if rate <= 0.0:
        return
    queue = s.cwnd * (rtt_ns - base_ns) / rtt_ns
    above = s.cwnd * at.NS_PER_S / rtt_ns > rate
    s.growth_divisor = ALPHA if above else 1.0  # 1, 2
    if above and queue >= MIN_QUEUE and queue >= BETA * s.last_round_queue:
        s.cwnd = max(MU * rate * base_ns / at.NS_PER_S, MIN_WINDOW)
        s.ssthresh = s.cwnd
    s.last_round_queue = queue
