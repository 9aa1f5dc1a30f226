"""One subflow's sender: what it does with a segment and an acknowledgement; the other end is in `receiver`.

Slow start and congestion avoidance (RFC 5681, the laws), selective acknowledgements (RFC 2018: each tells of all
that has arrived; RFC 6675: send while less is under way than the window, first what is lost, then what is new). Losses are
found by the order of transmissions, which finds a lost retransmission too (RFC 8985): three later arrivals are a loss, in
recovery one, as in Linux while it has seen no other order (tcp_rack_reo_wnd); a path keeps the order. Retransmission timer
(RFC 6298 with Linux's floor). An idle sender begins with a smaller window (RFC 2861).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, events, links, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
RTO_MARGIN_NS = (
    200_000_000  # Linux, TCP_RTO_MIN: the timer waits at least this much longer than a round trip
)
RTO_MOST_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
FIRST_WINDOW = 10.0  # segments, RFC 6928


@jit
def queue_segment(row: Ints, f: int, dsn: int) -> None:
    """Give a segment to a subflow."""
    end = row[f + at.WRITE_SEQ]
    row[rings.segment(row, f, end) + rings.SEG_DSN] = dsn
    row[f + at.WRITE_SEQ] = end + 1


@jit
def window_has_room(w: at.World, f: int) -> bool:
    """Whether the window, and the pace the controller expects, let one more segment out."""
    row = w.row
    return (
        row[f + at.PIPE] < int(w.window[f + at.CWND]) and row[f + at.PACED_UNTIL_NS] <= row[at.NOW]
    )


@jit
def restart_rto(row: Ints, f: int, now_ns: int) -> None:
    """Restart the retransmission timer (RFC 6298, (5.1) to (5.3))."""
    if row[f + at.SND_UNA] == row[f + at.SND_NXT]:
        row[f + at.RTO_TIMER_NS] = 0
        return
    due_ns = now_ns + min(row[f + at.RTO_NS] << row[f + at.BACKOFF], RTO_MOST_NS)
    events.start_timer(row, f + at.RTO_TIMER_NS, due_ns, f * at.EVENT_KINDS + at.RTO_DUE)


@jit
def transmit(row: Ints, f: int, seq: int, now_ns: int) -> None:
    """Send a segment, for the first time or again; a host is not punctual to the nanosecond."""
    number = row[f + at.TRANSMISSIONS]
    row[f + at.TRANSMISSIONS] = number + 1
    slot, entry = rings.segment(row, f, seq), rings.segment(row, f, number)
    row[slot + rings.SEG_STATE], row[slot + rings.SEG_TRANSMISSION] = rings.IN_FLIGHT, number
    row[entry + rings.SENT_SEQ], row[entry + rings.SENT_NS] = seq, now_ns
    row[f + at.PIPE] += 1
    row[f + at.SEGMENTS_SENT] += 1
    p = links.take_packet(row)
    row[p + at.SUBFLOW], row[p + at.ROUTE_POSITION], row[p + at.PACKET_TYPE] = (
        f,
        row[f + at.DATA_ROUTE],
        0,
    )
    row[p + at.SIZE] = row[row[f + at.CONNECTION] + at.FRAME_BYTES]
    row[p + at.SEQ], row[p + at.DSN], row[p + at.TRANSMISSION] = (
        seq,
        row[slot + rings.SEG_DSN],
        number,
    )
    leaves_ns = (
        max(
            row[f + at.LAST_SENT_NS],
            now_ns + random_below(row, f + at.HOST_RNG_1, row[at.HOST_NOISE_NS]),
        )
        + 1
    )
    row[f + at.LAST_SENT_NS] = leaves_ns
    if row[f + at.EXPECTED_BPS] > 0 and row[at.EXPECTED_BY_WINDOW] == 0:
        row[f + at.PACED_UNTIL_NS] = (
            now_ns + row[p + at.SIZE] * 8 * at.NS_PER_S // row[f + at.EXPECTED_BPS]
        )
        events.schedule(
            row, row[f + at.PACED_UNTIL_NS], row[f + at.CONNECTION] * at.EVENT_KINDS + at.PUSH
        )
    links.forward(row, p, leaves_ns, now_ns)
    if row[f + at.RTO_TIMER_NS] == 0:
        restart_rto(row, f, now_ns)


@jit
def restart_after_idle(w: at.World, f: int, now_ns: int) -> None:
    """Nothing is under way: the window halves for every timeout of the pause, to the first one at least; the threshold
    remembers it (RFC 2861; tcp_cwnd_restart). Cubic's clock has stood still (bictcp_cwnd_event)."""
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
    while pause_ns > 0 and window[f + at.CWND] > FIRST_WINDOW:
        window[f + at.CWND] = max(window[f + at.CWND] / 2.0, FIRST_WINDOW)
        pause_ns -= row[f + at.RTO_NS]


