"""Handle acknowledgements and timeouts at the sender of a subflow.

A subflow numbers its transmissions from 0, retransmissions included.
- Selective acknowledgements (RFC 2018 and 6675): each acknowledgement says how many segments have
  arrived, and which transmission caused it.
- Loss detection (RFC 8985): a segment is lost if a segment transmitted at least three transmissions
  later has arrived. During loss recovery, one transmission later is enough. Lost retransmissions
  are found in the same way. Linux uses these rules until it observes reordering (tcp_rack_reo_wnd);
  a simulated path never reorders packets.
- Loss recovery (RFC 6582): the window is reduced once per recovery. A recovery ends when the
  segments before RECOVER are acknowledged.
- Timeouts (RFC 6298): `round_trips` computes the timeout. A timeout is undone if an acknowledgement
  shows that the segments were only late (RFC 4015 and 5682; Linux, tcp_try_undo_loss).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, rings, round_trips, sender, tail_loss_probe
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
MAX_BACKOFF = 10  # doublings of the RTO


@jit
def mark_arrived(row: Ints, f: int, seq: int, state: int) -> int:
    """Record at the sender of subflow `f` that segment `seq` has arrived. Return 1 if the sender
    did not know this before, else 0.

    `state` is SACKED for a selective acknowledgement. It is UNSENT for a cumulative
    acknowledgement, which frees the segment's entry in the ring buffer.
    """
    slot = rings.segment(row, f, seq)
    before = row[slot + rings.SEG_STATE]
    if state == rings.UNSENT:
        row[slot + rings.SEG_ARRIVAL] = 0
    if before == rings.IN_FLIGHT:
        row[f + at.PIPE] -= 1
    elif before == rings.LOST:
        row[f + at.LOST] -= 1
    row[slot + rings.SEG_STATE] = state
    return 0 if before == rings.SACKED else 1


@jit
def mark_lost(row: Ints, f: int, slot: int) -> None:
    """Mark a segment that subflow `f` has in flight as lost, so that it is retransmitted. `slot` is
    the index in `row` of the segment's entry in the ring buffer."""
    row[slot + rings.SEG_STATE] = rings.LOST
    row[f + at.PIPE] -= 1
    row[f + at.LOST] += 1
    row[f + at.SEGMENTS_LOST] += 1


@jit
def detect_losses(row: Ints, f: int, number: int, arrivals: int) -> tuple[int, int]:
    """Mark the segments of subflow `f` that are lost, now that its transmission `number` has
    arrived (RFC 8985). Return how many segments are lost, and how many others are found to have
    arrived.

    The threshold is 1 during loss recovery and after a timeout. Otherwise it is 3, or less if few
    segments are in flight. A segment in flight is lost if the number of its last transmission is
    smaller than `number` by at least the threshold.

    A segment that has reached the receiver does not count as lost if only its acknowledgement was.
    `arrivals` is how many segments the receiver had got when it sent the present acknowledgement.
    """
    threshold = 1
    if row[f + at.MODE] == at.OPEN:
        threshold = min(DUP_THRESHOLD, max(1, sender.flight_size(row, f) - 1))
    lost, arrived = 0, 0
    while row[f + at.LOSS_SCANNED] <= number - threshold:
        k = row[f + at.LOSS_SCANNED]
        row[f + at.LOSS_SCANNED] = k + 1
        seq = row[rings.segment(row, f, k) + rings.SENT_SEQ]
        slot = rings.segment(row, f, seq)
        if (
            seq < row[f + at.SND_UNA]
            or row[slot + rings.SEG_STATE] != rings.IN_FLIGHT
            or row[slot + rings.SEG_TRANSMISSION] != k  # it was retransmitted since
        ):
            continue
        if 0 < row[slot + rings.SEG_ARRIVAL] <= arrivals:
            arrived += mark_arrived(row, f, seq, rings.SACKED)
        else:
            mark_lost(row, f, slot)
            row[f + at.LOST_HINT] = min(row[f + at.LOST_HINT], seq)
            lost += 1
    return lost, arrived


