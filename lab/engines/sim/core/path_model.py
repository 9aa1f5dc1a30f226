"""BBR's model of the path (Linux, tcp_bbr.c): what the samples of the delivery rate say of it.

`best_1` is the largest delivery rate of the last RATE_ROUNDS round trips. Its product with the
smallest RTT is BDP. If a policer limits the path, its rate replaces `best_1` (`policer`). `extra_1`
and `extra_2` are how many more segments arrive in a bunch than the rate explains
(bbr_update_ack_aggregation).
"""

from __future__ import annotations

from lab.engines.sim.core import delivery, policer
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Bbr, Subflow

RATE_ROUNDS = 10
INITIAL_WINDOW = 10  # segments
FULL_GROWTH, FULL_ROUNDS = 1.25, 3
EXTRA_ROUNDS, RESET_BUNCH = 5, 1 << 20


@jit
def forget_rates(b: Bbr, rate: float) -> None:
    b.best_1 = b.best_2 = b.best_3 = rate
    b.best_1_round = b.best_2_round = b.best_3_round = b.rounds


@jit
def path_rate(b: Bbr) -> float:
    """Return the rate of the path in segments/s."""
    return b.policed_rate if b.is_policed == 1 else b.best_1


@jit
def update_rate(s: Subflow) -> None:
    """Give the sample of the delivery rate to the filter, and see whether a round trip ends: a
    segment is acknowledged that was sent after the beginning of the round trip."""
    b, d = s.bbr, s.delivery
    b.starts_round = 0
    if d.interval_ns <= 0:
        return
    if d.prior_delivered >= b.next_round:
        b.next_round = d.delivered
        b.rounds += 1
        b.starts_round, b.is_conserving = 1, 0
    policer.watch(s, d.lost > 0, d.is_app_limited == 1)
    rate = d.count * at.NS_PER_S / d.interval_ns
    if d.is_app_limited == 0 or rate >= b.best_1:
        filter_rate(b, rate)


@jit
def filter_rate(b: Bbr, rate: float) -> None:
    """Set `best_1` to the largest rate of the last RATE_ROUNDS round trips. `best_2` and `best_3`
    are the largest ones since then (lib/win_minmax.c)."""
    now = b.rounds
    if rate >= b.best_1 or now - b.best_3_round > RATE_ROUNDS:
        forget_rates(b, rate)
        return
    if rate >= b.best_2:
        b.best_2 = b.best_3 = rate
        b.best_2_round = b.best_3_round = now
    elif rate >= b.best_3:
        b.best_3, b.best_3_round = rate, now
    age = now - b.best_1_round
    if age > RATE_ROUNDS:
        shift_rates(b, rate)
        if now - b.best_1_round > RATE_ROUNDS:
            shift_rates(b, rate)
    elif b.best_2_round == b.best_1_round and age > RATE_ROUNDS // 4:
        b.best_2 = b.best_3 = rate
        b.best_2_round = b.best_3_round = now
    elif b.best_3_round == b.best_2_round and age > RATE_ROUNDS // 2:
        b.best_3, b.best_3_round = rate, now


@jit
def shift_rates(b: Bbr, rate: float) -> None:
    b.best_1, b.best_1_round = b.best_2, b.best_2_round
    b.best_2, b.best_2_round = b.best_3, b.best_3_round
    b.best_3, b.best_3_round = rate, b.rounds


@jit
def check_full(s: Subflow) -> None:
    """Find out whether STARTUP has filled the path."""
    b = s.bbr
    if b.is_full == 1 or b.starts_round == 0 or s.delivery.is_app_limited == 1:
        return
    if b.best_1 >= b.full_rate * FULL_GROWTH:
        b.full_rate, b.full_rounds = b.best_1, 0
        return
    b.full_rounds += 1
    b.is_full = int(b.full_rounds >= FULL_ROUNDS)


@jit
def update_extra(s: Subflow) -> None:
    """Measure how many more segments arrive in a bunch than the rate explains. The largest number
    of the last five to ten round trips counts."""
    b, d = s.bbr, s.delivery
    if d.acked <= 0 or d.interval_ns <= 0:
        return
    if b.starts_round == 1:
        b.extra_rounds += 1
        if b.extra_rounds >= EXTRA_ROUNDS:
            b.extra_rounds, b.extra_is_second = 0, 1 - b.extra_is_second
            if b.extra_is_second == 1:
                b.extra_2 = 0
            else:
                b.extra_1 = 0
    expected = int(path_rate(b) * (d.delivered_ns - b.bunch_ns) / at.NS_PER_S)
    if b.bunch <= expected or b.bunch + d.acked >= RESET_BUNCH:
        b.bunch, b.bunch_ns, expected = 0, d.delivered_ns, 0
    b.bunch += d.acked
    extra = min(b.bunch - expected, int(s.cwnd))
    if b.extra_is_second == 1:
        b.extra_2 = max(b.extra_2, extra)
    else:
        b.extra_1 = max(b.extra_1, extra)


@jit
def bdp(b: Bbr, rate: float, gain: float) -> int:
    """Return BDP at `rate` in segments/s, times `gain`, in segments, rounded up."""
    if b.min_rtt_ns == at.FOREVER:
        return INITIAL_WINDOW
    segments = rate * b.min_rtt_ns / at.NS_PER_S * gain
    return int(segments) + int(segments > int(segments))


@jit
def in_network(s: Subflow, in_flight: int) -> int:
    """Return how many segments will be in flight when the next burst is sent."""
    b, now_ns = s.bbr, s.delivery.delivered_ns
    wait_ns = max(0, s.paced_until_ns - now_ns)
    if b.pacing_gain > 1.0:
        in_flight += delivery.burst(s)
    return max(0, in_flight - int(path_rate(b) * wait_ns / at.NS_PER_S))
