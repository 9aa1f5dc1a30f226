"""Handle acknowledgements and timeouts at the sender of a subflow.

A subflow numbers its transmissions from 0, retransmissions included.
- Selective acknowledgements (RFC 2018 and 6675): each acknowledgement says how many segments have
  arrived, and which transmission caused it.
- Loss detection (RFC 8985): a segment is lost if a segment transmitted at least three transmissions
  later has arrived. During loss recovery, one transmission later is enough. Lost retransmissions
  are found in the same way. These rules hold until the sender sees that packets overtake others
  (`reordering`).
- Loss recovery (RFC 6582): the window is reduced once per recovery (`window_reduction`). It ends
  when the segments before RECOVER are acknowledged. Marks reduce the window, too (`ecn`). The
  reduction is undone if all that counted as lost was only late.
- Timeouts (RFC 6298): `round_trips` computes the timeout. A timeout is undone if an acknowledgement
  shows that the segments were only late (RFC 4015 and 5682; Linux, tcp_try_undo_loss).
"""

from __future__ import annotations

from lab.engines.sim.core import (
    congestion,
    delivery,
    dispatch,
    ecn,
    events,
    reordering,
    round_trips,
    sender,
    tail_loss_probe,
    window_reduction,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import dctcp
from lab.engines.sim.core.state import Packet, Segment, Subflow, World, segment, transmission

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
MAX_BACKOFF = 10  # doublings of the RTO


@jit
def mark_arrived(s: Subflow, seq: int, state: int) -> int:
    """Record at the sender of subflow `s` that segment `seq` has arrived. Return 1 if the sender
    did not know this before, else 0.

    `state` is SACKED for a selective acknowledgement. It is UNSENT for a cumulative
    acknowledgement, which frees the segment's entry in the ring buffer.
    """
    slot = segment(s, seq)
    before = slot.state
    if state == at.UNSENT:
        slot.arrival = 0
    if before == at.IN_FLIGHT:
        s.pipe -= 1
    elif before == at.LOST:
        s.lost -= 1
    slot.state = state
    if before == at.SACKED:
        return 0
    delivery.note(s, slot.transmission)
    return 1


@jit
def mark_lost(s: Subflow, slot: Segment) -> None:
    """Mark a segment that subflow `s` has in flight as lost, so that it is retransmitted. `slot` is
    the segment's entry in the ring."""
    slot.state = at.LOST
    s.pipe -= 1
    s.lost += 1
    s.losses_to_prove += 1
    s.segments_lost += 1


@jit
def detect_losses(s: Subflow, number: int, arrivals: int, now_ns: int) -> tuple[int, int]:
    """Mark the segments of subflow `s` that are lost, now that its transmission `number` has
    arrived (RFC 8985). Return how many segments are lost, and how many others are found to have
    arrived.

    The threshold is 1 during loss recovery and after a timeout, and if the arrival is a tail loss
    probe, which was sent long after all others. Otherwise it is 3, or less if few segments are in
    flight. A segment in flight is lost if the number of its last transmission is
    smaller than `number` by at least the threshold. Once packets have overtaken others, its time
    decides (`reordering`).

    A segment that has reached the receiver does not count as lost if only its acknowledgement was.
    `arrivals` is how many segments the receiver had got when it sent the present acknowledgement.
    """
    threshold, is_probe = 1, s.probe_end > 0 and number == s.transmissions - 1
    if (s.mode == at.OPEN or s.mode == at.REDUCED) and not is_probe:
        threshold = min(DUP_THRESHOLD, max(1, sender.flight_size(s) - 1))
    last = number - threshold
    if s.is_reordering == 1:
        last = s.newest_arrived - 1
    lost, arrived = 0, 0
    while s.loss_scanned <= last:
        k = s.loss_scanned
        if reordering.is_missing(s, k):
            seq = transmission(s, k).seq
            slot = segment(s, seq)
            if 0 < slot.arrival <= arrivals:
                arrived += mark_arrived(s, seq, at.SACKED)
            elif s.is_reordering == 1 and reordering.lost_at_ns(s, k) > now_ns:
                break
            else:
                mark_lost(s, slot)
                s.lost_hint = min(s.lost_hint, seq)
                lost += 1
        s.loss_scanned = k + 1
    return lost, arrived


@jit
def enter_recovery(s: Subflow, now_ns: int) -> None:
    """Begin to recover from a loss, unless subflow `s` does already."""
    if s.mode == at.RECOVERY or s.mode == at.TIMED_OUT:
        return
    s.cwnd_before = s.ssthresh_before = 0.0  # after a mark, nothing is undone
    if s.mode == at.OPEN:
        s.cwnd_before = s.cwnd
        s.ssthresh_before = s.ssthresh
        congestion.on_loss(s, now_ns)
        window_reduction.begin(s, s.cwnd_before)
    elif s.connection.is_dctcp == 1:
        before = s.cwnd
        congestion.on_loss(s, now_ns)  # Linux, dctcp_state
        window_reduction.aim(s, before)
    s.mode, s.probe_end = at.RECOVERY, 0
    s.recover = s.snd_nxt


@jit
def wait_for_late(w: World, s: Subflow, now_ns: int) -> bool:
    """If segments may only be late, let the timer expire when they count as lost. Return whether
    there are any."""
    until_ns = reordering.wait_until_ns(s)
    if until_ns > 0:
        s.timer_is_for = at.REORDERING
        events.start_timer(w, s.timer, max(now_ns, min(until_ns, now_ns + s.rto_ns)))
    return until_ns > 0


@jit
def on_reordering_timer(w: World, s: Subflow, now_ns: int) -> None:
    """Mark the segments of subflow `s` as lost that are too late (Linux, tcp_rack_reo_timeout)."""
    lost, _arrived = detect_losses(s, s.newest_arrived, s.arrivals_known, now_ns)
    if lost > 0:
        was_open = s.mode == at.OPEN
        enter_recovery(s, now_ns)
        if was_open:
            window_reduction.go_on(s, 1, lost, False)
    if not wait_for_late(w, s, now_ns):
        sender.restart_rto(w, s, now_ns)


@jit
def end_round(s: Subflow, limited: bool, now_ns: int) -> None:
    """End a round trip of subflow `s` and begin the next one. Give the mean RTT of the round trip
    to the congestion control only if the window was fully used (`limited` is True), and `s`
    recovers neither from a loss nor from a timeout."""
    samples = s.round_samples
    if limited and s.mode == at.OPEN and samples > 0:
        congestion.on_round(s, s.round_rtt_sum_ns // samples, samples)
    s.round_end = s.snd_nxt
    s.round_start_ns = now_ns
    s.round_rtt_sum_ns = 0
    s.round_min_rtt_ns = at.FOREVER
    s.round_samples = 0


@jit
def receive_ack(w: World, s: Subflow, p: Packet, now_ns: int) -> None:
    """Process acknowledgement `p` at the sender of subflow `s`. The field SEQ of the
    acknowledgement is the segment that the receiver expects next. The field TRANSMISSION is the
    number of the transmission that caused the acknowledgement."""
    limited = sender.is_cwnd_limited(s)
    number, expected = p.transmission, p.seq
    delivery.begin(s)
    s.acks_received += 1
    round_trips.measure(s, number, expected, now_ns)
    was_late = reordering.note(s, p, now_ns)
    acked = 0
    advanced = expected > s.snd_una
    while s.snd_una < expected:
        acked += mark_arrived(s, s.snd_una, at.UNSENT)
        s.snd_una += 1
    sacked = transmission(s, number).seq
    if sacked >= s.snd_una and round_trips.is_remembered(s, number):
        acked += mark_arrived(s, sacked, at.SACKED)
    sent_before = number < s.sent_before_timeout
    if s.mode == at.TIMED_OUT and acked > 0 and sent_before:
        undo(s)
    elif was_late:
        s.losses_to_prove -= 1
        revive(s)
        if s.losses_to_prove <= 0:
            undo(s)
    lost, arrived = detect_losses(s, number, p.segments_so_far, now_ns)
    acked += arrived
    if s.connection.is_dctcp == 1:
        dctcp.count(s, acked, p.echo)
    if s.mode != at.OPEN and ecn.is_over(s):
        if s.mode == at.RECOVERY:
            reordering.end_recovery(s)
        if s.mode != at.TIMED_OUT:
            window_reduction.end(s)
        s.mode, s.losses_to_prove = at.OPEN, 0
    if lost > 0 and (s.mode == at.OPEN or s.mode == at.REDUCED):
        enter_recovery(s, now_ns)
    elif p.echo == 1 and s.mode == at.OPEN:
        ecn.reduce(s, now_ns)
    elif limited and acked > 0 and s.mode not in (at.RECOVERY, at.REDUCED) and s.is_rate_based == 0:
        congestion.on_ack(s, acked, now_ns)
    if s.mode == at.RECOVERY or s.mode == at.REDUCED:
        window_reduction.go_on(s, acked, lost, advanced)
    tail_loss_probe.receive_ack(s, number, now_ns)
    if s.is_rate_based == 1:
        delivery.measure(s, number, (acked, lost), now_ns)
        dispatch.on_sample(s, now_ns)
    if s.snd_una > s.round_end:
        end_round(s, limited, now_ns)
    if advanced:
        s.backoff = 0
    if not wait_for_late(w, s, now_ns) and advanced:
        sender.restart_timer(w, s, now_ns, now_ns)


@jit
def on_timeout(w: World, s: Subflow, now_ns: int) -> None:
    """Handle a retransmission timeout of subflow `s`: mark all segments in flight as lost, set the
    window to one segment, and double the RTO (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1).

    The old window is saved, so that the timeout can be undone. A timeout in the round trip after a
    loss or a mark does not reduce SSTHRESH again, and cannot be undone (Linux, tcp_enter_loss).
    """
    if s.mode == at.OPEN:
        s.sent_before_timeout = s.transmissions
        s.cwnd_before = s.cwnd
        s.ssthresh_before = s.ssthresh
        congestion.on_timeout(s, now_ns)
    elif s.mode != at.TIMED_OUT:
        s.sent_before_timeout = 0
    s.cwnd = congestion.LOSS_WINDOW
    for seq in range(s.snd_una, s.snd_nxt):
        slot = segment(s, seq)
        if slot.state == at.IN_FLIGHT:
            mark_lost(s, slot)
    dispatch.on_timeout(s)
    s.lost_hint = s.snd_una
    s.loss_scanned = s.transmissions
    s.mode, s.probe_end = at.TIMED_OUT, 0
    s.recover = s.snd_nxt
    s.backoff = min(s.backoff + 1, MAX_BACKOFF)
    s.timeouts += 1
    sender.restart_rto(w, s, now_ns)


@jit
def undo(s: Subflow) -> None:
    """Undo the last timeout or recovery of subflow `s`: restore the window, and treat lost segments
    as being in flight again."""
    dispatch.on_undo(s)
    s.cwnd = max(s.cwnd, s.cwnd_before)
    s.ssthresh = max(s.ssthresh, s.ssthresh_before)
    s.mode, s.backoff = at.OPEN, 0
    revive(s)
    s.losses_to_prove = 0


@jit
def revive(s: Subflow) -> None:
    """Treat the lost segments of subflow `s` as being in flight again."""
    for seq in range(s.snd_una, s.snd_nxt):
        slot = segment(s, seq)
        if slot.state == at.LOST:
            slot.state = at.IN_FLIGHT
            s.pipe += 1
            s.lost -= 1
            s.losses_to_prove -= 1
            s.segments_lost -= 1
            first = slot.transmission
            s.loss_scanned = min(s.loss_scanned, first)
