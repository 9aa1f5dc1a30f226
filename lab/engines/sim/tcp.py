"""One subflow: what its sender and its receiver do with a segment and an acknowledgement.

Sender: slow start and congestion avoidance (RFC 5681, the laws), selective acknowledgements (RFC 6675: send while less
is under way than the window), loss found by the order of transmissions (in the manner of RFC 8985; a path keeps the
order, so three later arrivals are a loss, for a segment sent again one), retransmission timer (RFC 6298 with Linux's
floor). Receiver: acknowledges every second segment, at once what is out of order (RFC 5681, section 4.2).
"""

from __future__ import annotations

from lab.engines.sim import heap, hops, laws
from lab.engines.sim.chance import draw
from lab.engines.sim.jit import jit
from lab.engines.sim.layout import (
    ABOUT,
    ABOUT_SEEN,
    ACK_BYTES,
    ACK_ROUTE,
    BACKOFF,
    CWND,
    DATA_NXT,
    DATA_ROUTE,
    DATA_SEEN,
    DELACK_DUE,
    DELACK_EVENT_NS,
    DELACK_NS,
    DSN,
    EVENT_KINDS,
    FRAME_BYTES,
    HELD,
    HINT,
    HOST_NOISE_NS,
    IN_FLIGHT,
    IS_ACK,
    LAST_SENT_NS,
    LATE_IN,
    LOST,
    MODE,
    NOISE_1,
    NOTHING,
    NXT,
    OF_CONNECTION,
    OF_SUBFLOW,
    OPEN,
    PIPE,
    PLACE,
    RCV_NXT,
    RECOVER,
    RECOVERY,
    RING,
    RTO_DUE,
    RTO_NS,
    RTTVAR_NS,
    SACKED,
    SCANNED,
    SEGMENTS_AGAIN,
    SEGMENTS_IN,
    SEGMENTS_LOST,
    SEGMENTS_SENT,
    SEQ,
    SIZE,
    SLOTS,
    SRTT_NS,
    TIMED_OUT,
    TIMEOUTS,
    TIMER_EVENT_NS,
    TIMER_NS,
    TO_RESEND,
    TRANSMISSION,
    TRANSMISSIONS,
    UNA,
    UNACKED,
    UNSENT,
    World,
)

DUP_THRESHOLD = 3  # RFC 5681, section 3.2
ACK_EVERY = 2  # segments, RFC 5681, section 4.2
DELACK_WAIT_NS = 40_000_000  # Linux, TCP_DELACK_MIN
RTO_MARGIN_NS = 200_000_000  # Linux, TCP_RTO_MIN: the timer waits at least this much longer than a round trip
RTO_FIRST_NS = 1_000_000_000  # RFC 6298, (2.1)
RTO_MOST_NS = 120_000_000_000  # Linux, TCP_RTO_MAX


@jit
def place_of(w: World, f: int, number: int) -> int:
    """Where a ring of the subflow keeps this segment or transmission."""
    return w.sub[f + RING] + (number & (w.g[SLOTS] - 1))


@jit
def room(w: World, f: int) -> bool:
    """Whether the window lets one more segment out."""
    return w.sub[f + PIPE] < int(w.window[f + CWND])


@jit
def arm(w: World, f: int, now_ns: int) -> None:
    """Restart the retransmission timer (RFC 6298, (5.1) to (5.3)); its event waits where it is if it comes early enough."""
    if w.sub[f + UNA] == w.sub[f + NXT]:
        w.sub[f + TIMER_NS] = 0
        return
    due_ns = now_ns + min(w.sub[f + RTO_NS] << w.sub[f + BACKOFF], RTO_MOST_NS)
    w.sub[f + TIMER_NS] = due_ns
    if w.sub[f + TIMER_EVENT_NS] == 0 or due_ns < w.sub[f + TIMER_EVENT_NS]:
        w.sub[f + TIMER_EVENT_NS] = due_ns
        heap.push(w, due_ns, f * EVENT_KINDS + RTO_DUE)


@jit
def transmit(w: World, f: int, seq: int, now_ns: int) -> None:
    """Send a segment, for the first time or again; a host is not punctual to the nanosecond."""
    sub = w.sub
    number = sub[f + TRANSMISSIONS]
    sub[f + TRANSMISSIONS] = number + 1
    at, entry = place_of(w, f, seq), place_of(w, f, number)
    w.seg_state[at], w.seg_sent[at] = IN_FLIGHT, number
    w.sent_seq[entry], w.sent_ns[entry] = seq, now_ns
    sub[f + PIPE] += 1
    sub[f + SEGMENTS_SENT] += 1
    p = hops.take(w)
    w.packet[p + OF_SUBFLOW], w.packet[p + PLACE], w.packet[p + IS_ACK] = f, sub[f + DATA_ROUTE], 0
    w.packet[p + SIZE] = w.conn[sub[f + OF_CONNECTION] + FRAME_BYTES]
    w.packet[p + SEQ], w.packet[p + DSN], w.packet[p + TRANSMISSION] = seq, w.seg_dsn[at], number
    leaves_ns = max(sub[f + LAST_SENT_NS], now_ns + draw(sub, f + NOISE_1, w.g[HOST_NOISE_NS])) + 1
    sub[f + LAST_SENT_NS] = leaves_ns
    hops.forward(w, p, leaves_ns, now_ns)
    if sub[f + TIMER_NS] == 0:
        arm(w, f, now_ns)


