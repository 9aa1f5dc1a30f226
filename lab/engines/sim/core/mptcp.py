"""Distribute a connection's data over its subflows, and put the data in order at the receiver (RFC
8684).

The data is counted in full segments; a data sequence number is the number of a segment, from 0.
These steps send data:
1) A subflow with lost segments retransmits them first.
2) The scheduler chooses a subflow whose congestion window has room. lowest_rtt chooses the one with
   the lowest RTT, round_robin each in turn, redundant every one. Linux's scheduler may also choose
   a subflow whose window is full (`linux_scheduler`). A backup is chosen only while no other
   subflow works (RFC 8684, section 3.3.8).
3) The chosen subflow gets a segment that is to be reinjected. If there is none, it gets the next
   new segment. The application must have written this segment, and it must be within the send
   window: the data acknowledgement plus the receive window (RFC 8684, section 3.3.4). With the
   redundant scheduler, every subflow sends all data that is not acknowledged, so each subflow has
   its own next segment.
4) If the receive window is full, a subflow may retransmit the segment for which the receiver waits
   (`reinjection`).
"""

from __future__ import annotations

from lab.engines.sim.core import (
    acknowledgements,
    events,
    links,
    linux_scheduler,
    receiver,
    reinjection,
    sender,
    tail_loss_probe,
    udp,
)
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

BURST = 64  # segments sent in one event; the rest follows after the other events of the same time


@jit
def can_take_new(w: at.World, f: int) -> bool:
    """Return True if subflow `f` can send a new segment now: it is established, has no lost
    segments to retransmit, and its congestion window, pacing and ring buffer allow one more."""
    row = w.row
    return (
        row[f + at.STATE] == at.ESTABLISHED
        and row[f + at.LOST] == 0
        and sender.window_has_room(w, f)
        and sender.flight_size(row, f) < row[at.RING_SIZE] // 2
    )


@jit
def choose_subflow(w: at.World, c: int, now_ns: int) -> int:
    """Return the subflow of connection `c` to which the scheduler gives the next segment, or
    NOTHING (-1) if none can send now."""
    row = w.row
    first, count, scheduler = row[c + at.FIRST], row[c + at.COUNT], row[c + at.SCHEDULER]
    in_turn = scheduler == at.ROUND_ROBIN
    best, best_rank, another_works = at.NOTHING, at.FOREVER, False
    for k in range(count):
        f = first + (row[c + at.ROUND_ROBIN_NEXT] + k) % count * at.SUB_FIELDS
        if (
            row[f + at.STATE] == at.ESTABLISHED
            and row[f + at.BACKUP] == 0
            and row[f + at.BACKOFF] == 0
        ):
            another_works = True
        rank = row[f + at.BACKUP] * at.BACKUP_RANK + (k if in_turn else row[f + at.SRTT_NS])
        if (
            rank < best_rank
            and can_take_new(w, f)
            and (scheduler != at.REDUNDANT or next_redundant(row, c, f) < send_limit(row, c))
        ):
            best, best_rank = f, rank
    if best_rank >= at.BACKUP_RANK and another_works:
        return at.NOTHING
    if in_turn and best != at.NOTHING:
        row[c + at.ROUND_ROBIN_NEXT] = ((best - first) // at.SUB_FIELDS + 1) % count
    return best


@jit
def send_limit(row: Ints, c: int) -> int:
    """Return the data sequence number of the first segment that connection `c` must not send yet.
    The application has not written this segment, or it is outside of the send window."""
    window_end = row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW]
    return min(row[c + at.WRITTEN], row[c + at.TOTAL_SEGMENTS], window_end)


@jit
def next_redundant(row: Ints, c: int, f: int) -> int:
    """Return the data sequence number of the segment that subflow `f` sends next with the redundant
    scheduler. It is the first segment that is neither acknowledged on connection `c` nor sent over
    `f`."""
    return max(row[f + at.REDUNDANT_NXT], row[c + at.DATA_SND_UNA])


