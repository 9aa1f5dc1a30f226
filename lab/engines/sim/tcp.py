"""One subflow: what its sender and its receiver do with a segment and an acknowledgement.

Sender: slow start and congestion avoidance (RFC 5681, the laws), selective acknowledgements (RFC 2018: each tells of all
that has arrived; RFC 6675: send while less is under way than the window, first what is lost, then what is new). Losses are
found by the order of transmissions, which finds a lost retransmission too (RFC 8985): three later arrivals are a loss, in
recovery one, as in Linux while it has seen no other order (tcp_rack_reo_wnd); a path keeps the order. Retransmission timer
(RFC 6298 with Linux's floor). An idle sender begins with a smaller window (RFC 2861). Receiver: acknowledges every second
segment, at once what is out of order (RFC 5681, section 4.2).
"""

from __future__ import annotations

from lab.engines.sim import heap, hops, laws, timers
from lab.engines.sim import layout as at
from lab.engines.sim.chance import draw
from lab.engines.sim.jit import jit

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
ACK_EVERY = 2  # segments, RFC 5681, section 4.2
DELACK_WAIT_NS = 40_000_000  # Linux, TCP_DELACK_MIN
RTO_MARGIN_NS = 200_000_000  # Linux, TCP_RTO_MIN: the timer waits at least this much longer than a round trip
RTO_MOST_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
FIRST_WINDOW = 10.0  # segments, RFC 6928


@jit
def place_of(w: at.World, f: int, number: int) -> int:
    """Where a ring of the subflow keeps this segment or transmission."""
    return w.sub[f + at.RING] + (number & (w.g[at.SLOTS] - 1))


@jit
def room(w: at.World, f: int) -> bool:
    """Whether the window, and the pace the controller expects, let one more segment out."""
    return w.sub[f + at.PIPE] < int(w.window[f + at.CWND]) and w.sub[f + at.PACED_NS] <= w.g[at.NOW]


@jit
def arm(w: at.World, f: int, now_ns: int) -> None:
    """Restart the retransmission timer (RFC 6298, (5.1) to (5.3))."""
    if w.sub[f + at.UNA] == w.sub[f + at.NXT]:
        w.sub[f + at.TIMER_NS] = 0
        return
    due_ns = now_ns + min(w.sub[f + at.RTO_NS] << w.sub[f + at.BACKOFF], RTO_MOST_NS)
    timers.start(w, w.sub, f + at.TIMER_NS, due_ns, f * at.EVENT_KINDS + at.RTO_DUE)


@jit
def transmit(w: at.World, f: int, seq: int, now_ns: int) -> None:
    """Send a segment, for the first time or again; a host is not punctual to the nanosecond."""
    sub = w.sub
    number = sub[f + at.TRANSMISSIONS]
    sub[f + at.TRANSMISSIONS] = number + 1
    slot, entry = place_of(w, f, seq), place_of(w, f, number)
    w.seg_state[slot], w.seg_sent[slot] = at.IN_FLIGHT, number
    w.sent_seq[entry], w.sent_ns[entry] = seq, now_ns
    sub[f + at.PIPE] += 1
    sub[f + at.SEGMENTS_SENT] += 1
    p = hops.take(w)
    w.packet[p + at.OF_SUBFLOW], w.packet[p + at.PLACE], w.packet[p + at.IS_ACK] = f, sub[f + at.DATA_ROUTE], 0
    w.packet[p + at.SIZE] = w.conn[sub[f + at.OF_CONNECTION] + at.FRAME_BYTES]
    w.packet[p + at.SEQ], w.packet[p + at.DSN], w.packet[p + at.TRANSMISSION] = seq, w.seg_dsn[slot], number
    leaves_ns = max(sub[f + at.LAST_SENT_NS], now_ns + draw(sub, f + at.NOISE_1, w.g[at.HOST_NOISE_NS])) + 1
    sub[f + at.LAST_SENT_NS] = leaves_ns
    if sub[f + at.EXPECTED_BPS] > 0 and w.g[at.EXPECTS_BY_WINDOW] == 0:
        sub[f + at.PACED_NS] = now_ns + w.packet[p + at.SIZE] * 8 * at.NS_PER_S // sub[f + at.EXPECTED_BPS]
        heap.push(w, sub[f + at.PACED_NS], sub[f + at.OF_CONNECTION] * at.EVENT_KINDS + at.PUSH)
    hops.forward(w, p, leaves_ns, now_ns)
    if sub[f + at.TIMER_NS] == 0:
        arm(w, f, now_ns)