@jit
def resend(w: World, f: int, now_ns: int) -> None:
    """Send the first lost segment again."""
    sub = w.sub
    seq = max(sub[f + HINT], sub[f + UNA])
    while w.seg_state[place_of(w, f, seq)] != TO_RESEND:
        seq += 1
    sub[f + HINT] = seq + 1
    sub[f + LOST] -= 1
    sub[f + SEGMENTS_AGAIN] += 1
    transmit(w, f, seq, now_ns)


# --- the sender and an acknowledgement


@jit
def measure(w: World, f: int, number: int, now_ns: int) -> None:
    """Round trip and timer (RFC 6298, section 2), exact for every transmission as with time stamps."""
    sub = w.sub
    if number <= sub[f + TRANSMISSIONS] - w.g[SLOTS]:
        return
    sample = now_ns - w.sent_ns[place_of(w, f, number)]
    if sub[f + SRTT_NS] == 0:
        sub[f + SRTT_NS], sub[f + RTTVAR_NS] = sample, sample // 2
    else:
        sub[f + RTTVAR_NS] += (abs(sub[f + SRTT_NS] - sample) - sub[f + RTTVAR_NS]) // 4
        sub[f + SRTT_NS] += (sample - sub[f + SRTT_NS]) // 8
    sub[f + RTO_NS] = sub[f + SRTT_NS] + max(4 * sub[f + RTTVAR_NS], RTO_MARGIN_NS)


@jit
def settle(w: World, f: int, seq: int, state: int) -> int:
    """A segment has arrived: it is no longer under way; 1 if that is news."""
    at = place_of(w, f, seq)
    before = w.seg_state[at]
    if before == IN_FLIGHT:
        w.sub[f + PIPE] -= 1
    elif before == TO_RESEND:
        w.sub[f + LOST] -= 1
    w.seg_state[at] = state
    return 0 if before == SACKED else 1


@jit
def find_lost(w: World, f: int, number: int) -> int:
    """Transmissions long enough before one that arrived are lost, unless they arrived or were sent again; how many are."""
    sub = w.sub
    threshold = min(DUP_THRESHOLD, max(1, sub[f + NXT] - sub[f + UNA] - 1)) if sub[f + MODE] == OPEN else 1
    found = 0
    while sub[f + SCANNED] <= number - threshold:
        k = sub[f + SCANNED]
        seq = w.sent_seq[place_of(w, f, k)]
        at = place_of(w, f, seq)
        if seq >= sub[f + UNA] and w.seg_state[at] == IN_FLIGHT and w.seg_sent[at] == k:
            w.seg_state[at] = TO_RESEND
            sub[f + PIPE] -= 1
            sub[f + LOST] += 1
            sub[f + HINT] = min(sub[f + HINT], seq)
            found += 1
        sub[f + SCANNED] = k + 1
    sub[f + SEGMENTS_LOST] += found
    return found


@jit
def acknowledged(w: World, f: int, p: int, now_ns: int) -> None:
    """An acknowledgement has come to the sender: SEQ is what the receiver waits for, ABOUT the segment that made it answer."""
    sub, packet = w.sub, w.packet
    full = sub[f + PIPE] >= int(w.window[f + CWND])
    number, upto = packet[p + TRANSMISSION], packet[p + SEQ]
    measure(w, f, number, now_ns)
    acked = 0
    advanced = upto > sub[f + UNA]
    while sub[f + UNA] < upto:
        acked += settle(w, f, sub[f + UNA], UNSENT)
        sub[f + UNA] += 1
    if packet[p + ABOUT] >= sub[f + UNA]:
        acked += settle(w, f, packet[p + ABOUT], SACKED)
    found = find_lost(w, f, number)
    if sub[f + MODE] != OPEN and sub[f + UNA] >= sub[f + RECOVER]:
        sub[f + MODE] = OPEN
    if found > 0 and sub[f + MODE] == OPEN:
        laws.on_loss(w, f, now_ns)
        sub[f + MODE], sub[f + RECOVER] = RECOVERY, sub[f + NXT]
    elif full and acked > 0 and sub[f + MODE] != RECOVERY:
        laws.on_ack(w, f, acked, now_ns)
    if advanced:
        sub[f + BACKOFF] = 0
        arm(w, f, now_ns)