@jit
def take_next_dsn(row: Ints, c: int, f: int) -> int:
    """Take the next segment that subflow `f` of connection `c` is to send, and return its data
    sequence number. Return NOTHING (-1) if there is no such segment.

    Segments to be reinjected come before new ones. A subflow that recovers from a timeout takes no
    reinjected segments, except with Linux's scheduler.
    """
    if row[c + at.SCHEDULER] == at.REDUNDANT:
        dsn = next_redundant(row, c, f)
        row[f + at.REDUNDANT_NXT] = dsn + 1
        row[c + at.DATA_SND_NXT] = max(row[c + at.DATA_SND_NXT], dsn + 1)
        return dsn
    if row[f + at.MODE] != at.TIMED_OUT or row[c + at.SCHEDULER] == at.LINUX:
        dsn = reinjection.take_reinjected(row, c)
        if dsn != at.NOTHING:
            return dsn
    dsn = row[c + at.DATA_SND_NXT]
    if dsn < send_limit(row, c):
        row[c + at.DATA_SND_NXT] = dsn + 1
        return dsn
    return at.NOTHING


@jit
def assign(w: at.World, c: int, f: int, now_ns: int) -> int:
    """Put the segments that subflow `f` of connection `c` sends next into its send queue, and
    return how many there are.

    Linux's scheduler gives segments up to the end of a burst, or until the socket has no free
    memory. Other schedulers give one segment. If there is no segment to give and penalisation is
    on, `reinjection.retransmit_opportunistically` may give the segment for which the receiver
    waits.
    """
    row = w.row
    given, left, size = 0, linux_scheduler.BURST_BYTES, row[c + at.SEGMENT_BYTES]
    dsn = take_next_dsn(row, c, f)
    while dsn != at.NOTHING:
        sender.queue_segment(row, f, dsn)
        given, left = given + 1, left - size
        if row[c + at.SCHEDULER] != at.LINUX:
            return given
        if linux_scheduler.ends_fragment(row, c, dsn):
            if left < size or not linux_scheduler.has_free_memory(row, f):
                return given
            linux_scheduler.set_interval(row, c, now_ns)
        dsn = take_next_dsn(row, c, f)
    if given == 0 and row[at.PENALISATION] == 1:
        return reinjection.retransmit_opportunistically(w, c, f, now_ns)
    return given


@jit
def push(w: at.World, c: int, now_ns: int) -> None:
    """Send all segments that connection `c` may send now (steps 1 to 4 of the module docstring).
    After BURST segments, schedule another event at the present time, which sends the rest."""
    row = w.row
    if row[c + at.CONN_STATE] != at.RUNNING:
        return
    sent = 0
    for f in at.subflows(row, c):
        sent += sender.send(w, f, BURST - sent, now_ns)  # 1
    if row[c + at.SCHEDULER] == at.LINUX:
        sent += push_as_linux(w, c, BURST - sent, now_ns)
    else:
        sent += push_segments(w, c, BURST - sent, now_ns)
    if sent >= BURST and row[c + at.PUSH_SCHEDULED] == 0:
        row[c + at.PUSH_SCHEDULED] = 1
        events.schedule(row, now_ns, at.PUSH, c)


@jit
def push_segments(w: at.World, c: int, most: int, now_ns: int) -> int:
    """Give segments to the subflows of connection `c`, and send each segment immediately. Return
    how many segments were sent. If the result is `most`, there may be more to send."""
    sent = 0
    while sent < most:
        f = choose_subflow(w, c, now_ns)  # 2
        if f == at.NOTHING or assign(w, c, f, now_ns) == 0:  # 3, 4
            break
        sent += sender.send(w, f, most - sent, now_ns)
    return sent


