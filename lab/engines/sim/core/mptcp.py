"""A connection: which subflow carries the next segment, how the receiver puts them in order, what is sent again (`again`).

1) a subflow that has lost segments sends them again first
2) of the subflows whose window has room, the scheduler takes one: the lowest round trip, or each in turn; a backup only
   while no other subflow works. Linux's takes one of all (`linux`). With `redundant` each that has room is taken
3) it carries what another subflow's timer gave up, or else the next segment, if the application has handed it over and
   the receiver has room (receive window: the data acknowledgement plus the buffer; RFC 8684, section 3.3.4). With `redundant`
   it carries its own next segment: every subflow carries all that the other end has not acknowledged yet
4) if the receiver has no room, a subflow may send the segment everybody waits for once more (`penalisation`)
"""

from __future__ import annotations

from lab.engines.sim.core import (
    events,
    links,
    linux_scheduler,
    receiver,
    reinjection,
    rings,
    sender,
    udp,
)
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

BURST = 64  # segments sent in one go; the rest follows in the same moment, after whatever else happens in it
SLICE_NS = 20_000_000  # an application with a rate hands over its data this often
UNSENT_SEGMENTS = 16  # what a socket of such an application takes at most beyond what is under way


@jit
def can_take_new(w: at.World, f: int) -> bool:
    """Whether a subflow can carry a segment it has not sent before."""
    row = w.row
    return (
        row[f + at.STATE] == at.ESTABLISHED
        and row[f + at.LOST] == 0
        and sender.window_has_room(w, f)
        and row[f + at.SND_NXT] - row[f + at.SND_UNA] < row[at.RING_SIZE] // 2
    )


@jit
def choose_subflow(w: at.World, c: int) -> int:
    """The subflow for the next segment, or nothing if every window is full."""
    row = w.row
    first, count, scheduler = row[c + at.FIRST], row[c + at.COUNT], row[c + at.SCHEDULER]
    in_turn = scheduler == at.ROUND_ROBIN
    if scheduler == at.LINUX:
        return linux_scheduler.choose_subflow(w, c)
    best, best_rank, backups_wait = at.NOTHING, at.FOREVER, False
    for k in range(count):
        f = first + (row[c + at.ROUND_ROBIN_NEXT] + k) % count * at.SUB_FIELDS
        if (
            row[f + at.STATE] == at.ESTABLISHED
            and row[f + at.BACKUP] == 0
            and row[f + at.BACKOFF] == 0
        ):
            backups_wait = True
        rank = row[f + at.BACKUP] * at.BACKUP_RANK + (k if in_turn else row[f + at.SRTT_NS])
        if (
            rank < best_rank
            and can_take_new(w, f)
            and (scheduler != at.REDUNDANT or next_redundant(row, c, f) < send_limit(row, c))
        ):
            best, best_rank = f, rank
    if best_rank >= at.BACKUP_RANK and backups_wait:
        return at.NOTHING
    if in_turn and best != at.NOTHING:
        row[c + at.ROUND_ROBIN_NEXT] = ((best - first) // at.SUB_FIELDS + 1) % count
    return best


@jit
def send_limit(row: Ints, c: int) -> int:
    """The first segment that must wait: for the application, for room at the receiver, or for memory of the sender."""
    return min(
        row[c + at.WRITTEN],
        row[c + at.TOTAL_SEGMENTS],
        row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW],
    )


@jit
def next_redundant(row: Ints, c: int, f: int) -> int:
    """The first segment that a subflow has not carried, of those that are not acknowledged."""
    return max(row[f + at.REDUNDANT_NXT], row[c + at.DATA_SND_UNA])


