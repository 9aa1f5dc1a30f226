"""Send the segments of a subflow as far as its congestion window allows. Acknowledgements and
timeouts are handled in `acknowledgements`.

- RFC 6675, section 4: segments are sent while fewer of them are in flight (PIPE) than the window
  allows. Lost segments are sent before new ones.
- RFC 6298: the retransmission timer. While no segment is lost, the timer is for a tail loss probe
  (RFC 8985).
- RFC 2861 and 7661: the window of an idle sender is reduced, and a window that is not used does not
  grow.
"""

from __future__ import annotations

from lab.engines.sim.core import events, links, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below

RTO_MAX_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
PROBE_MARGIN_NS, PROBE_ALONE_NS = 2_000_000, 200_000_000  # Linux, tcp_schedule_loss_probe
INITIAL_WINDOW = 10.0  # segments, RFC 6928


@jit
def flight_size(row: Ints, f: int) -> int:
    """Return the number of segments that subflow `f` has sent and that are not cumulatively
    acknowledged (RFC 5681, FlightSize)."""
    return row[f + at.SND_NXT] - row[f + at.SND_UNA]


@jit
def queue_segment(row: Ints, f: int, dsn: int) -> None:
    """Append the segment with data sequence number `dsn` to the send queue of subflow `f`."""
    seq = row[f + at.WRITE_SEQ]
    row[rings.segment(row, f, seq) + rings.SEG_DSN] = dsn
    row[f + at.WRITE_SEQ] = seq + 1


@jit
def window_has_room(w: at.World, f: int) -> bool:
    """Return True if the congestion window and pacing allow subflow `f` to send one more segment
    now."""
    row = w.row
    is_paced = row[f + at.PACED_UNTIL_NS] > row[at.NOW]
    return row[f + at.PIPE] < int(w.window[f + at.CWND]) and not is_paced


@jit
def restart_rto(row: Ints, f: int, now_ns: int) -> None:
    """Restart the retransmission timer of subflow `f`, or stop it if nothing is in flight (RFC
    6298, (5.1) to (5.3))."""
    row[f + at.IS_PROBE] = 0
    if flight_size(row, f) == 0:
        row[f + at.RTO_TIMER_NS] = 0
        return
    due_ns = now_ns + min(row[f + at.RTO_NS] << row[f + at.BACKOFF], RTO_MAX_NS)
    events.start_timer(row, f + at.RTO_TIMER_NS, due_ns, at.RTO_DUE, f)


@jit
def may_probe(row: Ints, f: int) -> bool:
    """Return True if subflow `f` may send a tail loss probe. It must have segments in flight, and
    none may be known to be lost or to have arrived out of order (tcp_schedule_loss_probe)."""
    in_flight = row[f + at.PIPE]
    return row[f + at.MODE] == at.OPEN and in_flight > 0 and in_flight == flight_size(row, f)


@jit
def restart_timer(row: Ints, f: int, rto_since_ns: int, now_ns: int) -> None:
    """Restart the timer of subflow `f`. If a tail loss probe may be sent, the timer is for the
    probe, otherwise for the retransmission timeout (RTO).

    The probe is due after two smoothed RTTs, but not later than an RTO that began at
    `rto_since_ns`. If only one segment is in flight, the probe waits 200 ms longer, because the
    acknowledgement of this segment may be delayed.
    """
    if not may_probe(row, f):
        restart_rto(row, f, now_ns)
        return
    margin_ns = PROBE_ALONE_NS if flight_size(row, f) == 1 else PROBE_MARGIN_NS
    probe_ns = now_ns + 2 * row[f + at.SRTT_NS] + margin_ns
    due_ns = max(now_ns, min(probe_ns, rto_since_ns + row[f + at.RTO_NS]))
    row[f + at.IS_PROBE] = 1
    events.start_timer(row, f + at.RTO_TIMER_NS, due_ns, at.RTO_DUE, f)


@jit
def transmit(row: Ints, f: int, seq: int, now_ns: int) -> None:
    """Transmit segment `seq` of subflow `f`, for the first time or again. The segment leaves the
    host at a random time up to HOST_NOISE_NS from now, but after the segment that was transmitted
    before it."""
    c, number = row[f + at.CONNECTION], row[f + at.TRANSMISSIONS]
    row[f + at.TRANSMISSIONS] = number + 1
    slot, transmission = rings.segment(row, f, seq), rings.segment(row, f, number)
    row[slot + rings.SEG_STATE] = rings.IN_FLIGHT
    row[slot + rings.SEG_TRANSMISSION] = number
    row[transmission + rings.SENT_SEQ] = seq
    row[transmission + rings.SENT_NS] = now_ns
    row[f + at.PIPE] += 1
    row[f + at.SEGMENTS_SENT] += 1
    p = links.new_packet(row, f, at.SEGMENT, row[f + at.DATA_ROUTE], row[c + at.FRAME_BYTES])
    row[p + at.SEQ] = seq
    row[p + at.DSN] = row[slot + rings.SEG_DSN]
    row[p + at.TRANSMISSION] = number
    noise_ns = random_below(row, f + at.HOST_RNG_1, row[at.HOST_NOISE_NS])
    leaves_ns = max(row[f + at.LAST_SENT_NS], now_ns + noise_ns) + 1
    row[f + at.LAST_SENT_NS] = leaves_ns
    if row[f + at.EXPECTED_BPS] > 0 and row[at.EXPECTED_BY_WINDOW] == 0:
        interval_ns = row[p + at.SIZE] * 8 * at.NS_PER_S // row[f + at.EXPECTED_BPS]
        row[f + at.PACED_UNTIL_NS] = now_ns + interval_ns
        events.schedule(row, row[f + at.PACED_UNTIL_NS], at.PUSH, c)
    links.forward(row, f + at.HOST_LINE, p, leaves_ns, now_ns)
    if row[f + at.RTO_TIMER_NS] == 0:
        restart_timer(row, f, now_ns, now_ns)
    elif row[f + at.IS_PROBE] == 1:
        oldest = row[rings.segment(row, f, row[f + at.SND_UNA]) + rings.SEG_TRANSMISSION]
        sent_ns = row[rings.segment(row, f, oldest) + rings.SENT_NS]
        restart_timer(row, f, sent_ns, now_ns)


