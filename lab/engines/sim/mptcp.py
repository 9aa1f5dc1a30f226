"""A connection: which subflow carries the next segment, how the receiver puts them in order, what is sent again elsewhere.

1) a subflow that has lost segments sends them again first
2) of the subflows whose window has room, the scheduler takes one: the lowest round trip, or each in turn; a backup only
   while no other subflow works
3) it carries what another subflow's timer gave up, or else the next segment, if the application has handed it over and
   the receiver has room (receive window: the data acknowledgement plus the buffer; RFC 8684, section 3.3.4)
"""

from __future__ import annotations

from lab.engines.sim import heap, hops, tcp
from lab.engines.sim import layout as at
from lab.engines.sim.jit import jit

BURST = 64  # segments sent in one go; the rest follows in the same moment, after whatever else happens in it
SLICE_NS = 20_000_000  # an application with a rate hands over its data this often
BACKUP_RANK = 1 << 50  # beyond any round trip [ns]
UNSENT_SEGMENTS = 16  # what a socket of such an application takes at most beyond what is under way


@jit
def place_of(w: at.World, c: int, dsn: int) -> int:
    """Where a ring of the connection keeps this segment."""
    return w.conn[c + at.CONN_RING] + (dsn & (w.g[at.SLOTS] - 1))


@jit
def able(w: at.World, f: int) -> bool:
    """Whether a subflow can carry a segment it has not sent before."""
    sub = w.sub
    return (
        sub[f + at.STATE] == at.ESTABLISHED
        and sub[f + at.LOST] == 0
        and tcp.room(w, f)
        and sub[f + at.NXT] - sub[f + at.UNA] < w.g[at.SLOTS] // 2
    )


