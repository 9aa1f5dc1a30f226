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

from lab.engines.sim.core import events, receiver, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links as hops
from lab.engines.sim.core import linux_scheduler as linux
from lab.engines.sim.core import reinjection as again
from lab.engines.sim.core import sender as tcp
from lab.engines.sim.core import udp as datagrams
from lab.engines.sim.core.jit import Ints, jit

BURST = 64  # segments sent in one go; the rest follows in the same moment, after whatever else happens in it
SLICE_NS = 20_000_000  # an application with a rate hands over its data this often
UNSENT_SEGMENTS = 16  # what a socket of such an application takes at most beyond what is under way


@jit
def able(w: at.World, f: int) -> bool:
    """Whether a subflow can carry a segment it has not sent before."""
    row = w.row
    return (
        row[f + at.STATE] == at.ESTABLISHED
        and row[f + at.LOST] == 0
        and tcp.room(w, f)
        and row[f + at.NXT] - row[f + at.UNA] < row[at.SLOTS] // 2
    )


@jit
def choose(w: at.World, c: int) -> int:
    """The subflow for the next segment, or nothing if every window is full."""
    row = w.row
    first, count, scheduler = row[c + at.FIRST], row[c + at.COUNT], row[c + at.SCHEDULER]
    in_turn = scheduler == at.ROUND_ROBIN
    if scheduler == at.LINUX:
        return linux.choose(w, c)
    best, best_rank, backups_wait = at.NOTHING, at.FOREVER, False
    for k in range(count):
        f = first + (row[c + at.TURN] + k) % count * at.SUB_FIELDS
        if (
            row[f + at.STATE] == at.ESTABLISHED
            and row[f + at.BACKUP] == 0
            and row[f + at.BACKOFF] == 0
        ):
            backups_wait = True
        rank = row[f + at.BACKUP] * at.BACKUP_RANK + (k if in_turn else row[f + at.SRTT_NS])
        if (
            rank < best_rank
            and able(w, f)
            and (scheduler != at.REDUNDANT or next_copy(row, c, f) < limit(row, c))
        ):
            best, best_rank = f, rank
    if best_rank >= at.BACKUP_RANK and backups_wait:
        return at.NOTHING
    if in_turn and best != at.NOTHING:
        row[c + at.TURN] = ((best - first) // at.SUB_FIELDS + 1) % count
    return best


@jit
def limit(row: Ints, c: int) -> int:
    """The first segment that must wait: for the application, for room at the receiver, or for memory of the sender."""
    return min(
        row[c + at.HANDED], row[c + at.TOTAL], row[c + at.DATA_UNA] + row[c + at.SEND_WINDOW]
    )


@jit
def next_copy(row: Ints, c: int, f: int) -> int:
    """The first segment that a subflow has not carried, of those that are not acknowledged."""
    return max(row[f + at.COPIED], row[c + at.DATA_UNA])


@jit
def next_dsn(row: Ints, c: int, f: int) -> int:
    """What a subflow carries next: what another one gave up, then what is new; nothing if there is nothing."""
    if row[c + at.SCHEDULER] == at.REDUNDANT:
        dsn = next_copy(row, c, f)
        row[f + at.COPIED] = dsn + 1
        row[c + at.NEXT_DSN] = max(row[c + at.NEXT_DSN], dsn + 1)
        return dsn
    while row[c + at.AGAIN_COUNT] > 0 and (
        row[f + at.MODE] != at.TIMED_OUT or row[c + at.SCHEDULER] == at.LINUX
    ):
        dsn = row[rings.of_connection(row, c, row[c + at.AGAIN_HEAD]) + rings.DSN_AGAIN]
        row[c + at.AGAIN_HEAD] += 1
        row[c + at.AGAIN_COUNT] -= 1
        if dsn >= row[c + at.DATA_UNA]:
            row[c + at.REINJECTED] += 1
            return dsn
    dsn = row[c + at.NEXT_DSN]
    if dsn < limit(row, c):
        row[c + at.NEXT_DSN] = dsn + 1
        return dsn
    return at.NOTHING


@jit
def give(w: at.World, c: int, f: int, now_ns: int) -> int:
    """Give a subflow what comes next, a segment, or with Linux's scheduler whole fragments up to a burst; how many segments."""
    row = w.row
    given, left, size = 0, linux.BURST_BYTES, row[c + at.SEGMENT_BYTES]
    dsn = next_dsn(row, c, f)
    while dsn != at.NOTHING:
        tcp.queue(row, f, dsn)
        given, left = given + 1, left - size
        if row[c + at.SCHEDULER] != at.LINUX:
            return given
        if (dsn + 1) % linux.FRAGMENT == 0 and (left < size or not linux.has_memory(row, f)):
            return given
        dsn = next_dsn(row, c, f)
    return again.help_out(w, c, f, now_ns) if given == 0 and row[at.PENALISES] == 1 else given


@jit
def push(w: at.World, c: int, now_ns: int) -> None:
    """Send whatever may be sent."""
    row = w.row
    if row[c + at.CONN_STATE] != at.RUNNING:
        return
    sent = 0
    for k in range(row[c + at.COUNT]):
        sent += tcp.send(w, row[c + at.FIRST] + k * at.SUB_FIELDS, BURST - sent, now_ns)  # 1
    while sent < BURST:
        f = choose(w, c)  # 2
        if f == at.NOTHING or give(w, c, f, now_ns) == 0:  # 3, 4
            return
        sent += tcp.send(w, f, BURST - sent, now_ns)
        if row[c + at.REINJECT_NS] == 0 and row[c + at.SCHEDULER] == at.LINUX:
            linux.restart_timer(row, c, now_ns)
    if row[c + at.PUSH_DUE] == 0:
        row[c + at.PUSH_DUE] = 1
        events.push(row, now_ns, c * at.EVENT_KINDS + at.PUSH)


# --- events of a connection or a subflow; whether there may be something to send now


@jit
def rto_due(w: at.World, f: int, now_ns: int) -> bool:
    """The event of a retransmission timer."""
    ran_out = events.timer_has_expired(
        w.row, f + at.TIMER_NS, now_ns, f * at.EVENT_KINDS + at.RTO_DUE
    )
    if not ran_out or w.row[f + at.STATE] != at.ESTABLISHED:
        return False
    tcp.timed_out(w, f, now_ns)
    if w.row[f + at.BACKOFF] == 1:
        again.give_up(w.row, f)
    return True


@jit
def set_priority(row: Ints, f: int) -> bool:
    """MP_PRIO has come to the sender (RFC 8684, section 3.3.8)."""
    row[f + at.BACKUP] = row[f + at.ASKED_BACKUP]
    if row[f + at.BACKUP] == 1:
        again.give_up(row, f)
    return True


@jit
def joined(row: Ints, f: int) -> bool:
    """The handshake of a subflow is over."""
    if row[f + at.STATE] == at.CLOSED:
        return False
    row[f + at.STATE] = at.ESTABLISHED
    return True


@jit
def app_due(row: Ints, c: int, now_ns: int) -> bool:
    """An application with a rate hands over a slice; never a backlog of slices."""
    if row[c + at.APP_EVENT_NS] != now_ns:
        return False  # the demand has changed since
    row[c + at.APP_EVENT_NS] = 0
    if row[c + at.CONN_STATE] != at.RUNNING or row[c + at.DEMAND_BPS] <= 0:
        return False
    if row[c + at.DATAGRAMS] == 1:
        datagrams.send(row, c, now_ns)
        return False
    row[c + at.CREDIT] += row[c + at.DEMAND_BPS] * SLICE_NS // at.NS_PER_S  # bits
    segments = row[c + at.CREDIT] // (8 * row[c + at.SEGMENT_BYTES])
    row[c + at.CREDIT] -= segments * 8 * row[c + at.SEGMENT_BYTES]
    most = row[c + at.NEXT_DSN] + max(UNSENT_SEGMENTS, segments)
    row[c + at.HANDED] = max(row[c + at.HANDED], min(row[c + at.HANDED] + segments, most))
    row[c + at.APP_EVENT_NS] = now_ns + SLICE_NS
    events.push(row, now_ns + SLICE_NS, c * at.EVENT_KINDS + at.APP_DUE)
    return True


@jit
def reassemble(row: Ints, c: int, dsn: int, now_ns: int) -> None:
    """A segment has reached the connection's receiver, which reads what is in order at once."""
    if dsn == row[c + at.DATA_NXT]:
        row[c + at.DATA_NXT] += 1
        while (
            row[c + at.BUFFERED] > 0
            and row[rings.of_connection(row, c, row[c + at.DATA_NXT]) + rings.DSN_GOT] == 1
        ):
            row[rings.of_connection(row, c, row[c + at.DATA_NXT]) + rings.DSN_GOT] = 0
            row[c + at.BUFFERED] -= 1
            row[c + at.DATA_NXT] += 1
        if row[c + at.DATA_NXT] >= row[c + at.TOTAL] and row[c + at.DONE_NS] == 0:
            row[c + at.DONE_NS] = now_ns
    elif dsn > row[c + at.DATA_NXT] and row[rings.of_connection(row, c, dsn) + rings.DSN_GOT] == 0:
        row[rings.of_connection(row, c, dsn) + rings.DSN_GOT] = 1
        row[c + at.BUFFERED] += 1
        row[c + at.EARLY_IN] += 1
        row[c + at.BUFFERED_MAX] = max(row[c + at.BUFFERED_MAX], row[c + at.BUFFERED])


@jit
def arrived(w: at.World, p: int, now_ns: int) -> int:
    """A packet is at the end of its route; returns the acknowledgement it causes, if that is at its first stop now."""
    row = w.row
    f = row[p + at.OF_SUBFLOW]
    c = row[f + at.OF_CONNECTION]
    answer = at.NOTHING
    if row[p + at.IS_ACK] == at.DATAGRAM:
        datagrams.arrived(row, p)
        return answer
    if row[f + at.STATE] != at.ESTABLISHED:
        hops.give_back(row, p)
        return answer
    if row[p + at.IS_ACK] == 1:
        news = row[p + at.DSN] > row[c + at.DATA_UNA]
        row[c + at.DATA_UNA] = max(row[c + at.DATA_UNA], row[p + at.DSN])
        tcp.acknowledged(w, f, p, now_ns)
        if news and row[c + at.SCHEDULER] == at.LINUX:
            linux.restart_timer(row, c, now_ns)
        hops.give_back(row, p)
        push(w, c, now_ns)
        return answer
    at_once = receiver.received(row, f, p)
    reassemble(row, c, row[p + at.DSN], now_ns)
    hops.give_back(row, p)
    if at_once:
        answer = receiver.acknowledge(row, f, now_ns)
    else:
        receiver.wait_to_acknowledge(row, f, now_ns)
    return answer
