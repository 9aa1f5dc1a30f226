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

from lab.engines.sim.core import delivery, dispatch, ecn, events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Subflow, World, segment, transmission

RTO_MAX_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
PROBE_MARGIN_NS, PROBE_ALONE_NS = 2_000_000, 200_000_000  # Linux, tcp_schedule_loss_probe
INITIAL_WINDOW = 10.0  # segments, RFC 6928


@jit
def flight_size(s: Subflow) -> int:
    """Return the number of segments that subflow `s` has sent and that are not cumulatively
    acknowledged (RFC 5681, FlightSize)."""
    return s.snd_nxt - s.snd_una


@jit
def queue_segment(s: Subflow, dsn: int) -> None:
    """Append the segment with data sequence number `dsn` to the send queue of subflow `s`."""
    seq = s.write_seq
    segment(s, seq).dsn = dsn
    s.write_seq = seq + 1


@jit
def window_has_room(w: World, s: Subflow) -> bool:
    """Return True if the congestion window and pacing allow subflow `s` to send one more segment
    now."""
    is_paced = s.paced_until_ns > w.now_ns and not delivery.is_in_burst(s, w.now_ns)
    return s.pipe < int(s.cwnd) and not is_paced


@jit
def restart_rto(w: World, s: Subflow, now_ns: int) -> None:
    """Restart the retransmission timer of subflow `s`, or stop it if nothing is in flight (RFC
    6298, (5.1) to (5.3))."""
    s.timer_is_for = at.RTO
    if flight_size(s) == 0:
        s.timer.expires_ns = 0
        return
    due_ns = now_ns + min(s.rto_ns << s.backoff, RTO_MAX_NS)
    events.start_timer(w, s.timer, due_ns)


@jit
def may_probe(s: Subflow) -> bool:
    """Return True if subflow `s` may send a tail loss probe. It must have segments in flight, and
    none may be known to be lost or to have arrived out of order (tcp_schedule_loss_probe)."""
    in_flight = s.pipe
    may_be_lost = s.mode != at.OPEN and s.mode != at.REDUCED
    return not may_be_lost and in_flight > 0 and in_flight == flight_size(s)


@jit
def restart_timer(w: World, s: Subflow, rto_since_ns: int, now_ns: int) -> None:
    """Restart the timer of subflow `s`. If a tail loss probe may be sent, the timer is for the
    probe, otherwise for the retransmission timeout (RTO).

    The probe is due after two smoothed RTTs, but not later than an RTO that began at
    `rto_since_ns`. If only one segment is in flight, the probe waits 200 ms longer, because the
    acknowledgement of this segment may be delayed.
    """
    if not may_probe(s):
        restart_rto(w, s, now_ns)
        return
    margin_ns = PROBE_ALONE_NS if flight_size(s) == 1 else PROBE_MARGIN_NS
    probe_ns = now_ns + 2 * s.srtt_ns + margin_ns
    due_ns = max(now_ns, min(probe_ns, rto_since_ns + s.rto_ns))
    s.timer_is_for = at.PROBE
    events.start_timer(w, s.timer, due_ns)


@jit
def transmit(w: World, s: Subflow, seq: int, now_ns: int) -> None:
    """Transmit segment `seq` of subflow `s`, for the first time or again. The segment leaves the
    host at a random time up to HOST_NOISE_NS from now, but after the segment that was transmitted
    before it."""
    c, number = s.connection, s.transmissions
    s.transmissions = number + 1
    slot, sent = segment(s, seq), transmission(s, number)
    is_new = slot.state == at.UNSENT
    slot.state = at.IN_FLIGHT
    slot.transmission = number
    sent.seq = seq
    sent.sent_ns = now_ns
    s.pipe += 1
    s.segments_sent += 1
    s.reduction_sent += 1
    p = links.new_packet(w, s, at.SEGMENT, s.data_route, c.frame_bytes)
    p.seq = seq
    p.dsn = slot.dsn
    p.transmission = number
    if is_new and c.is_ecn == 1:
        ecn.send(s, p)
    noise_ns = random_below(s.host_random, w.host_noise_ns)
    leaves_ns = max(s.last_sent_ns, now_ns + noise_ns) + 1
    s.last_sent_ns = leaves_ns
    delivery.tag(s, sent, is_new and flight_size(s) == 1)
    if s.is_rate_based == 1:
        delivery.pace(s, now_ns)
        if s.paced_until_ns > now_ns:
            events.schedule(w, s.paced_until_ns, c.push)
    elif s.expected_bps > 0 and s.connection.is_expected_by_window == 0:
        interval_ns = p.size * 8 * at.NS_PER_S // s.expected_bps
        s.paced_until_ns = now_ns + interval_ns
        events.schedule(w, s.paced_until_ns, c.push)
    links.forward(w, s.host_line, p, leaves_ns, now_ns)
    if s.timer.expires_ns == 0:
        restart_timer(w, s, now_ns, now_ns)
    elif s.timer_is_for == at.PROBE:
        oldest = segment(s, s.snd_una).transmission
        sent_ns = transmission(s, oldest).sent_ns
        restart_timer(w, s, sent_ns, now_ns)