@jit
def take_next_dsn(row: Ints, c: int, f: int) -> int:
    """What a subflow carries next: what another one gave up, then what is new; nothing if there is nothing."""
    if row[c + at.SCHEDULER] == at.REDUNDANT:
        dsn = next_redundant(row, c, f)
        row[f + at.REDUNDANT_NXT] = dsn + 1
        row[c + at.DATA_SND_NXT] = max(row[c + at.DATA_SND_NXT], dsn + 1)
        return dsn
    while row[c + at.REINJECT_COUNT] > 0 and (
        row[f + at.MODE] != at.TIMED_OUT or row[c + at.SCHEDULER] == at.LINUX
    ):
        dsn = row[rings.data(row, c, row[c + at.REINJECT_HEAD]) + rings.DSN_REINJECT]
        row[c + at.REINJECT_HEAD] += 1
        row[c + at.REINJECT_COUNT] -= 1
        if dsn >= row[c + at.DATA_SND_UNA]:
            row[c + at.REINJECTED] += 1
            return dsn
    dsn = row[c + at.DATA_SND_NXT]
    if dsn < send_limit(row, c):
        row[c + at.DATA_SND_NXT] = dsn + 1
        return dsn
    return at.NOTHING


@jit
def assign(w: at.World, c: int, f: int, now_ns: int) -> int:
    """Give a subflow what comes next, a segment, or with Linux's scheduler whole fragments up to a burst; how many segments."""
    row = w.row
    given, left, size = 0, linux_scheduler.BURST_BYTES, row[c + at.SEGMENT_BYTES]
    dsn = take_next_dsn(row, c, f)
    while dsn != at.NOTHING:
        sender.queue_segment(row, f, dsn)
        given, left = given + 1, left - size
        if row[c + at.SCHEDULER] != at.LINUX:
            return given
        if (dsn + 1) % linux_scheduler.FRAGMENT == 0 and (
            left < size or not linux_scheduler.has_free_memory(row, f)
        ):
            return given
        dsn = take_next_dsn(row, c, f)
    return (
        reinjection.retransmit_opportunistically(w, c, f, now_ns)
        if given == 0 and row[at.PENALISATION] == 1
        else given
    )


@jit
def push(w: at.World, c: int, now_ns: int) -> None:
    """Send whatever may be sent."""
    row = w.row
    if row[c + at.CONN_STATE] != at.RUNNING:
        return
    sent = 0
    for k in range(row[c + at.COUNT]):
        sent += sender.send(w, row[c + at.FIRST] + k * at.SUB_FIELDS, BURST - sent, now_ns)  # 1
    while sent < BURST:
        f = choose_subflow(w, c)  # 2
        if f == at.NOTHING or assign(w, c, f, now_ns) == 0:  # 3, 4
            return
        sent += sender.send(w, f, BURST - sent, now_ns)
        if row[c + at.REINJECT_TIMER_NS] == 0 and row[c + at.SCHEDULER] == at.LINUX:
            linux_scheduler.restart_timer(row, c, now_ns)
    if row[c + at.PUSH_SCHEDULED] == 0:
        row[c + at.PUSH_SCHEDULED] = 1
        events.schedule(row, now_ns, c * at.EVENT_KINDS + at.PUSH)


# --- events of a connection or a subflow; whether there may be something to send now


@jit
def on_rto(w: at.World, f: int, now_ns: int) -> bool:
    """The event of a retransmission timer."""
    ran_out = events.timer_has_expired(
        w.row, f + at.RTO_TIMER_NS, now_ns, f * at.EVENT_KINDS + at.RTO_DUE
    )
    if not ran_out or w.row[f + at.STATE] != at.ESTABLISHED:
        return False
    sender.on_timeout(w, f, now_ns)
    if w.row[f + at.BACKOFF] == 1:
        reinjection.reinject_in_flight(w.row, f)
    return True


@jit
def on_priority(row: Ints, f: int) -> bool:
    """MP_PRIO has come to the sender (RFC 8684, section 3.3.8)."""
    row[f + at.BACKUP] = row[f + at.REQUESTED_BACKUP]
    if row[f + at.BACKUP] == 1:
        reinjection.reinject_in_flight(row, f)
    return True


@jit
def on_join(row: Ints, f: int) -> bool:
    """The handshake of a subflow is over."""
    if row[f + at.STATE] == at.CLOSED:
        return False
    row[f + at.STATE] = at.ESTABLISHED
    return True


