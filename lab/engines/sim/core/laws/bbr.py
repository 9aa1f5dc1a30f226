"""BBR version 1 (Cardwell et al., Communications of the ACM 60(2), 2017; Linux, tcp_bbr.c of 6.12):
send at the rate of the bottleneck, with about one bandwidth-delay product in flight.

Two filters describe the path: `rate` is the largest delivery rate of the last ten round trips, and
`min_rtt_ns` the smallest RTT of the last ten seconds. BDP is their product. The pacing rate is 0.99
of the rate times a gain, and the window is BDP times another gain. The phases set the gains:
1) STARTUP doubles the rate each round trip (gains 2.89), until it has grown by less than a quarter
   in three round trips.
2) DRAIN empties the queue of STARTUP, until no more than BDP is in flight.
3) PROBE_BW goes through eight pacing gains: 5/4 to find more rate, 3/4 to drain the queue that this
   has made, and six times 1, each for a smallest RTT. It begins at a random one, but 3/4. The gain
   of the window is 2.
4) PROBE_RTT, if the smallest RTT is ten seconds old: four segments in flight for 200 ms and a round
   trip, so that the queue empties.

Losses do not reduce rate or BDP. In the first round trip of a recovery, one segment is sent for
each that arrives, and the window of before is restored at the end. Segments that arrive in bunches
(delayed acknowledgements, WiFi) enlarge the window (bbr_update_ack_aggregation). If a policer
limits the path, its rate replaces the largest one (`policer`).
"""

from __future__ import annotations

from lab.engines.sim.core import delivery, path_model, policer
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Bbr, Subflow

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
HIGH_GAIN, DRAIN_GAIN, WINDOW_GAIN = 739 / 256, 88 / 256, 2.0  # 2/ln 2, and 1 by it
PACING_MARGIN = 0.99
PHASES = 8  # of PROBE_BW
MIN_RTT_NS, PROBE_RTT_NS = 10_000_000_000, 200_000_000
MIN_WINDOW = 4  # segments
MOST_EXTRA_S = 0.1
NOMINAL_RTT_NS = 1_000_000  # until there is a sample


@jit
def begin(s: Subflow, now_ns: int) -> None:
    """Start in STARTUP, with the RTT of the handshake."""
    b, d = s.bbr, s.delivery
    s.is_rate_based, s.ssthresh = 1, float(at.FOREVER)
    b.phase, b.pacing_gain, b.window_gain = STARTUP, HIGH_GAIN, HIGH_GAIN
    b.rounds, b.next_round, b.starts_round = 0, 0, 0
    path_model.forget_rates(b, 0.0)
    b.min_rtt_ns = s.base_rtt_ns if s.base_rtt_ns > 0 else at.FOREVER
    b.min_rtt_at_ns, b.probed_until_ns, b.has_probed_round = now_ns, 0, 0
    b.is_full, b.full_rate, b.full_rounds = 0, 0.0, 0
    b.cycle, b.cycle_ns = 0, 0
    b.mode_before, b.window_before, b.is_conserving, b.is_idle_restart = at.OPEN, 0, 0, 0
    b.bunch_ns, b.bunch, b.extra_1, b.extra_2 = now_ns, 0, 0, 0
    b.extra_rounds, b.extra_is_second = 0, 0
    d.delivered = d.delivered_ns = d.first_sent_ns = d.app_limited = 0
    policer.forget(s)
    b.has_seen_rtt = int(s.srtt_ns > 0)
    pace_by_rtt(s)


@jit
def pace_by_rtt(s: Subflow) -> None:
    rtt_ns = s.srtt_ns if s.srtt_ns > 0 else NOMINAL_RTT_NS
    s.pacing_rate = HIGH_GAIN * PACING_MARGIN * int(s.cwnd) * at.NS_PER_S / rtt_ns


@jit
def on_sample(s: Subflow, now_ns: int) -> None:
    """Update the model of the path, then pacing rate and window (bbr_main)."""
    path_model.update_rate(s)
    path_model.update_extra(s)
    if s.bbr.phase == PROBE_BW:
        if policer.is_held_long_enough(s):
            policer.forget(s)
            begin_probe_bw(s)
        elif is_next_phase(s):
            next_phase(s)
    path_model.check_full(s)
    check_drain(s)
    update_min_rtt(s, now_ns)
    update_gains(s.bbr)
    set_pacing_rate(s, s.bbr.pacing_gain)
    set_window(s)