@jit
def restart_after_idle(w: at.World, f: int, now_ns: int) -> None:
    """Reduce the congestion window of subflow `f` if nothing was in flight for longer than an RTO
    (RFC 2861; Linux, tcp_cwnd_restart).

    The window is halved for every RTO of the pause, but not below the initial window. SSTHRESH
    becomes at least 3/4 of the window before the pause. Cubic's growth depends on the time since
    the last loss; the pause is not part of this time (bictcp_cwnd_event).
    """
    row = w.row
    window = w.window
    pause_ns = now_ns - row[f + at.LAST_SENT_NS]
    if row[f + at.LAST_SENT_NS] == 0 or pause_ns <= 0:
        return
    if row[f + at.EPOCH_NS] > 0:
        row[f + at.EPOCH_NS] = min(row[f + at.EPOCH_NS] + pause_ns, now_ns)
    pause_ns -= row[f + at.RTO_NS]
    if pause_ns > 0:
        window[f + at.SSTHRESH] = max(window[f + at.SSTHRESH], 0.75 * window[f + at.CWND])
    while pause_ns > 0 and window[f + at.CWND] > INITIAL_WINDOW:
        window[f + at.CWND] = max(window[f + at.CWND] / 2.0, INITIAL_WINDOW)
        pause_ns -= row[f + at.RTO_NS]


@jit
def take_first_lost(row: Ints, f: int) -> int:
    """Return the sequence number of the first lost segment of subflow `f`, and count the segment as
    retransmitted. At least one segment must be lost."""
    seq = max(row[f + at.LOST_HINT], row[f + at.SND_UNA])
    while row[rings.segment(row, f, seq) + rings.SEG_STATE] != rings.LOST:
        seq += 1
    row[f + at.LOST_HINT] = seq + 1
    row[f + at.LOST] -= 1
    row[f + at.SEGMENTS_RETRANSMITTED] += 1
    return seq


@jit
def send(w: at.World, f: int, most: int, now_ns: int) -> int:
    """Send up to `most` segments of subflow `f`, as far as its congestion window and pacing allow.
    Lost segments come before new ones (RFC 6675, NextSeg). Return how many segments were sent."""
    row, sent = w.row, 0
    while (
        sent < most
        and (row[f + at.LOST] > 0 or row[f + at.SND_NXT] < row[f + at.WRITE_SEQ])
        and window_has_room(w, f)
    ):
        if row[f + at.LOST] > 0:
            seq = take_first_lost(w.row, f)
        else:
            if flight_size(row, f) == 0:
                restart_after_idle(w, f, now_ns)
            seq = row[f + at.SND_NXT]
            row[f + at.SND_NXT] = seq + 1
        transmit(w.row, f, seq, now_ns)
        sent += 1
    validate_cwnd(w, f, sent > 0)
    return sent


# --- whether the window is used: it must not grow if it is not (RFC 7661)


@jit
def validate_cwnd(w: at.World, f: int, has_sent: bool) -> None:
    """Record whether the congestion window limits subflow `f` in this round trip, and how many of
    its segments are not acknowledged (Linux, tcp_cwnd_validate). `has_sent` is True if segments
    were sent just before."""
    row = w.row
    limited, out = row[f + at.PIPE] >= int(w.window[f + at.CWND]), flight_size(row, f)
    is_new_round = row[f + at.SND_UNA] >= row[f + at.CWND_USAGE_SEQ]
    is_larger = row[f + at.CWND_LIMITED] == 0 and out > row[f + at.MAX_PACKETS_OUT]
    if limited or (has_sent and (is_new_round or is_larger)):
        row[f + at.CWND_LIMITED] = int(limited)
        row[f + at.MAX_PACKETS_OUT] = out
        row[f + at.CWND_USAGE_SEQ] = row[f + at.SND_NXT]


@jit
def is_cwnd_limited(w: at.World, f: int) -> bool:
    """Return True if the congestion window of subflow `f` may grow. The sender must have used all
    of it or, in slow start, more than half of it (Linux, tcp_is_cwnd_limited)."""
    window = w.window
    in_slow_start = window[f + at.CWND] < window[f + at.SSTHRESH]
    half_full = window[f + at.CWND] < 2 * w.row[f + at.MAX_PACKETS_OUT]
    return w.row[f + at.CWND_LIMITED] == 1 or (in_slow_start and half_full)
