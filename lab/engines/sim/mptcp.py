"""A connection: which subflow carries the next segment, how the receiver puts them in order, what is sent again elsewhere.

1) a subflow that has lost segments sends them again first
2) of the subflows whose window has room, the scheduler takes one: the lowest round trip, or each in turn; a backup only
   while no other subflow works. Linux's takes one of all (`linux`). With `redundant` each that has room is taken
3) it carries what another subflow's timer gave up, or else the next segment, if the application has handed it over and
   the receiver has room (receive window: the data acknowledgement plus the buffer; RFC 8684, section 3.3.4). With `redundant`
   it carries its own next segment: every subflow carries all that the other end has not acknowledged yet
4) if the receiver has no room, a subflow may send the segment everybody waits for once more (`penalisation`)
"""

from __future__ import annotations

from lab.engines.sim import datagrams, heap, hops, linux, tcp, timers
from lab.engines.sim import layout as at
from lab.engines.sim.jit import jit

BURST = 64  # segments sent in one go; the rest follows in the same moment, after whatever else happens in it
SLICE_NS = 20_000_000  # an application with a rate hands over its data this often
FEW_SEGMENTS, FAR_RTTS = 4, 4  # whose window is so small, or round trip so much longer, is helped out
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
    first, count, scheduler = conn[c + at.FIRST], conn[c + at.COUNT], conn[c + at.SCHEDULER]
    in_turn = scheduler == at.ROUND_ROBIN
    if scheduler == at.LINUX:
        return linux.choose(w, c)
    best, best_rank, backups_wait = at.NOTHING, at.FOREVER, False
    for k in range(count):
        f = first + (conn[c + at.TURN] + k) % count * at.SUB_FIELDS
        if sub[f + at.STATE] == at.ESTABLISHED and sub[f + at.BACKUP] == 0 and sub[f + at.BACKOFF] == 0:
            backups_wait = True
        rank = sub[f + at.BACKUP] * at.BACKUP_RANK + (k if in_turn else sub[f + at.SRTT_NS])
        if rank < best_rank and able(w, f) and (scheduler != at.REDUNDANT or next_copy(w, c, f) < limit(w, c)):
            best, best_rank = f, rank
    if best_rank >= at.BACKUP_RANK and backups_wait:
        return at.NOTHING
    if in_turn and best != at.NOTHING:
        conn[c + at.TURN] = ((best - first) // at.SUB_FIELDS + 1) % count
    return best


@jit
def limit(w: at.World, c: int) -> int:
    """The first segment that must wait: for the application, for room at the receiver, or for memory of the sender."""
    conn = w.conn
    return min(conn[c + at.HANDED], conn[c + at.TOTAL], conn[c + at.DATA_UNA] + conn[c + at.SEND_WINDOW])


@jit
def next_copy(w: at.World, c: int, f: int) -> int:
    """The first segment that a subflow has not carried, of those that are not acknowledged."""
    return max(w.sub[f + at.COPIED], w.conn[c + at.DATA_UNA])


@jit
def next_dsn(w: at.World, c: int, f: int) -> int:
    """What a subflow carries next: what another one gave up, then what is new; nothing if there is nothing."""
    conn = w.conn
    if conn[c + at.SCHEDULER] == at.REDUNDANT:
        dsn = next_copy(w, c, f)
        w.sub[f + at.COPIED] = dsn + 1
        conn[c + at.NEXT_DSN] = max(conn[c + at.NEXT_DSN], dsn + 1)
        return dsn
    while conn[c + at.AGAIN_COUNT] > 0 and (w.sub[f + at.MODE] != at.TIMED_OUT or conn[c + at.SCHEDULER] == at.LINUX):
        dsn = w.again[place_of(w, c, conn[c + at.AGAIN_HEAD])]
        conn[c + at.AGAIN_HEAD] += 1
        conn[c + at.AGAIN_COUNT] -= 1
        if dsn >= conn[c + at.DATA_UNA]:
            conn[c + at.REINJECTED] += 1
            return dsn
    dsn = conn[c + at.NEXT_DSN]
    if dsn < limit(w, c):
        conn[c + at.NEXT_DSN] = dsn + 1
        return dsn
    return at.NOTHING


@jit
def queue(w: at.World, f: int, dsn: int) -> None:
    """Give a segment to a subflow."""
    end = w.sub[f + at.END]
    w.seg_dsn[tcp.place_of(w, f, end)] = dsn
    w.sub[f + at.END] = end + 1


@jit
def give(w: at.World, c: int, f: int, now_ns: int) -> int:
    """Give a subflow what comes next, a segment, or with Linux's scheduler whole fragments up to a burst; how many segments."""
    given, left, size = 0, linux.BURST_BYTES, w.conn[c + at.SEGMENT_BYTES]
    dsn = next_dsn(w, c, f)
    while dsn != at.NOTHING:
        queue(w, f, dsn)
        given, left = given + 1, left - size
        if w.conn[c + at.SCHEDULER] != at.LINUX:
            return given
        if (dsn + 1) % linux.FRAGMENT == 0 and (left < size or not linux.has_memory(w, f)):
            return given
        dsn = next_dsn(w, c, f)
    return help_out(w, c, f, now_ns) if given == 0 and w.g[at.PENALISES] == 1 else given


@jit
def push(w: at.World, c: int, now_ns: int) -> None:
    """Send whatever may be sent."""
    conn = w.conn
    if conn[c + at.CONN_STATE] != at.RUNNING:
        return
    left = BURST
    for k in range(conn[c + at.COUNT]):
        left = tcp.send(w, conn[c + at.FIRST] + k * at.SUB_FIELDS, left, now_ns)  # 1
    while left > 0:
        f = choose(w, c)  # 2
        if f == at.NOTHING or give(w, c, f, now_ns) == 0:  # 3, 4
            return
        left = tcp.send(w, f, left, now_ns)
        if conn[c + at.REINJECT_NS] == 0 and conn[c + at.SCHEDULER] == at.LINUX:
            linux.restart_timer(w, c, now_ns)
    if conn[c + at.PUSH_DUE] == 0:
        conn[c + at.PUSH_DUE] = 1
        heap.push(w, now_ns, c * at.EVENT_KINDS + at.PUSH)


# --- sending again elsewhere


@jit
def carries(w: at.World, f: int, dsn: int) -> bool:
    """Whether a subflow has this segment under way; subflows carry segments in their order, but for what is sent again."""
    seq = w.sub[f + at.UNA]
    while seq < w.sub[f + at.END] and w.seg_dsn[tcp.place_of(w, f, seq)] < dsn:
        seq += 1
    return seq < w.sub[f + at.END] and w.seg_dsn[tcp.place_of(w, f, seq)] == dsn


@jit
def help_out(w: at.World, c: int, f: int, now_ns: int) -> int:
    """The receiver waits for a segment that is under way elsewhere and has room for no other: send it here too, once, and
    halve the window of the slower subflow that has it, at most once per round trip; 1 if it is sent.

    As mptcp_rcv_buf_optimization of the multipath-tcp.org kernel (Raiciu et al., NSDI 2012, section 4.2). Upstream Linux
    (net/mptcp, 6.18) has neither.
    """
    conn, sub, window, dsn = w.conn, w.sub, w.window, w.conn[c + at.DATA_UNA]
    if dsn + conn[c + at.WINDOW] > conn[c + at.NEXT_DSN] or conn[c + at.NEXT_DSN] >= min(
        conn[c + at.HANDED], conn[c + at.TOTAL]
    ):
        return 0  # it is not the receiver that all wait for
    again, due = False, now_ns - sub[f + at.PENALISED_NS] >= sub[f + at.SRTT_NS]
    for k in range(conn[c + at.COUNT]):
        r = conn[c + at.FIRST] + k * at.SUB_FIELDS
        if r == f or not carries(w, r, dsn):
            continue
        if due and sub[f + at.SRTT_NS] < sub[r + at.SRTT_NS] and sub[r + at.MODE] == at.OPEN:
            if window[r + at.CWND] >= window[r + at.SSTHRESH]:
                window[r + at.SSTHRESH] = max(window[r + at.SSTHRESH] / 2.0, 2.0)
            window[r + at.CWND] = max(window[r + at.CWND] / 2.0, 1.0)
            sub[f + at.PENALISED_NS] = now_ns
        again = again or window[r + at.CWND] <= FEW_SEGMENTS or FAR_RTTS * sub[f + at.SRTT_NS] < sub[r + at.SRTT_NS]
    if not again or conn[c + at.OPPORTUNE_DSN] > dsn:
        return 0
    conn[c + at.OPPORTUNE_DSN] = dsn + 1
    conn[c + at.REINJECTED] += 1
    queue(w, f, dsn)
    return 1


@jit
def give_up(w: at.World, f: int) -> None:
    """What a subflow has under way may go over the others."""
    c = w.sub[f + at.OF_CONNECTION]
    conn = w.conn
    if conn[c + at.COUNT] < 2 or conn[c + at.SCHEDULER] in (at.LINUX, at.REDUNDANT):
        return
    for seq in range(w.sub[f + at.UNA], w.sub[f + at.NXT]):
        slot = tcp.place_of(w, f, seq)
        dsn = w.seg_dsn[slot]
        if w.seg_state[slot] != at.SACKED and dsn >= conn[c + at.DATA_UNA] and conn[c + at.AGAIN_COUNT] < w.g[at.SLOTS]:
            w.again[place_of(w, c, conn[c + at.AGAIN_HEAD] + conn[c + at.AGAIN_COUNT])] = dsn
            conn[c + at.AGAIN_COUNT] += 1


@jit
def reinject_due(w: at.World, c: int, now_ns: int) -> bool:
    """The event of the connection's own timer: the oldest fragment goes over an idle subflow."""
    conn = w.conn
    ran_out = timers.has_run_out(w, conn, c + at.REINJECT_NS, now_ns, c * at.EVENT_KINDS + at.REINJECT_DUE)
    if not ran_out or conn[c + at.CONN_STATE] != at.RUNNING:
        return False
    f, una = linux.idle_subflow(w, c), conn[c + at.DATA_UNA]
    if f != at.NOTHING:
        for dsn in range(una, min((una // linux.FRAGMENT + 1) * linux.FRAGMENT, conn[c + at.NEXT_DSN])):
            queue(w, f, dsn)
            conn[c + at.REINJECTED] += 1
    linux.restart_timer(w, c, now_ns)
    return True


# --- events of a connection or a subflow; whether there may be something to send now


@jit
def rto_due(w: at.World, f: int, now_ns: int) -> bool:
    """The event of a retransmission timer."""
    ran_out = timers.has_run_out(w, w.sub, f + at.TIMER_NS, now_ns, f * at.EVENT_KINDS + at.RTO_DUE)
    if not ran_out or w.sub[f + at.STATE] != at.ESTABLISHED:
        return False
    tcp.timed_out(w, f, now_ns)
    if w.sub[f + at.BACKOFF] == 1:
        give_up(w, f)
    return True


@jit
def set_priority(w: at.World, f: int) -> bool:
    """MP_PRIO has come to the sender (RFC 8684, section 3.3.8)."""
    w.sub[f + at.BACKUP] = w.sub[f + at.ASKED_BACKUP]
    if w.sub[f + at.BACKUP] == 1:
        give_up(w, f)
    return True


@jit
def joined(w: at.World, f: int) -> bool:
    """The handshake of a subflow is over."""
    if w.sub[f + at.STATE] == at.CLOSED:
        return False
    w.sub[f + at.STATE] = at.ESTABLISHED
    return True


@jit
def app_due(w: at.World, c: int, now_ns: int) -> bool:
    """An application with a rate hands over a slice; never a backlog of slices."""
    conn = w.conn
    if conn[c + at.APP_EVENT_NS] != now_ns:
        return False  # the demand has changed since
    conn[c + at.APP_EVENT_NS] = 0
    if conn[c + at.CONN_STATE] != at.RUNNING or conn[c + at.DEMAND_BPS] <= 0:
        return False
    if conn[c + at.DATAGRAMS] == 1:
        datagrams.send(w, c, now_ns)
        return False
    conn[c + at.CREDIT] += conn[c + at.DEMAND_BPS] * SLICE_NS // at.NS_PER_S  # bits
    segments = conn[c + at.CREDIT] // (8 * conn[c + at.SEGMENT_BYTES])
    conn[c + at.CREDIT] -= segments * 8 * conn[c + at.SEGMENT_BYTES]
    most = conn[c + at.NEXT_DSN] + max(UNSENT_SEGMENTS, segments)
    conn[c + at.HANDED] = max(conn[c + at.HANDED], min(conn[c + at.HANDED] + segments, most))
    conn[c + at.APP_EVENT_NS] = now_ns + SLICE_NS
    heap.push(w, now_ns + SLICE_NS, c * at.EVENT_KINDS + at.APP_DUE)
    return True


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
    if w.packet[p + at.IS_ACK] == at.DATAGRAM:
        datagrams.arrived(w, p)
        return answer
    if w.sub[f + at.STATE] != at.ESTABLISHED:
        hops.give_back(w, p)
        return answer
    if w.packet[p + at.IS_ACK] == 1:
        news = w.packet[p + at.DSN] > w.conn[c + at.DATA_UNA]
        w.conn[c + at.DATA_UNA] = max(w.conn[c + at.DATA_UNA], w.packet[p + at.DSN])
        tcp.acknowledged(w, f, p, now_ns)
        if news and w.conn[c + at.SCHEDULER] == at.LINUX:
            linux.restart_timer(w, c, now_ns)
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
