"""BBR's estimate of the rate that a policer allows (Linux, tcp_bbr.c, bbr_lt_bw_sampling).

A policer that has no tokens left drops what exceeds its rate, so the largest delivery rate is not
what the path can carry in the long run. An interval of 4 to 16 round trips begins and ends with a
loss. If a fifth as many segments are lost in it as are delivered, its mean rate counts. If the
rates of two such intervals are close, BBR sends at their mean, without probing, for 48 round trips.
"""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow

LEAST_ROUNDS, MOST_ROUNDS = 4, 16  # of an interval
HELD_ROUNDS = 48
LEAST_LOSS = 50 / 256  # segments lost by segments delivered
CLOSE, CLOSE_BPS = 1 / 8, 4000.0  # two rates that differ by no more are close
MS_NS = 1_000_000


@jit
def forget(s: Subflow) -> None:
    """Stop using and measuring a rate."""
    b = s.bbr
    b.policed_rate, b.is_policed, b.is_watching = 0.0, 0, 0
    begin_interval(s)


@jit
def begin_interval(s: Subflow) -> None:
    b = s.bbr
    b.watched_ns = s.delivery.delivered_ns // MS_NS * MS_NS
    b.watched_delivered, b.watched_lost = s.delivery.delivered, s.segments_lost
    b.watched_rounds = 0


@jit
def watch(s: Subflow, is_loss: bool, is_app_limited: bool) -> None:
    """Take a sample of the delivery rate into account, unless a rate is used already. `is_loss` is
    True if it shows lost segments."""
    b = s.bbr
    if b.is_policed == 1:
        return
    if b.is_watching == 0:
        if not is_loss:
            return
        begin_interval(s)
        b.is_watching = 1
    if is_app_limited:
        forget(s)
        return
    b.watched_rounds += b.starts_round
    if b.watched_rounds > MOST_ROUNDS:
        forget(s)
    elif b.watched_rounds >= LEAST_ROUNDS and is_loss:
        end_interval(s)


@jit
def end_interval(s: Subflow) -> None:
    """End the interval, if enough was lost in it."""
    b, d = s.bbr, s.delivery
    lost, delivered = s.segments_lost - b.watched_lost, d.delivered - b.watched_delivered
    interval_ns = d.delivered_ns // MS_NS * MS_NS - b.watched_ns
    if delivered == 0 or lost < LEAST_LOSS * delivered or interval_ns < MS_NS:
        return
    rate = delivered * at.NS_PER_S / interval_ns
    if b.policed_rate > 0 and is_close(s, rate, b.policed_rate):
        b.policed_rate, b.is_policed = (rate + b.policed_rate) / 2, 1
        b.pacing_gain, b.watched_rounds = 1.0, 0
        return
    b.policed_rate = rate
    begin_interval(s)


@jit
def is_close(s: Subflow, rate: float, other: float) -> bool:
    """Compare two rates in segments/s."""
    difference = abs(rate - other)
    bps = 8 * s.connection.segment_bytes * difference
    return difference <= CLOSE * other or bps <= CLOSE_BPS


@jit
def is_held_long_enough(s: Subflow) -> bool:
    """Count a round trip of PROBE_BW in which the rate is used. Return True after the last one."""
    b = s.bbr
    b.watched_rounds += b.is_policed * b.starts_round
    return b.is_policed == 1 and b.watched_rounds >= HELD_ROUNDS