@jit
def push_as_linux(w: at.World, c: int, most: int, now_ns: int) -> int:
    """Give bursts to the subflows of connection `c` as Linux does (__mptcp_push_pending). Return
    how many segments were sent. If the result is at least `most`, there may be more to send.

    A subflow sends its burst only after the subflow for the next burst has been chosen. The
    retransmission timer for the first burst therefore does not affect that choice.
    """
    row, sent, given, previous = w.row, 0, 0, at.NOTHING
    while sent < most:
        f = linux_scheduler.choose_subflow(w, c, now_ns)  # 2
        if previous not in (at.NOTHING, f):
            sent += sender.send(w, previous, most - sent, now_ns)
        previous = f
        more = assign(w, c, f, now_ns) if f != at.NOTHING else 0  # 3
        if more == 0:
            break
        given += more
    if previous != at.NOTHING:
        sent += sender.send(w, previous, most, now_ns)
    if given > 0 and row[c + at.REINJECT_TIMER_NS] == 0:
        linux_scheduler.restart_timer(row, c, now_ns)
    return sent


# --- events; each returns True if there may be something to send


@jit
def on_rto(w: at.World, f: int, now_ns: int) -> bool:
    """Handle the event of the retransmission timer of subflow `f`. If the timer has expired, send a
    tail loss probe or mark all segments in flight as lost, and return True. Otherwise return False.

    At the first of several timeouts in a row, the segments in flight are also queued for
    reinjection over other subflows.
    """
    row = w.row
    expired = events.timer_has_expired(row, f + at.RTO_TIMER_NS, now_ns, at.RTO_DUE, f)
    if not expired or row[f + at.STATE] != at.ESTABLISHED:
        return False
    if row[f + at.IS_PROBE] == 1:
        tail_loss_probe.send(w, f, now_ns)
        return True
    acknowledgements.on_timeout(w, f, now_ns)
    if row[f + at.BACKOFF] == 1:
        reinjection.reinject_in_flight(row, f)
    return True


@jit
def on_priority(row: Ints, f: int) -> bool:
    """Apply a backup flag that MP_PRIO has brought to the sender of subflow `f` (RFC 8684, section
    3.3.8). If `f` is a backup now, queue its segments in flight for reinjection over other
    subflows. Always return True."""
    row[f + at.BACKUP] = row[f + at.REQUESTED_BACKUP]
    if row[f + at.BACKUP] == 1:
        reinjection.reinject_in_flight(row, f)
    return True


@jit
def on_join(row: Ints, f: int) -> bool:
    """Establish subflow `f` at the end of its handshake, and return True. If `f` was closed
    meanwhile, return False."""
    if row[f + at.STATE] == at.CLOSED:
        return False
    row[f + at.STATE] = at.ESTABLISHED
    return True


@jit
def receive(w: at.World, p: int, now_ns: int) -> int:
    """Receive packet `p` at the end of its route. It is a datagram, a segment or an
    acknowledgement.

    If an acknowledgement answers the packet and can enter its first hop now, return this
    acknowledgement. Otherwise return NOTHING (-1).
    """
    row = w.row
    f = row[p + at.SUBFLOW]
    c = row[f + at.CONNECTION]
    if row[p + at.PACKET_TYPE] == at.DATAGRAM:
        udp.receive_datagram(row, p)
        return at.NOTHING
    if row[f + at.STATE] != at.ESTABLISHED:
        links.free_packet(row, p)
        return at.NOTHING
    if row[p + at.PACKET_TYPE] == at.ACK:
        advanced = row[p + at.DSN] > row[c + at.DATA_SND_UNA]
        row[c + at.DATA_SND_UNA] = max(row[c + at.DATA_SND_UNA], row[p + at.DSN])
        offered = max(row[c + at.SENDER_WINDOW_END], row[p + at.WINDOW_END])
        row[c + at.SENDER_WINDOW_END] = offered
        acknowledgements.receive_ack(w, f, p, now_ns)
        links.free_packet(row, p)
        push(w, c, now_ns)
        if advanced and row[c + at.SCHEDULER] == at.LINUX:
            linux_scheduler.restart_timer(row, c, now_ns)
        return at.NOTHING
    at_once = receiver.receive_segment(row, f, p, now_ns)
    receiver.reassemble(row, c, row[p + at.DSN], now_ns)
    links.free_packet(row, p)
    if at_once:
        return receiver.send_ack(row, f, now_ns)
    receiver.delay_ack(row, f, now_ns)
    return at.NOTHING