@jit
def begin_after_pause(w: at.World, f: int, now_ns: int) -> None:
    """Nothing is under way: the window halves for every timeout of the pause, to the first one at least; the threshold
    remembers it (RFC 2861; tcp_cwnd_restart). Cubic's clock has stood still (bictcp_cwnd_event)."""
    sub, window = w.sub, w.window
    pause_ns = now_ns - sub[f + at.LAST_SENT_NS]
    if sub[f + at.LAST_SENT_NS] == 0 or pause_ns <= 0:
        return
    if sub[f + at.EPOCH_NS] > 0:
        sub[f + at.EPOCH_NS] = min(sub[f + at.EPOCH_NS] + pause_ns, now_ns)
    pause_ns -= sub[f + at.RTO_NS]
    if pause_ns > 0:
        window[f + at.SSTHRESH] = max(window[f + at.SSTHRESH], 0.75 * window[f + at.CWND])
    while pause_ns > 0 and window[f + at.CWND] > FIRST_WINDOW:
        window[f + at.CWND] = max(window[f + at.CWND] / 2.0, FIRST_WINDOW)
        pause_ns -= sub[f + at.RTO_NS]


@jit
def first_lost(w: at.World, f: int) -> int:
    """The first lost segment, which is about to be sent again."""
    sub = w.sub
    seq = max(sub[f + at.HINT], sub[f + at.UNA])
    while w.seg_state[place_of(w, f, seq)] != at.TO_RESEND:
        seq += 1
    sub[f + at.HINT] = seq + 1
    sub[f + at.LOST] -= 1
    sub[f + at.SEGMENTS_AGAIN] += 1
    return seq


@jit
def note_use(w: at.World, f: int, has_sent: bool) -> None:
    """Whether the window held the sender back in this round, and if not, how much was under way at most (tcp_cwnd_validate)."""
    sub = w.sub
    limited, out = sub[f + at.PIPE] >= int(w.window[f + at.CWND]), sub[f + at.NXT] - sub[f + at.UNA]
    news = sub[f + at.UNA] >= sub[f + at.USED_UNTIL] or (sub[f + at.LIMITED] == 0 and out > sub[f + at.MOST_OUT])
    if limited or (has_sent and news):
        sub[f + at.LIMITED], sub[f + at.MOST_OUT], sub[f + at.USED_UNTIL] = int(limited), out, sub[f + at.NXT]


@jit
def may_grow(w: at.World, f: int) -> bool:
    """The window was full; or it is slow start, and the window not yet twice what was under way (tcp_is_cwnd_limited)."""
    window = w.window
    doubles = window[f + at.CWND] < window[f + at.SSTHRESH] and window[f + at.CWND] < 2 * w.sub[f + at.MOST_OUT]
    return w.sub[f + at.LIMITED] == 1 or doubles


@jit
def send(w: at.World, f: int, left: int, now_ns: int) -> int:
    """Send what is lost, then what is new, as far as the window goes (RFC 6675, NextSeg); how many more may be sent in this go."""
    sub, had = w.sub, left
    while left > 0 and (sub[f + at.LOST] > 0 or sub[f + at.NXT] < sub[f + at.END]) and room(w, f):
        if sub[f + at.LOST] > 0:
            seq = first_lost(w, f)
        else:
            if sub[f + at.UNA] == sub[f + at.NXT]:
                begin_after_pause(w, f, now_ns)
            seq = sub[f + at.NXT]
            sub[f + at.NXT] = seq + 1
        transmit(w, f, seq, now_ns)
        left -= 1
    note_use(w, f, left < had)
    return left


# --- the sender and an acknowledgement


@jit
def measure(w: at.World, f: int, number: int, now_ns: int) -> None:
    """Round trip and timer (RFC 6298, section 2), exact for every transmission as with time stamps."""
    sub = w.sub
    if number <= sub[f + at.TRANSMISSIONS] - w.g[at.SLOTS]:
        return
    sample = now_ns - w.sent_ns[place_of(w, f, number)]
    sub[f + at.RTTVAR_NS] += (abs(sub[f + at.SRTT_NS] - sample) - sub[f + at.RTTVAR_NS]) // 4
    sub[f + at.SRTT_NS] += (sample - sub[f + at.SRTT_NS]) // 8
    sub[f + at.BASE_RTT_NS] = min(sub[f + at.BASE_RTT_NS], sample)
    sub[f + at.ROUND_LEAST_NS] = min(sub[f + at.ROUND_LEAST_NS], sample)
    sub[f + at.ROUND_SUM_NS] += sample
    sub[f + at.ROUND_SAMPLES] += 1
    sub[f + at.RTO_NS] = sub[f + at.SRTT_NS] + max(4 * sub[f + at.RTTVAR_NS], RTO_MARGIN_NS)