@jit
def take_first_lost(row: Ints, f: int) -> int:
    """The first lost segment, which is about to be sent again."""
    seq = max(row[f + at.LOST_HINT], row[f + at.SND_UNA])
    while row[rings.segment(row, f, seq) + rings.SEG_STATE] != rings.LOST:
        seq += 1
    row[f + at.LOST_HINT] = seq + 1
    row[f + at.LOST] -= 1
    row[f + at.SEGMENTS_RETRANSMITTED] += 1
    return seq


@jit
def validate_cwnd(w: at.World, f: int, has_sent: bool) -> None:
    """Whether the window held the sender back in this round, and if not, how much was under way at most (tcp_cwnd_validate)."""
    row = w.row
    limited, out = (
        row[f + at.PIPE] >= int(w.window[f + at.CWND]),
        row[f + at.SND_NXT] - row[f + at.SND_UNA],
    )
    news = row[f + at.SND_UNA] >= row[f + at.CWND_USAGE_SEQ] or (
        row[f + at.CWND_LIMITED] == 0 and out > row[f + at.MAX_PACKETS_OUT]
    )
    if limited or (has_sent and news):
        row[f + at.CWND_LIMITED], row[f + at.MAX_PACKETS_OUT], row[f + at.CWND_USAGE_SEQ] = (
            int(limited),
            out,
            row[f + at.SND_NXT],
        )


@jit
def is_cwnd_limited(w: at.World, f: int) -> bool:
    """The window was full; or it is slow start, and the window not yet twice what was under way (tcp_is_cwnd_limited)."""
    window = w.window
    doubles = (
        window[f + at.CWND] < window[f + at.SSTHRESH]
        and window[f + at.CWND] < 2 * w.row[f + at.MAX_PACKETS_OUT]
    )
    return w.row[f + at.CWND_LIMITED] == 1 or doubles


@jit
def send(w: at.World, f: int, most: int, now_ns: int) -> int:
    """Send what is lost, then what is new, as far as the window goes (RFC 6675, NextSeg), so many at most; how many were sent."""
    row, sent = w.row, 0
    while (
        sent < most
        and (row[f + at.LOST] > 0 or row[f + at.SND_NXT] < row[f + at.WRITE_SEQ])
        and window_has_room(w, f)
    ):
        if row[f + at.LOST] > 0:
            seq = take_first_lost(w.row, f)
        else:
            if row[f + at.SND_UNA] == row[f + at.SND_NXT]:
                restart_after_idle(w, f, now_ns)
            seq = row[f + at.SND_NXT]
            row[f + at.SND_NXT] = seq + 1
        transmit(w.row, f, seq, now_ns)
        sent += 1
    validate_cwnd(w, f, sent > 0)
    return sent


# --- the sender and an acknowledgement


@jit
def measure_rtt(row: Ints, f: int, number: int, now_ns: int) -> None:
    """Round trip and timer (RFC 6298, section 2), exact for every transmission as with time stamps."""
    if number <= row[f + at.TRANSMISSIONS] - row[at.RING_SIZE]:
        return
    sample = now_ns - row[rings.segment(row, f, number) + rings.SENT_NS]
    row[f + at.RTTVAR_NS] += (abs(row[f + at.SRTT_NS] - sample) - row[f + at.RTTVAR_NS]) // 4
    row[f + at.SRTT_NS] += (sample - row[f + at.SRTT_NS]) // 8
    row[f + at.BASE_RTT_NS] = min(row[f + at.BASE_RTT_NS], sample)
    row[f + at.ROUND_MIN_RTT_NS] = min(row[f + at.ROUND_MIN_RTT_NS], sample)
    row[f + at.ROUND_RTT_SUM_NS] += sample
    row[f + at.ROUND_SAMPLES] += 1
    row[f + at.RTO_NS] = row[f + at.SRTT_NS] + max(4 * row[f + at.RTTVAR_NS], RTO_MARGIN_NS)