@jit
def end_round(w: at.World, f: int, limited: bool, now_ns: int) -> None:
    """End a round trip of subflow `f` and begin the next one. Give the mean RTT of the round trip
    to the congestion control only if the window was fully used (`limited` is True), and `f`
    recovers neither from a loss nor from a timeout."""
    row, samples = w.row, w.row[f + at.ROUND_SAMPLES]
    if limited and row[f + at.MODE] == at.OPEN and samples > 0:
        congestion.on_round(w, f, row[f + at.ROUND_RTT_SUM_NS] // samples, samples)
    row[f + at.ROUND_END] = row[f + at.SND_NXT]
    row[f + at.ROUND_START_NS] = now_ns
    row[f + at.ROUND_RTT_SUM_NS] = 0
    row[f + at.ROUND_MIN_RTT_NS] = at.FOREVER
    row[f + at.ROUND_SAMPLES] = 0


@jit
def receive_ack(w: at.World, f: int, p: int, now_ns: int) -> None:
    """Process acknowledgement `p` at the sender of subflow `f`. The field SEQ of the
    acknowledgement is the segment that the receiver expects next. The field TRANSMISSION is the
    number of the transmission that caused the acknowledgement."""
    row = w.row
    limited = sender.is_cwnd_limited(w, f)
    number, expected = row[p + at.TRANSMISSION], row[p + at.SEQ]
    row[f + at.ACKS_RECEIVED] += 1
    round_trips.measure(row, f, number, expected, now_ns)
    acked = 0
    advanced = expected > row[f + at.SND_UNA]
    while row[f + at.SND_UNA] < expected:
        acked += mark_arrived(row, f, row[f + at.SND_UNA], rings.UNSENT)
        row[f + at.SND_UNA] += 1
    sacked = row[rings.segment(row, f, number) + rings.SENT_SEQ]
    if sacked >= row[f + at.SND_UNA] and round_trips.is_remembered(row, f, number):
        acked += mark_arrived(row, f, sacked, rings.SACKED)
    sent_before = number < row[f + at.SENT_BEFORE_TIMEOUT]
    if row[f + at.MODE] == at.TIMED_OUT and acked > 0 and sent_before:
        undo_timeout(w, f)
    lost, arrived = detect_losses(row, f, number, row[p + at.SEGMENTS_SO_FAR])
    acked += arrived
    if row[f + at.MODE] != at.OPEN and row[f + at.SND_UNA] >= row[f + at.RECOVER]:
        row[f + at.MODE] = at.OPEN
    if lost > 0 and row[f + at.MODE] == at.OPEN:
        congestion.on_loss(w, f, now_ns)
        row[f + at.MODE], row[f + at.PROBE_END] = at.RECOVERY, 0
        row[f + at.RECOVER] = row[f + at.SND_NXT]
    elif limited and acked > 0 and row[f + at.MODE] != at.RECOVERY:
        congestion.on_ack(w, f, acked, now_ns)
    tail_loss_probe.receive_ack(w, f, number, now_ns)
    if row[f + at.SND_UNA] > row[f + at.ROUND_END]:
        end_round(w, f, limited, now_ns)
    if advanced:
        row[f + at.BACKOFF] = 0
        sender.restart_timer(row, f, now_ns, now_ns)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """Handle a retransmission timeout of subflow `f`: mark all segments in flight as lost, set the
    window to one segment, and double the RTO (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1).

    The old window is saved, so that the timeout can be undone. A timeout during loss recovery does
    not reduce SSTHRESH again, and cannot be undone (Linux, tcp_enter_loss).
    """
    row, window = w.row, w.window
    if row[f + at.MODE] == at.OPEN:
        row[f + at.SENT_BEFORE_TIMEOUT] = row[f + at.TRANSMISSIONS]
        window[f + at.CWND_BEFORE_TIMEOUT] = window[f + at.CWND]
        window[f + at.SSTHRESH_BEFORE_TIMEOUT] = window[f + at.SSTHRESH]
        congestion.on_timeout(w, f, now_ns)
    elif row[f + at.MODE] == at.RECOVERY:
        row[f + at.SENT_BEFORE_TIMEOUT] = 0
    window[f + at.CWND] = congestion.LOSS_WINDOW
    for seq in range(row[f + at.SND_UNA], row[f + at.SND_NXT]):
        slot = rings.segment(row, f, seq)
        if row[slot + rings.SEG_STATE] == rings.IN_FLIGHT:
            mark_lost(row, f, slot)
    row[f + at.LOST_HINT] = row[f + at.SND_UNA]
    row[f + at.LOSS_SCANNED] = row[f + at.TRANSMISSIONS]
    row[f + at.MODE], row[f + at.PROBE_END] = at.TIMED_OUT, 0
    row[f + at.RECOVER] = row[f + at.SND_NXT]
    row[f + at.BACKOFF] = min(row[f + at.BACKOFF] + 1, MAX_BACKOFF)
    row[f + at.TIMEOUTS] += 1
    sender.restart_rto(row, f, now_ns)


@jit
def undo_timeout(w: at.World, f: int) -> None:
    """Undo the last timeout of subflow `f`: restore the window, and treat lost segments as being in
    flight again. This is called when a segment sent before the timeout has arrived."""
    row, window = w.row, w.window
    window[f + at.CWND] = max(window[f + at.CWND], window[f + at.CWND_BEFORE_TIMEOUT])
    window[f + at.SSTHRESH] = max(window[f + at.SSTHRESH], window[f + at.SSTHRESH_BEFORE_TIMEOUT])
    row[f + at.MODE], row[f + at.BACKOFF] = at.OPEN, 0
    for seq in range(row[f + at.SND_UNA], row[f + at.SND_NXT]):
        slot = rings.segment(row, f, seq)
        if row[slot + rings.SEG_STATE] == rings.LOST:
            row[slot + rings.SEG_STATE] = rings.IN_FLIGHT
            row[f + at.PIPE] += 1
            row[f + at.LOST] -= 1
            row[f + at.SEGMENTS_LOST] -= 1
            first = row[slot + rings.SEG_TRANSMISSION]
            row[f + at.LOSS_SCANNED] = min(row[f + at.LOSS_SCANNED], first)