@jit
def with_bursts(s: Subflow, segments: int) -> int:
    """Add what waits in both hosts because segments are sent and acknowledged several at a time."""
    segments += 3 * delivery.burst(s)
    segments += segments % 2
    return segments + 2 * int(s.bbr.phase == PROBE_BW and s.bbr.cycle == 0)


# --- phases


@jit
def is_next_phase(s: Subflow) -> bool:
    """Return True if the present pacing gain of PROBE_BW ends. 5/4 lasts until so much is in flight
    or segments are lost, and 3/4 at most until BDP is in flight."""
    b, d = s.bbr, s.delivery
    is_over = d.delivered_ns - b.cycle_ns > b.min_rtt_ns
    if b.pacing_gain == 1.0:
        return is_over
    in_flight = path_model.in_network(s, d.in_flight_before)
    if b.pacing_gain > 1.0:
        wanted = with_bursts(s, path_model.bdp(b, b.best_1, b.pacing_gain))
        return is_over and (d.lost > 0 or in_flight >= wanted)
    return is_over or in_flight <= with_bursts(s, path_model.bdp(b, b.best_1, 1.0))


@jit
def next_phase(s: Subflow) -> None:
    s.bbr.cycle = (s.bbr.cycle + 1) % PHASES
    s.bbr.cycle_ns = s.delivery.delivered_ns


@jit
def begin_probe_bw(s: Subflow) -> None:
    s.bbr.phase = PROBE_BW
    s.bbr.cycle = PHASES - 1 - random_below(s.host_random, PHASES - 1)
    next_phase(s)


@jit
def check_drain(s: Subflow) -> None:
    b = s.bbr
    if b.phase == STARTUP and b.is_full == 1:
        b.phase = DRAIN
        s.ssthresh = float(with_bursts(s, path_model.bdp(b, b.best_1, 1.0)))
    if b.phase == DRAIN and path_model.in_network(s, s.pipe) <= with_bursts(
        s, path_model.bdp(b, b.best_1, 1.0)
    ):
        begin_probe_bw(s)


@jit
def update_min_rtt(s: Subflow, now_ns: int) -> None:
    """Give the sample of the RTT to the filter, and begin and end PROBE_RTT."""
    b, d = s.bbr, s.delivery
    is_old = now_ns > b.min_rtt_at_ns + MIN_RTT_NS
    if d.rtt_ns >= 0 and (d.rtt_ns <= b.min_rtt_ns or (is_old and d.is_delayed == 0)):
        b.min_rtt_ns, b.min_rtt_at_ns = d.rtt_ns, now_ns
    if is_old and b.is_idle_restart == 0 and b.phase != PROBE_RTT:
        b.phase = PROBE_RTT
        save_window(s)
        b.probed_until_ns = 0
    if b.phase == PROBE_RTT:
        d.app_limited = max(1, d.delivered + s.pipe)
        if b.probed_until_ns == 0 and s.pipe <= MIN_WINDOW:
            b.probed_until_ns = now_ns + PROBE_RTT_NS
            b.has_probed_round, b.next_round = 0, d.delivered
        elif b.probed_until_ns > 0:
            if b.starts_round == 1:
                b.has_probed_round = 1
            if b.has_probed_round == 1:
                check_probe_rtt_done(s, now_ns)
    if d.interval_ns > 0 and d.count > 0:
        b.is_idle_restart = 0


@jit
def check_probe_rtt_done(s: Subflow, now_ns: int) -> None:
    b = s.bbr
    if b.probed_until_ns == 0 or now_ns <= b.probed_until_ns:
        return
    b.min_rtt_at_ns = now_ns
    s.cwnd = max(s.cwnd, float(b.window_before))
    if b.is_full == 1:
        begin_probe_bw(s)
    else:
        b.phase = STARTUP