@jit
def choose(w: at.World, c: int) -> int:
    """The subflow for the next segment, or nothing if every window is full."""
    conn, sub = w.conn, w.sub
    first, count, in_turn = conn[c + at.FIRST], conn[c + at.COUNT], conn[c + at.SCHEDULER] == at.ROUND_ROBIN
    best, best_rank, backups_wait = at.NOTHING, at.FOREVER, False
    for k in range(count):
        f = first + (conn[c + at.TURN] + k) % count * at.SUB_FIELDS
        if sub[f + at.STATE] == at.ESTABLISHED and sub[f + at.BACKUP] == 0 and sub[f + at.BACKOFF] == 0:
            backups_wait = True
        rank = sub[f + at.BACKUP] * BACKUP_RANK + (k if in_turn else sub[f + at.SRTT_NS])
        if rank < best_rank and able(w, f):
            best, best_rank = f, rank
    if best_rank >= BACKUP_RANK and backups_wait:
        return at.NOTHING
    if in_turn and best != at.NOTHING:
        conn[c + at.TURN] = ((best - first) // at.SUB_FIELDS + 1) % count
    return best


@jit
def next_dsn(w: at.World, c: int, f: int) -> int:
    """What a subflow carries next: what another one gave up, then what is new; nothing if there is nothing."""
    conn = w.conn
    while conn[c + at.AGAIN_COUNT] > 0 and w.sub[f + at.MODE] != at.TIMED_OUT:
        dsn = w.again[place_of(w, c, conn[c + at.AGAIN_HEAD])]
        conn[c + at.AGAIN_HEAD] += 1
        conn[c + at.AGAIN_COUNT] -= 1
        if dsn >= conn[c + at.DATA_UNA]:
            conn[c + at.REINJECTED] += 1
            return dsn
    dsn = conn[c + at.NEXT_DSN]
    if dsn < min(conn[c + at.HANDED], conn[c + at.TOTAL], conn[c + at.DATA_UNA] + conn[c + at.WINDOW]):
        conn[c + at.NEXT_DSN] = dsn + 1
        return dsn
    return at.NOTHING


@jit
def push(w: at.World, c: int, now_ns: int) -> None:
    """Send whatever may be sent."""
    conn, sub = w.conn, w.sub
    if conn[c + at.CONN_STATE] != at.RUNNING:
        return
    left = BURST
    for k in range(conn[c + at.COUNT]):
        f = conn[c + at.FIRST] + k * at.SUB_FIELDS
        while left > 0 and sub[f + at.LOST] > 0 and tcp.room(w, f):  # 1
            tcp.resend(w, f, now_ns)
            left -= 1
    while left > 0:
        f = choose(w, c)  # 2
        if f == at.NOTHING:
            return
        dsn = next_dsn(w, c, f)  # 3
        if dsn == at.NOTHING:
            return
        seq = sub[f + at.NXT]
        sub[f + at.NXT] = seq + 1
        w.seg_dsn[tcp.place_of(w, f, seq)] = dsn
        tcp.transmit(w, f, seq, now_ns)
        left -= 1
    if conn[c + at.PUSH_DUE] == 0:
        conn[c + at.PUSH_DUE] = 1
        heap.push(w, now_ns, c * at.EVENT_KINDS + at.PUSH)


@jit
def give_up(w: at.World, f: int) -> None:
    """What a subflow has under way may go over the others."""
    c = w.sub[f + at.OF_CONNECTION]
    conn = w.conn
    if conn[c + at.COUNT] < 2:
        return
    for seq in range(w.sub[f + at.UNA], w.sub[f + at.NXT]):
        slot = tcp.place_of(w, f, seq)
        dsn = w.seg_dsn[slot]
        if w.seg_state[slot] != at.SACKED and dsn >= conn[c + at.DATA_UNA] and conn[c + at.AGAIN_COUNT] < w.g[at.SLOTS]:
            w.again[place_of(w, c, conn[c + at.AGAIN_HEAD] + conn[c + at.AGAIN_COUNT])] = dsn
            conn[c + at.AGAIN_COUNT] += 1


@jit
def rto_due(w: at.World, f: int, now_ns: int) -> None:
    """The event of a retransmission timer."""
    if w.sub[f + at.STATE] == at.ESTABLISHED and tcp.rto_due(w, f, now_ns):
        tcp.timed_out(w, f, now_ns)
        if w.sub[f + at.BACKOFF] == 1:
            give_up(w, f)
        push(w, w.sub[f + at.OF_CONNECTION], now_ns)


@jit
def set_priority(w: at.World, f: int, now_ns: int) -> None:
    """MP_PRIO has come to the sender (RFC 8684, section 3.3.8)."""
    w.sub[f + at.BACKUP] = w.sub[f + at.ASKED_BACKUP]
    if w.sub[f + at.BACKUP] == 1:
        give_up(w, f)
    push(w, w.sub[f + at.OF_CONNECTION], now_ns)


@jit
def joined(w: at.World, f: int, now_ns: int) -> None:
    """The handshake of a subflow is over."""
    if w.sub[f + at.STATE] != at.CLOSED:
        w.sub[f + at.STATE] = at.ESTABLISHED
        push(w, w.sub[f + at.OF_CONNECTION], now_ns)


@jit
def app_due(w: at.World, c: int, now_ns: int) -> None:
    """An application with a rate hands over a slice; never a backlog of slices."""
    conn = w.conn
    if conn[c + at.APP_EVENT_NS] != now_ns:
        return  # the demand has changed since
    conn[c + at.APP_EVENT_NS] = 0
    if conn[c + at.CONN_STATE] != at.RUNNING or conn[c + at.DEMAND_BPS] <= 0:
        return
    conn[c + at.CREDIT] += conn[c + at.DEMAND_BPS] * SLICE_NS // at.NS_PER_S  # bits
    segments = conn[c + at.CREDIT] // (8 * conn[c + at.SEGMENT_BYTES])
    conn[c + at.CREDIT] -= segments * 8 * conn[c + at.SEGMENT_BYTES]
    most = conn[c + at.NEXT_DSN] + max(UNSENT_SEGMENTS, segments)
    conn[c + at.HANDED] = max(conn[c + at.HANDED], min(conn[c + at.HANDED] + segments, most))
    conn[c + at.APP_EVENT_NS] = now_ns + SLICE_NS
    heap.push(w, now_ns + SLICE_NS, c * at.EVENT_KINDS + at.APP_DUE)
    push(w, c, now_ns)


@jit
def reassemble(w: at.World, c: int, dsn: int, now_ns: int) -> None:
    """A segment has reached the connection's receiver, which reads what is in order at once."""
    conn = w.conn
    if dsn == conn[c + at.DATA_NXT]:
        conn[c + at.DATA_NXT] += 1
        while conn[c + at.BUFFERED] > 0 and w.dsn_got[place_of(w, c, conn[c + at.DATA_NXT])] == 1:
            w.dsn_got[place_of(w, c, conn[c + at.DATA_NXT])] = 0
            conn[c + at.BUFFERED] -= 1
            conn[c + at.DATA_NXT] += 1
        if conn[c + at.DATA_NXT] >= conn[c + at.TOTAL] and conn[c + at.DONE_NS] == 0:
            conn[c + at.DONE_NS] = now_ns
    elif dsn > conn[c + at.DATA_NXT] and w.dsn_got[place_of(w, c, dsn)] == 0:
        w.dsn_got[place_of(w, c, dsn)] = 1
        conn[c + at.BUFFERED] += 1
        conn[c + at.EARLY_IN] += 1
        conn[c + at.BUFFERED_MAX] = max(conn[c + at.BUFFERED_MAX], conn[c + at.BUFFERED])


@jit
def arrived(w: at.World, p: int, now_ns: int) -> int:
    """A packet is at the end of its route; returns the acknowledgement it causes, if that is at its first stop now."""
    f = w.packet[p + at.OF_SUBFLOW]
    c = w.sub[f + at.OF_CONNECTION]
    answer = at.NOTHING
    if w.sub[f + at.STATE] != at.ESTABLISHED:
        hops.give_back(w, p)
        return answer
    if w.packet[p + at.IS_ACK] == 1:
        w.conn[c + at.DATA_UNA] = max(w.conn[c + at.DATA_UNA], w.packet[p + at.DSN])
        tcp.acknowledged(w, f, p, now_ns)
        hops.give_back(w, p)
        push(w, c, now_ns)
        return answer
    at_once = tcp.received(w, f, p)
    reassemble(w, c, w.packet[p + at.DSN], now_ns)
    hops.give_back(w, p)
    if at_once:
        answer = tcp.acknowledge(w, f, now_ns)
    else:
        tcp.wait_to_acknowledge(w, f, now_ns)
    return answer