@jit
def mark_arrived(row: Ints, f: int, seq: int, state: int) -> int:
    """A segment has arrived: it is no longer under way; 1 if that is news. UNSENT: its place is free for another."""
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
def detect_losses(row: Ints, f: int, number: int, arrivals: int) -> tuple[int, int]:
    """Transmissions long enough before one that arrived are lost, unless they arrived or were sent again; how many are, and how
    many turn out to be among the first so many arrivals, which an acknowledgement told of that was lost."""
    threshold = (
        min(DUP_THRESHOLD, max(1, row[f + at.SND_NXT] - row[f + at.SND_UNA] - 1))
        if row[f + at.MODE] == at.OPEN
        else 1
    )
    found, acked = 0, 0
    while row[f + at.LOSS_SCANNED] <= number - threshold:
        k = row[f + at.LOSS_SCANNED]
        seq = row[rings.segment(row, f, k) + rings.SENT_SEQ]
        slot = rings.segment(row, f, seq)
        if (
            seq < row[f + at.SND_UNA]
            or row[slot + rings.SEG_STATE] != rings.IN_FLIGHT
            or row[slot + rings.SEG_TRANSMISSION] != k
        ):
            pass
        elif 0 < row[slot + rings.SEG_ARRIVAL] <= arrivals:
            acked += mark_arrived(row, f, seq, rings.SACKED)
        else:
            row[slot + rings.SEG_STATE] = rings.LOST
            row[f + at.PIPE] -= 1
            row[f + at.LOST] += 1
            row[f + at.LOST_HINT] = min(row[f + at.LOST_HINT], seq)
            found += 1
        row[f + at.LOSS_SCANNED] = k + 1
    row[f + at.SEGMENTS_LOST] += found
    return found, acked


@jit
def receive_ack(w: at.World, f: int, p: int, now_ns: int) -> None:
    """An acknowledgement has come to the sender: SEQ is what the receiver waits for, TRANSMISSION what made it answer."""
    row = w.row
    full = is_cwnd_limited(w, f)
    number, upto = row[p + at.TRANSMISSION], row[p + at.SEQ]
    row[f + at.ACKS_RECEIVED] += 1
    measure_rtt(row, f, number, now_ns)
    acked = 0
    advanced = upto > row[f + at.SND_UNA]
    while row[f + at.SND_UNA] < upto:
        acked += mark_arrived(row, f, row[f + at.SND_UNA], rings.UNSENT)
        row[f + at.SND_UNA] += 1
    about = row[rings.segment(row, f, number) + rings.SENT_SEQ]
    if about >= row[f + at.SND_UNA] and number > row[f + at.TRANSMISSIONS] - row[at.RING_SIZE]:
        acked += mark_arrived(row, f, about, rings.SACKED)
    found, late = detect_losses(row, f, number, row[p + at.SEGMENTS_SO_FAR])
    acked += late
    if row[f + at.MODE] != at.OPEN and row[f + at.SND_UNA] >= row[f + at.RECOVER]:
        row[f + at.MODE] = at.OPEN
    if found > 0 and row[f + at.MODE] == at.OPEN:
        congestion.on_loss(w, f, now_ns)
        row[f + at.MODE], row[f + at.RECOVER] = at.RECOVERY, row[f + at.SND_NXT]
    elif full and acked > 0 and row[f + at.MODE] != at.RECOVERY:
        congestion.on_ack(w, f, acked, now_ns)
    if row[f + at.SND_UNA] > row[f + at.ROUND_END]:
        if full and row[f + at.MODE] == at.OPEN and row[f + at.ROUND_SAMPLES] > 0:
            congestion.on_round(
                w,
                f,
                row[f + at.ROUND_RTT_SUM_NS] // row[f + at.ROUND_SAMPLES],
                row[f + at.ROUND_SAMPLES],
            )
        row[f + at.ROUND_END], row[f + at.ROUND_START_NS] = row[f + at.SND_NXT], now_ns
        row[f + at.ROUND_RTT_SUM_NS], row[f + at.ROUND_MIN_RTT_NS], row[f + at.ROUND_SAMPLES] = (
            0,
            at.FOREVER,
            0,
        )
    if advanced:
        row[f + at.BACKOFF] = 0
        restart_rto(row, f, now_ns)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """Everything under way is lost; begin again from one segment (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1)."""
    row = w.row
    if row[f + at.MODE] != at.TIMED_OUT or row[f + at.SND_UNA] >= row[f + at.RECOVER]:
        congestion.on_timeout(w, f, now_ns)
    w.window[f + at.CWND] = congestion.LOSS_WINDOW
    for seq in range(row[f + at.SND_UNA], row[f + at.SND_NXT]):
        slot = rings.segment(row, f, seq)
        if row[slot + rings.SEG_STATE] == rings.IN_FLIGHT:
            row[slot + rings.SEG_STATE] = rings.LOST
            row[f + at.PIPE] -= 1
            row[f + at.LOST] += 1
            row[f + at.SEGMENTS_LOST] += 1
    row[f + at.LOST_HINT], row[f + at.LOSS_SCANNED] = row[f + at.SND_UNA], row[f + at.TRANSMISSIONS]
    row[f + at.MODE], row[f + at.RECOVER] = at.TIMED_OUT, row[f + at.SND_NXT]
    row[f + at.BACKOFF] = min(row[f + at.BACKOFF] + 1, 10)
    row[f + at.TIMEOUTS] += 1
    restart_rto(row, f, now_ns)
