"""One subflow's sender: what it does with a segment and an acknowledgement; the other end is in `receiver`.

Slow start and congestion avoidance (RFC 5681, the laws), selective acknowledgements (RFC 2018: each tells of all
that has arrived; RFC 6675: send while less is under way than the window, first what is lost, then what is new). Losses are
found by the order of transmissions, which finds a lost retransmission too (RFC 8985): three later arrivals are a loss, in
recovery one, as in Linux while it has seen no other order (tcp_rack_reo_wnd); a path keeps the order. Retransmission timer
(RFC 6298 with Linux's floor). An idle sender begins with a smaller window (RFC 2861).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, events, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links as hops
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import draw

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
RTO_MARGIN_NS = (
    200_000_000  # Linux, TCP_RTO_MIN: the timer waits at least this much longer than a round trip
)
RTO_MOST_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
FIRST_WINDOW = 10.0  # segments, RFC 6928


@jit
def queue(row: Ints, f: int, dsn: int) -> None:
    """Give a segment to a subflow."""
    end = row[f + at.END]
    row[rings.of_subflow(row, f, end) + rings.SEG_DSN] = dsn
    row[f + at.END] = end + 1


@jit
def room(w: at.World, f: int) -> bool:
    """Whether the window, and the pace the controller expects, let one more segment out."""
    row = w.row
    return row[f + at.PIPE] < int(w.window[f + at.CWND]) and row[f + at.PACED_NS] <= row[at.NOW]


@jit
def arm(row: Ints, f: int, now_ns: int) -> None:
    """Restart the retransmission timer (RFC 6298, (5.1) to (5.3))."""
    if row[f + at.UNA] == row[f + at.NXT]:
        row[f + at.TIMER_NS] = 0
        return
    due_ns = now_ns + min(row[f + at.RTO_NS] << row[f + at.BACKOFF], RTO_MOST_NS)
    events.start_timer(row, f + at.TIMER_NS, due_ns, f * at.EVENT_KINDS + at.RTO_DUE)


@jit
def transmit(row: Ints, f: int, seq: int, now_ns: int) -> None:
    """Send a segment, for the first time or again; a host is not punctual to the nanosecond."""
    number = row[f + at.TRANSMISSIONS]
    row[f + at.TRANSMISSIONS] = number + 1
    slot, entry = rings.of_subflow(row, f, seq), rings.of_subflow(row, f, number)
    row[slot + rings.SEG_STATE], row[slot + rings.SEG_SENT] = rings.IN_FLIGHT, number
    row[entry + rings.SENT_SEQ], row[entry + rings.SENT_NS] = seq, now_ns
    row[f + at.PIPE] += 1
    row[f + at.SEGMENTS_SENT] += 1
    p = hops.take(row)
    row[p + at.OF_SUBFLOW], row[p + at.PLACE], row[p + at.IS_ACK] = f, row[f + at.DATA_ROUTE], 0
    row[p + at.SIZE] = row[row[f + at.OF_CONNECTION] + at.FRAME_BYTES]
    row[p + at.SEQ], row[p + at.DSN], row[p + at.TRANSMISSION] = (
        seq,
        row[slot + rings.SEG_DSN],
        number,
    )
    leaves_ns = (
        max(row[f + at.LAST_SENT_NS], now_ns + draw(row, f + at.NOISE_1, row[at.HOST_NOISE_NS])) + 1
    )
    row[f + at.LAST_SENT_NS] = leaves_ns
    if row[f + at.EXPECTED_BPS] > 0 and row[at.EXPECTS_BY_WINDOW] == 0:
        row[f + at.PACED_NS] = (
            now_ns + row[p + at.SIZE] * 8 * at.NS_PER_S // row[f + at.EXPECTED_BPS]
        )
        events.push(row, row[f + at.PACED_NS], row[f + at.OF_CONNECTION] * at.EVENT_KINDS + at.PUSH)
    hops.forward(row, p, leaves_ns, now_ns)
    if row[f + at.TIMER_NS] == 0:
        arm(row, f, now_ns)


@jit
def begin_after_pause(w: at.World, f: int, now_ns: int) -> None:
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
def first_lost(row: Ints, f: int) -> int:
    """The first lost segment, which is about to be sent again."""
    seq = max(row[f + at.HINT], row[f + at.UNA])
    while row[rings.of_subflow(row, f, seq) + rings.SEG_STATE] != rings.TO_RESEND:
        seq += 1
    row[f + at.HINT] = seq + 1
    row[f + at.LOST] -= 1
    row[f + at.SEGMENTS_AGAIN] += 1
    return seq


@jit
def note_use(w: at.World, f: int, has_sent: bool) -> None:
    """Whether the window held the sender back in this round, and if not, how much was under way at most (tcp_cwnd_validate)."""
    row = w.row
    limited, out = row[f + at.PIPE] >= int(w.window[f + at.CWND]), row[f + at.NXT] - row[f + at.UNA]
    news = row[f + at.UNA] >= row[f + at.USED_UNTIL] or (
        row[f + at.LIMITED] == 0 and out > row[f + at.MOST_OUT]
    )
    if limited or (has_sent and news):
        row[f + at.LIMITED], row[f + at.MOST_OUT], row[f + at.USED_UNTIL] = (
            int(limited),
            out,
            row[f + at.NXT],
        )


@jit
def may_grow(w: at.World, f: int) -> bool:
    """The window was full; or it is slow start, and the window not yet twice what was under way (tcp_is_cwnd_limited)."""
    window = w.window
    doubles = (
        window[f + at.CWND] < window[f + at.SSTHRESH]
        and window[f + at.CWND] < 2 * w.row[f + at.MOST_OUT]
    )
    return w.row[f + at.LIMITED] == 1 or doubles


@jit
def send(w: at.World, f: int, most: int, now_ns: int) -> int:
    """Send what is lost, then what is new, as far as the window goes (RFC 6675, NextSeg), so many at most; how many were sent."""
    row, sent = w.row, 0
    while (
        sent < most and (row[f + at.LOST] > 0 or row[f + at.NXT] < row[f + at.END]) and room(w, f)
    ):
        if row[f + at.LOST] > 0:
            seq = first_lost(w.row, f)
        else:
            if row[f + at.UNA] == row[f + at.NXT]:
                begin_after_pause(w, f, now_ns)
            seq = row[f + at.NXT]
            row[f + at.NXT] = seq + 1
        transmit(w.row, f, seq, now_ns)
        sent += 1
    note_use(w, f, sent > 0)
    return sent


# --- the sender and an acknowledgement


@jit
def measure(row: Ints, f: int, number: int, now_ns: int) -> None:
    """Round trip and timer (RFC 6298, section 2), exact for every transmission as with time stamps."""
    if number <= row[f + at.TRANSMISSIONS] - row[at.SLOTS]:
        return
    sample = now_ns - row[rings.of_subflow(row, f, number) + rings.SENT_NS]
    row[f + at.RTTVAR_NS] += (abs(row[f + at.SRTT_NS] - sample) - row[f + at.RTTVAR_NS]) // 4
    row[f + at.SRTT_NS] += (sample - row[f + at.SRTT_NS]) // 8
    row[f + at.BASE_RTT_NS] = min(row[f + at.BASE_RTT_NS], sample)
    row[f + at.ROUND_LEAST_NS] = min(row[f + at.ROUND_LEAST_NS], sample)
    row[f + at.ROUND_SUM_NS] += sample
    row[f + at.ROUND_SAMPLES] += 1
    row[f + at.RTO_NS] = row[f + at.SRTT_NS] + max(4 * row[f + at.RTTVAR_NS], RTO_MARGIN_NS)


@jit
def settle(row: Ints, f: int, seq: int, state: int) -> int:
    """A segment has arrived: it is no longer under way; 1 if that is news. UNSENT: its place is free for another."""
    slot = rings.of_subflow(row, f, seq)
    before = row[slot + rings.SEG_STATE]
    if state == rings.UNSENT:
        row[slot + rings.SEG_GOT] = 0
    if before == rings.IN_FLIGHT:
        row[f + at.PIPE] -= 1
    elif before == rings.TO_RESEND:
        row[f + at.LOST] -= 1
    row[slot + rings.SEG_STATE] = state
    return 0 if before == rings.SACKED else 1


@jit
def find_lost(row: Ints, f: int, number: int, arrivals: int) -> tuple[int, int]:
    """Transmissions long enough before one that arrived are lost, unless they arrived or were sent again; how many are, and how
    many turn out to be among the first so many arrivals, which an acknowledgement told of that was lost."""
    threshold = (
        min(DUP_THRESHOLD, max(1, row[f + at.NXT] - row[f + at.UNA] - 1))
        if row[f + at.MODE] == at.OPEN
        else 1
    )
    found, acked = 0, 0
    while row[f + at.SCANNED] <= number - threshold:
        k = row[f + at.SCANNED]
        seq = row[rings.of_subflow(row, f, k) + rings.SENT_SEQ]
        slot = rings.of_subflow(row, f, seq)
        if (
            seq < row[f + at.UNA]
            or row[slot + rings.SEG_STATE] != rings.IN_FLIGHT
            or row[slot + rings.SEG_SENT] != k
        ):
            pass
        elif 0 < row[slot + rings.SEG_GOT] <= arrivals:
            acked += settle(row, f, seq, rings.SACKED)
        else:
            row[slot + rings.SEG_STATE] = rings.TO_RESEND
            row[f + at.PIPE] -= 1
            row[f + at.LOST] += 1
            row[f + at.HINT] = min(row[f + at.HINT], seq)
            found += 1
        row[f + at.SCANNED] = k + 1
    row[f + at.SEGMENTS_LOST] += found
    return found, acked


@jit
def acknowledged(w: at.World, f: int, p: int, now_ns: int) -> None:
    """An acknowledgement has come to the sender: SEQ is what the receiver waits for, TRANSMISSION what made it answer."""
    row = w.row
    full = may_grow(w, f)
    number, upto = row[p + at.TRANSMISSION], row[p + at.SEQ]
    row[f + at.ACKS_IN] += 1
    measure(row, f, number, now_ns)
    acked = 0
    advanced = upto > row[f + at.UNA]
    while row[f + at.UNA] < upto:
        acked += settle(row, f, row[f + at.UNA], rings.UNSENT)
        row[f + at.UNA] += 1
    about = row[rings.of_subflow(row, f, number) + rings.SENT_SEQ]
    if about >= row[f + at.UNA] and number > row[f + at.TRANSMISSIONS] - row[at.SLOTS]:
        acked += settle(row, f, about, rings.SACKED)
    found, late = find_lost(row, f, number, row[p + at.ARRIVALS])
    acked += late
    if row[f + at.MODE] != at.OPEN and row[f + at.UNA] >= row[f + at.RECOVER]:
        row[f + at.MODE] = at.OPEN
    if found > 0 and row[f + at.MODE] == at.OPEN:
        congestion.on_loss(w, f, now_ns)
        row[f + at.MODE], row[f + at.RECOVER] = at.RECOVERY, row[f + at.NXT]
    elif full and acked > 0 and row[f + at.MODE] != at.RECOVERY:
        congestion.on_ack(w, f, acked, now_ns)
    if row[f + at.UNA] > row[f + at.ROUND_END]:
        if full and row[f + at.MODE] == at.OPEN and row[f + at.ROUND_SAMPLES] > 0:
            congestion.on_round(
                w,
                f,
                row[f + at.ROUND_SUM_NS] // row[f + at.ROUND_SAMPLES],
                row[f + at.ROUND_SAMPLES],
            )
        row[f + at.ROUND_END], row[f + at.ROUND_BEGAN_NS] = row[f + at.NXT], now_ns
        row[f + at.ROUND_SUM_NS], row[f + at.ROUND_LEAST_NS], row[f + at.ROUND_SAMPLES] = (
            0,
            at.FOREVER,
            0,
        )
    if advanced:
        row[f + at.BACKOFF] = 0
        arm(row, f, now_ns)


@jit
def timed_out(w: at.World, f: int, now_ns: int) -> None:
    """Everything under way is lost; begin again from one segment (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1)."""
    row = w.row
    if row[f + at.MODE] != at.TIMED_OUT or row[f + at.UNA] >= row[f + at.RECOVER]:
        congestion.on_timeout(w, f, now_ns)
    w.window[f + at.CWND] = congestion.LOSS_WINDOW
    for seq in range(row[f + at.UNA], row[f + at.NXT]):
        slot = rings.of_subflow(row, f, seq)
        if row[slot + rings.SEG_STATE] == rings.IN_FLIGHT:
            row[slot + rings.SEG_STATE] = rings.TO_RESEND
            row[f + at.PIPE] -= 1
            row[f + at.LOST] += 1
            row[f + at.SEGMENTS_LOST] += 1
    row[f + at.HINT], row[f + at.SCANNED] = row[f + at.UNA], row[f + at.TRANSMISSIONS]
    row[f + at.MODE], row[f + at.RECOVER] = at.TIMED_OUT, row[f + at.NXT]
    row[f + at.BACKOFF] = min(row[f + at.BACKOFF] + 1, 10)
    row[f + at.TIMEOUTS] += 1
    arm(row, f, now_ns)