@jit
def timed_out(w: World, f: int, now_ns: int) -> None:
    """Everything under way is lost; begin again from one segment (RFC 6298, (5.4) to (5.6); RFC 5681, section 3.1)."""
    sub = w.sub
    if sub[f + MODE] != TIMED_OUT or sub[f + UNA] >= sub[f + RECOVER]:
        laws.on_timeout(w, f, now_ns)
    w.window[f + CWND] = laws.MIN_WINDOW
    for seq in range(sub[f + UNA], sub[f + NXT]):
        at = place_of(w, f, seq)
        if w.seg_state[at] == IN_FLIGHT:
            w.seg_state[at] = TO_RESEND
            sub[f + PIPE] -= 1
            sub[f + LOST] += 1
            sub[f + SEGMENTS_LOST] += 1
    sub[f + HINT], sub[f + SCANNED] = sub[f + UNA], sub[f + TRANSMISSIONS]
    sub[f + MODE], sub[f + RECOVER] = TIMED_OUT, sub[f + NXT]
    sub[f + BACKOFF] = min(sub[f + BACKOFF] + 1, 10)
    sub[f + TIMEOUTS] += 1
    arm(w, f, now_ns)


# --- the receiver


@jit
def acknowledge(w: World, f: int, now_ns: int) -> int:
    """Send an acknowledgement of what has arrived; returns it if it is at its first stop now."""
    sub = w.sub
    c = sub[f + OF_CONNECTION]
    sub[f + UNACKED], sub[f + DELACK_NS] = 0, 0
    p = hops.take(w)
    w.packet[p + OF_SUBFLOW], w.packet[p + PLACE], w.packet[p + IS_ACK] = f, sub[f + ACK_ROUTE], 1
    w.packet[p + SIZE], w.packet[p + SEQ], w.packet[p + DSN] = w.conn[c + ACK_BYTES], sub[f + RCV_NXT], w.conn[c + DATA_NXT]
    w.packet[p + TRANSMISSION], w.packet[p + ABOUT] = sub[f + DATA_SEEN], sub[f + ABOUT_SEEN]
    return hops.forward(w, p, now_ns, now_ns)


@jit
def received(w: World, f: int, p: int) -> bool:
    """A segment has come to the receiver; whether to acknowledge it at once."""
    sub = w.sub
    seq = w.packet[p + SEQ]
    at = place_of(w, f, seq)
    sub[f + SEGMENTS_IN] += 1
    sub[f + DATA_SEEN], sub[f + ABOUT_SEEN] = w.packet[p + TRANSMISSION], seq
    held = sub[f + HELD]
    if seq == sub[f + RCV_NXT]:
        sub[f + RCV_NXT] = seq + 1
        while sub[f + HELD] > 0 and w.seg_got[place_of(w, f, sub[f + RCV_NXT])] == 1:
            w.seg_got[place_of(w, f, sub[f + RCV_NXT])] = 0
            sub[f + HELD] -= 1
            sub[f + RCV_NXT] += 1
        sub[f + UNACKED] += 1
        return held > 0 or sub[f + UNACKED] >= ACK_EVERY
    if seq > sub[f + RCV_NXT] and w.seg_got[at] == 0:
        w.seg_got[at] = 1
        sub[f + HELD] += 1
        sub[f + LATE_IN] += 1
    return True


@jit
def wait_to_acknowledge(w: World, f: int, now_ns: int) -> None:
    """The delayed acknowledgement's timer, one event at a time."""
    sub = w.sub
    sub[f + DELACK_NS] = now_ns + DELACK_WAIT_NS
    if sub[f + DELACK_EVENT_NS] == 0:
        sub[f + DELACK_EVENT_NS] = sub[f + DELACK_NS]
        heap.push(w, sub[f + DELACK_NS], f * EVENT_KINDS + DELACK_DUE)


@jit
def delack_due(w: World, f: int, now_ns: int) -> int:
    """The timer of a delayed acknowledgement: answer, or wait on; returns the answer if it is at its first stop now."""
    sub = w.sub
    sub[f + DELACK_EVENT_NS] = 0
    if sub[f + DELACK_NS] == 0:
        return NOTHING
    if now_ns >= sub[f + DELACK_NS]:
        return acknowledge(w, f, now_ns)
    sub[f + DELACK_EVENT_NS] = sub[f + DELACK_NS]
    heap.push(w, sub[f + DELACK_NS], f * EVENT_KINDS + DELACK_DUE)
    return NOTHING


@jit
def rto_due(w: World, f: int, now_ns: int) -> bool:
    """The timer's event: whether the timer has really run out."""
    sub = w.sub
    if now_ns != sub[f + TIMER_EVENT_NS]:
        return False  # an earlier event has taken its place
    sub[f + TIMER_EVENT_NS] = 0
    if sub[f + TIMER_NS] > now_ns:
        sub[f + TIMER_EVENT_NS] = sub[f + TIMER_NS]
        heap.push(w, sub[f + TIMER_NS], f * EVENT_KINDS + RTO_DUE)
        return False
    return sub[f + TIMER_NS] > 0