@jit
def on_application(row: Ints, c: int, now_ns: int) -> bool:
    """An application with a rate hands over a slice; never a backlog of slices."""
    if row[c + at.APP_EVENT_NS] != now_ns:
        return False  # the demand has changed since
    row[c + at.APP_EVENT_NS] = 0
    if row[c + at.CONN_STATE] != at.RUNNING or row[c + at.DEMAND_BPS] <= 0:
        return False
    if row[c + at.DATAGRAMS] == 1:
        udp.send_datagram(row, c, now_ns)
        return False
    row[c + at.CREDIT_BITS] += row[c + at.DEMAND_BPS] * SLICE_NS // at.NS_PER_S  # bits
    segments = row[c + at.CREDIT_BITS] // (8 * row[c + at.SEGMENT_BYTES])
    row[c + at.CREDIT_BITS] -= segments * 8 * row[c + at.SEGMENT_BYTES]
    most = row[c + at.DATA_SND_NXT] + max(UNSENT_SEGMENTS, segments)
    row[c + at.WRITTEN] = max(row[c + at.WRITTEN], min(row[c + at.WRITTEN] + segments, most))
    row[c + at.APP_EVENT_NS] = now_ns + SLICE_NS
    events.schedule(row, now_ns + SLICE_NS, c * at.EVENT_KINDS + at.APP_DUE)
    return True


@jit
def reassemble(row: Ints, c: int, dsn: int, now_ns: int) -> None:
    """A segment has reached the connection's receiver, which reads what is in order at once."""
    if dsn == row[c + at.DATA_RCV_NXT]:
        row[c + at.DATA_RCV_NXT] += 1
        while (
            row[c + at.REORDER_BUFFERED] > 0
            and row[rings.data(row, c, row[c + at.DATA_RCV_NXT]) + rings.DSN_RECEIVED] == 1
        ):
            row[rings.data(row, c, row[c + at.DATA_RCV_NXT]) + rings.DSN_RECEIVED] = 0
            row[c + at.REORDER_BUFFERED] -= 1
            row[c + at.DATA_RCV_NXT] += 1
        if row[c + at.DATA_RCV_NXT] >= row[c + at.TOTAL_SEGMENTS] and row[c + at.DONE_NS] == 0:
            row[c + at.DONE_NS] = now_ns
    elif dsn > row[c + at.DATA_RCV_NXT] and row[rings.data(row, c, dsn) + rings.DSN_RECEIVED] == 0:
        row[rings.data(row, c, dsn) + rings.DSN_RECEIVED] = 1
        row[c + at.REORDER_BUFFERED] += 1
        row[c + at.DATA_OUT_OF_ORDER] += 1
        row[c + at.REORDER_BUFFERED_MAX] = max(
            row[c + at.REORDER_BUFFERED_MAX], row[c + at.REORDER_BUFFERED]
        )


@jit
def receive(w: at.World, p: int, now_ns: int) -> int:
    """A packet is at the end of its route; returns the acknowledgement it causes, if that is at its first stop now."""
    row = w.row
    f = row[p + at.SUBFLOW]
    c = row[f + at.CONNECTION]
    answer = at.NOTHING
    if row[p + at.PACKET_TYPE] == at.DATAGRAM:
        udp.receive_datagram(row, p)
        return answer
    if row[f + at.STATE] != at.ESTABLISHED:
        links.free_packet(row, p)
        return answer
    if row[p + at.PACKET_TYPE] == at.ACK:
        news = row[p + at.DSN] > row[c + at.DATA_SND_UNA]
        row[c + at.DATA_SND_UNA] = max(row[c + at.DATA_SND_UNA], row[p + at.DSN])
        sender.receive_ack(w, f, p, now_ns)
        if news and row[c + at.SCHEDULER] == at.LINUX:
            linux_scheduler.restart_timer(row, c, now_ns)
        links.free_packet(row, p)
        push(w, c, now_ns)
        return answer
    at_once = receiver.receive_segment(row, f, p)
    reassemble(row, c, row[p + at.DSN], now_ns)
    links.free_packet(row, p)
    if at_once:
        answer = receiver.send_ack(row, f, now_ns)
    else:
        receiver.delay_ack(row, f, now_ns)
    return answer