@jit
def settle(w: at.World, f: int, seq: int, state: int) -> int:
    """A segment has arrived: it is no longer under way; 1 if that is news. UNSENT: its place is free for another."""
    slot = place_of(w, f, seq)
    before = w.seg_state[slot]
    if state == at.UNSENT:
        w.seg_got[slot] = 0
    if before == at.IN_FLIGHT:
        w.sub[f + at.PIPE] -= 1
    elif before == at.TO_RESEND:
        w.sub[f + at.LOST] -= 1
    w.seg_state[slot] = state
    return 0 if before == at.SACKED else 1


@jit
def find_lost(w: at.World, f: int, number: int, arrivals: int) -> tuple[int, int]:
    """Transmissions long enough before one that arrived are lost, unless they arrived or were sent again; how many are, and how
    many turn out to be among the first so many arrivals, which an acknowledgement told of that was lost."""
    sub = w.sub
    threshold = min(DUP_THRESHOLD, max(1, sub[f + at.NXT] - sub[f + at.UNA] - 1)) if sub[f + at.MODE] == at.OPEN else 1
    found, acked = 0, 0
    while sub[f + at.SCANNED] <= number - threshold:
        k = sub[f + at.SCANNED]
        seq = w.sent_seq[place_of(w, f, k)]
        slot = place_of(w, f, seq)
        if seq < sub[f + at.UNA] or w.seg_state[slot] != at.IN_FLIGHT or w.seg_sent[slot] != k:
            pass
        elif 0 < w.seg_got[slot] <= arrivals:
            acked += settle(w, f, seq, at.SACKED)
        else:
            w.seg_state[slot] = at.TO_RESEND
            sub[f + at.PIPE] -= 1
            sub[f + at.LOST] += 1
            sub[f + at.HINT] = min(sub[f + at.HINT], seq)
            found += 1
        sub[f + at.SCANNED] = k + 1
    sub[f + at.SEGMENTS_LOST] += found
    return found, acked