@jit
def restart_after_idle(s: Subflow, now_ns: int) -> None:
    """Reduce the congestion window of subflow `s` if nothing was in flight for longer than an RTO
    (RFC 2861; Linux, tcp_cwnd_restart).

    The window is halved for every RTO of the pause, but not below the initial window. SSTHRESH
    becomes at least 3/4 of the window before the pause. Cubic's growth depends on the time since
    the last loss; the pause is not part of this time (bictcp_cwnd_event).
    """
    pause_ns = now_ns - s.last_sent_ns
    if s.last_sent_ns == 0 or pause_ns <= 0:
        return
    if s.epoch_ns > 0:
        s.epoch_ns = min(s.epoch_ns + pause_ns, now_ns)
    pause_ns -= s.rto_ns
    if pause_ns > 0:
        s.ssthresh = max(s.ssthresh, 0.75 * s.cwnd)
    while pause_ns > 0 and s.cwnd > INITIAL_WINDOW:
        s.cwnd = max(s.cwnd / 2.0, INITIAL_WINDOW)
        pause_ns -= s.rto_ns


@jit
def take_first_lost(s: Subflow) -> int:
    """Return the sequence number of the first lost segment of subflow `s`, and count the segment as
    retransmitted. At least one segment must be lost."""
    seq = max(s.lost_hint, s.snd_una)
    while segment(s, seq).state != at.LOST:
        seq += 1
    s.lost_hint = seq + 1
    s.lost -= 1
    s.segments_retransmitted += 1
    return seq


@jit
def send(w: World, s: Subflow, most: int, now_ns: int) -> int:
    """Send up to `most` segments of subflow `s`, as far as its congestion window and pacing allow.
    Lost segments come before new ones (RFC 6675, NextSeg). Return how many segments were sent."""
    sent = 0
    while sent < most and (s.lost > 0 or s.snd_nxt < s.write_seq) and window_has_room(w, s):
        if s.lost > 0:
            seq = take_first_lost(s)
        else:
            if flight_size(s) == 0 and s.is_rate_based == 1:
                dispatch.on_restart(s, now_ns)
            elif flight_size(s) == 0:
                restart_after_idle(s, now_ns)
            seq = s.snd_nxt
            s.snd_nxt = seq + 1
        transmit(w, s, seq, now_ns)
        sent += 1
    validate_cwnd(s, sent > 0)
    return sent


# --- whether the window is used: it must not grow if it is not (RFC 7661)


@jit
def validate_cwnd(s: Subflow, has_sent: bool) -> None:
    """Record whether the congestion window limits subflow `s` in this round trip, and how many of
    its segments are not acknowledged (Linux, tcp_cwnd_validate). `has_sent` is True if segments
    were sent just before."""
    limited, out = s.pipe >= int(s.cwnd), flight_size(s)
    is_new_round = s.snd_una >= s.cwnd_usage_seq
    is_larger = s.cwnd_limited == 0 and out > s.max_packets_out
    if limited or (has_sent and (is_new_round or is_larger)):
        s.cwnd_limited = int(limited)
        s.max_packets_out = out
        s.cwnd_usage_seq = s.snd_nxt


@jit
def is_cwnd_limited(s: Subflow) -> bool:
    """Return True if the congestion window of subflow `s` may grow. The sender must have used all
    of it or, in slow start, more than half of it (Linux, tcp_is_cwnd_limited)."""
    in_slow_start = s.cwnd < s.ssthresh
    half_full = s.cwnd < 2 * s.max_packets_out
    return s.cwnd_limited == 1 or (in_slow_start and half_full)
