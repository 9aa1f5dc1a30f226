"""A connection: which subflow carries the next segment, how the receiver puts them in order, what is sent again elsewhere.

1) a subflow that has lost segments sends them again first
2) of the subflows whose window has room, the scheduler takes one: the lowest round trip, or each in turn
3) it carries what another subflow's timer gave up, or else the next segment, if the application has handed it over and
   the receiver has room (receive window: the data acknowledgement plus the buffer; RFC 8684, section 3.3.4)
"""

from __future__ import annotations

from lab.engines.sim import heap, hops, tcp
from lab.engines.sim.jit import jit
from lab.engines.sim.layout import (
    AGAIN_COUNT,
    AGAIN_HEAD,
    APP_DUE,
    APP_EVENT_NS,
    BACKOFF,
    BUFFERED,
    BUFFERED_MAX,
    CLOSED,
    CONN_RING,
    CONN_STATE,
    COUNT,
    CREDIT,
    DATA_NXT,
    DATA_UNA,
    DEMAND_BPS,
    DONE_NS,
    DSN,
    ESTABLISHED,
    EVENT_KINDS,
    FIRST,
    HANDED,
    IS_ACK,
    LOST,
    MODE,
    NEXT_DSN,
    NOTHING,
    NS_PER_S,
    NXT,
    OF_CONNECTION,
    OF_SUBFLOW,
    PUSH,
    PUSH_DUE,
    REINJECTED,
    ROUND_ROBIN,
    RUNNING,
    SCHEDULER,
    SEGMENT_BYTES,
    SLOTS,
    SRTT_NS,
    STATE,
    SUB_FIELDS,
    TIMED_OUT,
    TO_RESEND,
    TOTAL,
    TURN,
    UNA,
    WINDOW,
    World,
)

BURST = 64  # segments sent in one go; the rest follows in the same moment, after whatever else happens in it
SLICE_NS = 20_000_000  # an application with a rate hands over its data this often
UNSENT_SEGMENTS = 16  # what a socket of such an application takes at most beyond what is under way


@jit
def place_of(w: World, c: int, dsn: int) -> int:
    """Where a ring of the connection keeps this segment."""
    return w.conn[c + CONN_RING] + (dsn & (w.g[SLOTS] - 1))


@jit
def able(w: World, f: int) -> bool:
    """Whether a subflow can carry a segment it has not sent before."""
    sub = w.sub
    return (
        sub[f + STATE] == ESTABLISHED
        and sub[f + LOST] == 0
        and tcp.room(w, f)
        and sub[f + NXT] - sub[f + UNA] < w.g[SLOTS] // 2
    )


@jit
def choose(w: World, c: int) -> int:
    """The subflow for the next segment, or nothing if every window is full."""
    first, count = w.conn[c + FIRST], w.conn[c + COUNT]
    best = NOTHING
    for k in range(count):
        turn = (w.conn[c + TURN] + k) % count if w.conn[c + SCHEDULER] == ROUND_ROBIN else k
        f = first + turn * SUB_FIELDS
        if able(w, f):
            if w.conn[c + SCHEDULER] == ROUND_ROBIN:
                w.conn[c + TURN] = (turn + 1) % count
                return f
            if best == NOTHING or w.sub[f + SRTT_NS] < w.sub[best + SRTT_NS]:
                best = f
    return best


@jit
def next_dsn(w: World, c: int, f: int) -> int:
    """What a subflow carries next: what another one gave up, then what is new; nothing if there is nothing."""
    conn = w.conn
    while conn[c + AGAIN_COUNT] > 0 and w.sub[f + MODE] != TIMED_OUT:
        dsn = w.again[place_of(w, c, conn[c + AGAIN_HEAD])]
        conn[c + AGAIN_HEAD] += 1
        conn[c + AGAIN_COUNT] -= 1
        if dsn >= conn[c + DATA_UNA]:
            conn[c + REINJECTED] += 1
            return dsn
    dsn = conn[c + NEXT_DSN]
    if dsn < min(conn[c + HANDED], conn[c + TOTAL], conn[c + DATA_UNA] + conn[c + WINDOW]):
        conn[c + NEXT_DSN] = dsn + 1
        return dsn
    return NOTHING


@jit
def push(w: World, c: int, now_ns: int) -> None:
    """Send whatever may be sent."""
    conn, sub = w.conn, w.sub
    if conn[c + CONN_STATE] != RUNNING:
        return
    left = BURST
    for k in range(conn[c + COUNT]):
        f = conn[c + FIRST] + k * SUB_FIELDS
        while left > 0 and sub[f + LOST] > 0 and tcp.room(w, f):  # 1
            tcp.resend(w, f, now_ns)
            left -= 1
    while left > 0:
        f = choose(w, c)  # 2
        if f == NOTHING:
            return
        dsn = next_dsn(w, c, f)  # 3
        if dsn == NOTHING:
            return
        seq = sub[f + NXT]
        sub[f + NXT] = seq + 1
        w.seg_dsn[tcp.place_of(w, f, seq)] = dsn
        tcp.transmit(w, f, seq, now_ns)
        left -= 1
    if conn[c + PUSH_DUE] == 0:
        conn[c + PUSH_DUE] = 1
        heap.push(w, now_ns, c * EVENT_KINDS + PUSH)