@jit
def acknowledged(w: at.World, f: int, p: int, now_ns: int) -> None:
    """An acknowledgement has come to the sender: SEQ is what the receiver waits for, TRANSMISSION what made it answer."""
    sub, packet = w.sub, w.packet
    full = may_grow(w, f)
    number, upto = packet[p + at.TRANSMISSION], packet[p + at.SEQ]
    sub[f + at.ACKS_IN] += 1
    measure(w, f, number, now_ns)
    acked = 0
    advanced = upto > sub[f + at.UNA]
    while sub[f + at.UNA] < upto:
        acked += settle(w, f, sub[f + at.UNA], at.UNSENT)
        sub[f + at.UNA] += 1
    about = w.sent_seq[place_of(w, f, number)]
    if about >= sub[f + at.UNA] and number > sub[f + at.TRANSMISSIONS] - w.g[at.SLOTS]:
        acked += settle(w, f, about, at.SACKED)
    found, late = find_lost(w, f, number, packet[p + at.ARRIVALS])
    acked += late
    if sub[f + at.MODE] != at.OPEN and sub[f + at.UNA] >= sub[f + at.RECOVER]:
        sub[f + at.MODE] = at.OPEN
    if found > 0 and sub[f + at.MODE] == at.OPEN:
        laws.on_loss(w, f, now_ns)
        sub[f + at.MODE], sub[f + at.RECOVER] = at.RECOVERY, sub[f + at.NXT]
    elif full and acked > 0 and sub[f + at.MODE] != at.RECOVERY:
        laws.on_ack(w, f, acked, now_ns)
    if sub[f + at.UNA] > sub[f + at.ROUND_END]:
        if full and sub[f + at.MODE] == at.OPEN and sub[f + at.ROUND_SAMPLES] > 0:
            laws.on_round(w, f, sub[f + at.ROUND_SUM_NS] // sub[f + at.ROUND_SAMPLES], sub[f + at.ROUND_SAMPLES])
        sub[f + at.ROUND_END], sub[f + at.ROUND_BEGAN_NS] = sub[f + at.NXT], now_ns
        sub[f + at.ROUND_SUM_NS], sub[f + at.ROUND_LEAST_NS], sub[f + at.ROUND_SAMPLES] = 0, at.FOREVER, 0
    if advanced:
        sub[f + at.BACKOFF] = 0
        arm(w, f, now_ns)


@jit
def timed_out(w: at.World, f: int, now_ns: int) -> None:
    """Everything under way is lost; begin again from one segment (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1)."""
    sub = w.sub
    if sub[f + at.MODE] != at.TIMED_OUT or sub[f + at.UNA] >= sub[f + at.RECOVER]:
        laws.on_timeout(w, f, now_ns)
    w.window[f + at.CWND] = laws.MIN_WINDOW
    for seq in range(sub[f + at.UNA], sub[f + at.NXT]):
        slot = place_of(w, f, seq)
        if w.seg_state[slot] == at.IN_FLIGHT:
            w.seg_state[slot] = at.TO_RESEND
            sub[f + at.PIPE] -= 1
            sub[f + at.LOST] += 1
            sub[f + at.SEGMENTS_LOST] += 1
    sub[f + at.HINT], sub[f + at.SCANNED] = sub[f + at.UNA], sub[f + at.TRANSMISSIONS]
    sub[f + at.MODE], sub[f + at.RECOVER] = at.TIMED_OUT, sub[f + at.NXT]
    sub[f + at.BACKOFF] = min(sub[f + at.BACKOFF] + 1, 10)
    sub[f + at.TIMEOUTS] += 1
    arm(w, f, now_ns)


# --- the receiver


@jit
def acknowledge(w: at.World, f: int, now_ns: int) -> int:
    """Send an acknowledgement of what has arrived; returns it if it is at its first stop now."""
    sub = w.sub
    c = sub[f + at.OF_CONNECTION]
    sub[f + at.UNACKED], sub[f + at.DELACK_NS] = 0, 0
    p = hops.take(w)
    w.packet[p + at.OF_SUBFLOW], w.packet[p + at.PLACE], w.packet[p + at.IS_ACK] = f, sub[f + at.ACK_ROUTE], 1
    w.packet[p + at.SIZE], w.packet[p + at.SEQ], w.packet[p + at.DSN] = (
        w.conn[c + at.ACK_BYTES],
        sub[f + at.RCV_NXT],
        w.conn[c + at.DATA_NXT],
    )
    w.packet[p + at.TRANSMISSION], w.packet[p + at.ARRIVALS] = sub[f + at.DATA_SEEN], sub[f + at.SEGMENTS_IN]
    return hops.forward(w, p, now_ns, now_ns)


@jit
def received(w: at.World, f: int, p: int) -> bool:
    """A segment has come to the receiver; whether to acknowledge it at once."""
    sub = w.sub
    seq = w.packet[p + at.SEQ]
    slot = place_of(w, f, seq)
    sub[f + at.SEGMENTS_IN] += 1
    sub[f + at.DATA_SEEN] = w.packet[p + at.TRANSMISSION]
    held = sub[f + at.HELD]
    if seq == sub[f + at.RCV_NXT]:
        w.seg_got[slot] = sub[f + at.SEGMENTS_IN]
        sub[f + at.RCV_NXT] = seq + 1
        while sub[f + at.HELD] > 0 and w.seg_got[place_of(w, f, sub[f + at.RCV_NXT])] > 0:
            sub[f + at.HELD] -= 1
            sub[f + at.RCV_NXT] += 1
        sub[f + at.UNACKED] += 1
        return held > 0 or sub[f + at.UNACKED] >= ACK_EVERY
    if seq > sub[f + at.RCV_NXT] and w.seg_got[slot] == 0:
        w.seg_got[slot] = sub[f + at.SEGMENTS_IN]
        sub[f + at.HELD] += 1
        sub[f + at.LATE_IN] += 1
    return True


@jit
def wait_to_acknowledge(w: at.World, f: int, now_ns: int) -> None:
    """The delayed acknowledgement's timer."""
    timers.start(w, w.sub, f + at.DELACK_NS, now_ns + DELACK_WAIT_NS, f * at.EVENT_KINDS + at.DELACK_DUE)


@jit
def delack_due(w: at.World, f: int, now_ns: int) -> int:
    """The event of a delayed acknowledgement: answer, or wait on; returns the answer if it is at its first stop now."""
    ran_out = timers.has_run_out(w, w.sub, f + at.DELACK_NS, now_ns, f * at.EVENT_KINDS + at.DELACK_DUE)
    return acknowledge(w, f, now_ns) if ran_out else at.NOTHING