@jit
def update_gains(b: Bbr) -> None:
    if b.phase == STARTUP:
        b.pacing_gain, b.window_gain = HIGH_GAIN, HIGH_GAIN
    elif b.phase == DRAIN:
        b.pacing_gain, b.window_gain = DRAIN_GAIN, HIGH_GAIN
    elif b.phase == PROBE_BW:
        if b.is_policed == 1 or b.cycle > 1:
            b.pacing_gain = 1.0
        else:
            b.pacing_gain = 1.25 if b.cycle == 0 else 0.75
        b.window_gain = WINDOW_GAIN
    else:
        b.pacing_gain = b.window_gain = 1.0


# --- pacing rate and window


@jit
def set_pacing_rate(s: Subflow, gain: float) -> None:
    """Set the pacing rate. In STARTUP it does not fall."""
    b = s.bbr
    if b.has_seen_rtt == 0 and s.srtt_ns > 0:
        b.has_seen_rtt = 1
        pace_by_rtt(s)
    rate = path_model.path_rate(b) * gain * PACING_MARGIN
    if b.is_full == 1 or rate > s.pacing_rate:
        s.pacing_rate = max(rate, 1.0)


@jit
def save_window(s: Subflow) -> None:
    b, window = s.bbr, int(s.cwnd)
    recovers = b.mode_before in (at.RECOVERY, at.TIMED_OUT)
    if not recovers and b.phase != PROBE_RTT:
        b.window_before = window
    else:
        b.window_before = max(b.window_before, window)


@jit
def in_recovery(s: Subflow, window: int) -> int:
    """Return the window as the beginning, the first round trip and the end of a recovery change it.
    Segments that are lost leave the window."""
    b, d = s.bbr, s.delivery
    if d.lost > 0:
        window = max(window - d.lost, 1)
    recovered = b.mode_before in (at.RECOVERY, at.TIMED_OUT)
    if s.mode == at.RECOVERY and b.mode_before != at.RECOVERY:
        b.is_conserving, b.next_round = 1, d.delivered
        window = s.pipe + d.acked
    elif recovered and s.mode not in (at.RECOVERY, at.TIMED_OUT):
        window = max(window, b.window_before)
        b.is_conserving = 0
    b.mode_before = s.mode
    return max(window, s.pipe + d.acked) if b.is_conserving == 1 else window


@jit
def set_window(s: Subflow) -> None:
    """Let the window grow towards BDP times its gain, or fall to it."""
    b, d = s.bbr, s.delivery
    window = int(s.cwnd)
    if d.acked > 0:
        window = in_recovery(s, window)
        if b.is_conserving == 0:
            window = towards_target(s, window)
    if b.phase == PROBE_RTT:
        window = min(window, MIN_WINDOW)
    s.cwnd = float(window)


@jit
def towards_target(s: Subflow, window: int) -> int:
    b, d = s.bbr, s.delivery
    target = path_model.bdp(b, path_model.path_rate(b), b.window_gain)
    if b.is_full == 1:
        target += min(max(b.extra_1, b.extra_2), int(path_model.path_rate(b) * MOST_EXTRA_S))
    target = with_bursts(s, target)
    if b.is_full == 1:
        window = min(window + d.acked, target)
    elif window < target or d.delivered < path_model.INITIAL_WINDOW:
        window += d.acked
    return max(window, MIN_WINDOW)


# --- events


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    """Remember the window. Nothing is reduced."""
    save_window(s)


@jit
def on_timeout(s: Subflow) -> None:
    b = s.bbr
    b.mode_before, b.full_rate, b.starts_round = at.TIMED_OUT, 0.0, 1
    policer.watch(s, True, False)


@jit
def on_undo(s: Subflow) -> None:
    s.bbr.full_rate, s.bbr.full_rounds = 0.0, 0
    policer.forget(s)


@jit
def on_restart(s: Subflow, now_ns: int) -> None:
    """The application had nothing to send for a while: do not send a burst now."""
    b, d = s.bbr, s.delivery
    if d.app_limited == 0:
        return
    b.is_idle_restart = 1
    b.bunch_ns, b.bunch = now_ns, 0
    if b.phase == PROBE_BW:
        set_pacing_rate(s, 1.0)
    elif b.phase == PROBE_RTT:
        check_probe_rtt_done(s, now_ns)