@jit
def give_up(w: World, f: int) -> None:
    """A subflow's timer has run out: what it has under way may go over the others."""
    c = w.sub[f + OF_CONNECTION]
    conn = w.conn
    if conn[c + COUNT] < 2 or w.sub[f + BACKOFF] != 1:
        return
    for seq in range(w.sub[f + UNA], w.sub[f + NXT]):
        at = tcp.place_of(w, f, seq)
        dsn = w.seg_dsn[at]
        if w.seg_state[at] == TO_RESEND and dsn >= conn[c + DATA_UNA] and conn[c + AGAIN_COUNT] < w.g[SLOTS]:
            w.again[place_of(w, c, conn[c + AGAIN_HEAD] + conn[c + AGAIN_COUNT])] = dsn
            conn[c + AGAIN_COUNT] += 1


@jit
def rto_due(w: World, f: int, now_ns: int) -> None:
    """The event of a retransmission timer."""
    if w.sub[f + STATE] == ESTABLISHED and tcp.rto_due(w, f, now_ns):
        tcp.timed_out(w, f, now_ns)
        give_up(w, f)
        push(w, w.sub[f + OF_CONNECTION], now_ns)


@jit
def joined(w: World, f: int, now_ns: int) -> None:
    """The handshake of a subflow is over."""
    if w.sub[f + STATE] != CLOSED:
        w.sub[f + STATE] = ESTABLISHED
        push(w, w.sub[f + OF_CONNECTION], now_ns)


@jit
def app_due(w: World, c: int, now_ns: int) -> None:
    """An application with a rate hands over a slice; never a backlog of slices."""
    conn = w.conn
    if conn[c + APP_EVENT_NS] != now_ns:
        return  # the demand has changed since
    conn[c + APP_EVENT_NS] = 0
    if conn[c + CONN_STATE] != RUNNING or conn[c + DEMAND_BPS] <= 0:
        return
    conn[c + CREDIT] += conn[c + DEMAND_BPS] * SLICE_NS // NS_PER_S  # bits
    segments = conn[c + CREDIT] // (8 * conn[c + SEGMENT_BYTES])
    conn[c + CREDIT] -= segments * 8 * conn[c + SEGMENT_BYTES]
    most = conn[c + NEXT_DSN] + max(UNSENT_SEGMENTS, segments)
    conn[c + HANDED] = max(conn[c + HANDED], min(conn[c + HANDED] + segments, most))
    conn[c + APP_EVENT_NS] = now_ns + SLICE_NS
    heap.push(w, now_ns + SLICE_NS, c * EVENT_KINDS + APP_DUE)
    push(w, c, now_ns)


@jit
def reassemble(w: World, c: int, dsn: int, now_ns: int) -> None:
    """A segment has reached the connection's receiver, which reads what is in order at once."""
    conn = w.conn
    if dsn == conn[c + DATA_NXT]:
        conn[c + DATA_NXT] += 1
        while conn[c + BUFFERED] > 0 and w.dsn_got[place_of(w, c, conn[c + DATA_NXT])] == 1:
            w.dsn_got[place_of(w, c, conn[c + DATA_NXT])] = 0
            conn[c + BUFFERED] -= 1
            conn[c + DATA_NXT] += 1
        if conn[c + DATA_NXT] >= conn[c + TOTAL] and conn[c + DONE_NS] == 0:
            conn[c + DONE_NS] = now_ns
    elif dsn > conn[c + DATA_NXT] and w.dsn_got[place_of(w, c, dsn)] == 0:
        w.dsn_got[place_of(w, c, dsn)] = 1
        conn[c + BUFFERED] += 1
        conn[c + BUFFERED_MAX] = max(conn[c + BUFFERED_MAX], conn[c + BUFFERED])


@jit
def arrived(w: World, p: int, now_ns: int) -> int:
    """A packet is at the end of its route; returns the acknowledgement it causes, if that is at its first stop now."""
    f = w.packet[p + OF_SUBFLOW]
    c = w.sub[f + OF_CONNECTION]
    answer = NOTHING
    if w.sub[f + STATE] != ESTABLISHED:
        hops.give_back(w, p)
        return answer
    if w.packet[p + IS_ACK] == 1:
        w.conn[c + DATA_UNA] = max(w.conn[c + DATA_UNA], w.packet[p + DSN])
        tcp.acknowledged(w, f, p, now_ns)
        hops.give_back(w, p)
        push(w, c, now_ns)
        return answer
    at_once = tcp.received(w, f, p)
    reassemble(w, c, w.packet[p + DSN], now_ns)
    hops.give_back(w, p)
    if at_once:
        answer = tcp.acknowledge(w, f, now_ns)
    else:
        tcp.wait_to_acknowledge(w, f, now_ns)
    return answer
