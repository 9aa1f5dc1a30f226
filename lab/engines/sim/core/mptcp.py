"""Distribute a connection's data over its subflows, and order it at the receiver (RFC 8684).

The data is counted in full segments; a data sequence number is the number of a segment, from 0.
These steps send data:
1) A subflow with lost segments retransmits them first.
2) The scheduler chooses a subflow whose congestion window has room: that with the lowest RTT
   (lowest_rtt), each in turn (round_robin), or every one (redundant). Linux's may also choose one
   whose window is full (`linux_scheduler`). A backup is chosen only while no other subflow works
   (RFC 8684, section 3.3.8).
3) The chosen subflow gets a segment that is to be reinjected. If there is none, it gets the next
   new segment. The application must have written this segment, and it must be within the send
   window: the data acknowledgement plus the receive window (RFC 8684, section 3.3.4). With
   redundant, every subflow sends all that is not acknowledged, and has a next segment of its own.
4) If the receive window is full, a subflow may retransmit the segment for which the receiver waits
   (`reinjection`).
"""

from __future__ import annotations

from lab.engines.sim.core import (
    acknowledgements,
    delivery,
    events,
    exchanges,
    handshake,
    links,
    linux_scheduler,
    receiver,
    reinjection,
    sender,
    tail_loss_probe,
    udp,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Packet, Subflow, World

BURST = 64  # segments sent in one event; the rest follows after the other events of the same time


@jit
def can_take_new(w: World, s: Subflow) -> bool:
    """Return True if subflow `s` can send a new segment now: it is established, has no lost
    segments to retransmit, and its congestion window, pacing and ring buffer allow one more."""
    return (
        s.state == at.ESTABLISHED
        and s.lost == 0
        and sender.window_has_room(w, s)
        and sender.flight_size(s) < s.ring_size // 2
    )


@jit
def choose_subflow(w: World, c: Connection, now_ns: int) -> Subflow:
    """Return the subflow of connection `c` that gets the next segment; no subflow if none can."""
    count, scheduler = c.count, c.scheduler
    in_turn = scheduler == at.ROUND_ROBIN
    best, best_rank, another_works = w.no_subflow, at.FOREVER, False
    for k in range(count):
        s = c.subflows[(c.round_robin_next + k) % count]
        if s.state == at.ESTABLISHED and s.backup == 0 and s.backoff == 0:
            another_works = True
        rank = s.backup * at.BACKUP_RANK + (k if in_turn else s.srtt_ns)
        if (
            rank < best_rank
            and can_take_new(w, s)
            and (scheduler != at.REDUNDANT or next_redundant(c, s) < send_limit(c))
        ):
            best, best_rank = s, rank
    if best_rank >= at.BACKUP_RANK and another_works:
        return w.no_subflow
    if in_turn and best != w.no_subflow:
        c.round_robin_next = (best.number + 1) % count
    return best


@jit
def send_limit(c: Connection) -> int:
    """Return the data sequence number of the first segment that connection `c` must not send yet.
    The application has not written this segment, or it is outside of the send window."""
    window_end = c.data_snd_una + c.send_window
    return min(c.written, c.total_segments, window_end)


@jit
def next_redundant(c: Connection, s: Subflow) -> int:
    """Return the data sequence number of the segment that subflow `s` sends next with the redundant
    scheduler. It is the first segment that is neither acknowledged on connection `c` nor sent over
    `s`."""
    return max(s.redundant_nxt, c.data_snd_una)


@jit
def take_next_dsn(c: Connection, s: Subflow) -> int:
    """Take the next segment that subflow `s` of connection `c` is to send, and return its data
    sequence number. Return NOTHING (-1) if there is no such segment.

    Segments to be reinjected come before new ones. A subflow that recovers from a timeout takes no
    reinjected segments, except with Linux's scheduler.
    """
    if c.scheduler == at.REDUNDANT:
        dsn = next_redundant(c, s)
        s.redundant_nxt = dsn + 1
        c.data_snd_nxt = max(c.data_snd_nxt, dsn + 1)
        return dsn
    if s.mode != at.TIMED_OUT or c.scheduler == at.LINUX:
        dsn = reinjection.take_reinjected(c)
        if dsn != at.NOTHING:
            return dsn
    dsn = c.data_snd_nxt
    if dsn < send_limit(c):
        c.data_snd_nxt = dsn + 1
        return dsn
    return at.NOTHING


@jit
def assign(c: Connection, s: Subflow, now_ns: int) -> int:
    """Put the segments that subflow `s` of connection `c` sends next into its send queue, and
    return how many there are.

    Linux's scheduler gives segments up to the end of a burst, or until the socket has no free
    memory. Other schedulers give one segment. If there is no segment to give and penalisation is
    on, `reinjection.retransmit_opportunistically` may give the segment for which the receiver
    waits.
    """
    given, left, size = 0, linux_scheduler.BURST_BYTES, c.segment_bytes
    dsn = take_next_dsn(c, s)
    while dsn != at.NOTHING:
        sender.queue_segment(s, dsn)
        given, left = given + 1, left - size
        if c.scheduler != at.LINUX:
            return given
        if linux_scheduler.ends_fragment(c, dsn):
            if left < size or not linux_scheduler.has_free_memory(s):
                return given
            linux_scheduler.set_interval(c, now_ns)
        dsn = take_next_dsn(c, s)
    if given == 0 and c.is_penalising == 1:
        return reinjection.retransmit_opportunistically(c, s, now_ns)
    return given


@jit
def push(w: World, c: Connection, now_ns: int) -> None:
    """Send all segments that connection `c` may send now (steps 1 to 4 of the module docstring).
    After BURST segments, schedule another event at the present time, which sends the rest."""
    if c.state != at.ESTABLISHED:
        return
    sent = 0
    for k in range(c.count):
        s = c.subflows[k]
        sent += sender.send(w, s, BURST - sent, now_ns)  # 1
    if c.scheduler == at.LINUX:
        sent += push_as_linux(w, c, BURST - sent, now_ns)
    else:
        sent += push_segments(w, c, BURST - sent, now_ns)
    if c.is_mptcp == 0 and c.subflows[0].is_rate_based == 1 and c.data_snd_nxt >= send_limit(c):
        delivery.check_limited(c.subflows[0])
    if sent >= BURST and c.is_push_scheduled == 0:
        c.is_push_scheduled = 1
        events.schedule(w, now_ns, c.push)


@jit
def push_segments(w: World, c: Connection, most: int, now_ns: int) -> int:
    """Give segments to the subflows of connection `c`, and send each segment immediately. Return
    how many segments were sent. If the result is `most`, there may be more to send."""
    sent = 0
    while sent < most:
        s = choose_subflow(w, c, now_ns)  # 2
        if s == w.no_subflow or assign(c, s, now_ns) == 0:  # 3, 4
            break
        sent += sender.send(w, s, most - sent, now_ns)
    return sent


@jit
def push_as_linux(w: World, c: Connection, most: int, now_ns: int) -> int:
    """Give bursts to the subflows of connection `c` as Linux does (__mptcp_push_pending). Return
    how many segments were sent. If the result is at least `most`, there may be more to send.

    A subflow sends its burst only after the subflow for the next burst has been chosen. The
    retransmission timer for the first burst therefore does not affect that choice.
    """
    sent, given, previous = 0, 0, w.no_subflow
    while sent < most:
        s = linux_scheduler.choose_subflow(w, c, now_ns)  # 2
        if previous != w.no_subflow and previous != s:
            sent += sender.send(w, previous, most - sent, now_ns)
        previous = s
        more = assign(c, s, now_ns) if s != w.no_subflow else 0  # 3
        if more == 0:
            break
        given += more
    if previous != w.no_subflow:
        sent += sender.send(w, previous, most, now_ns)
    if given > 0 and c.reinject_timer.expires_ns == 0:
        linux_scheduler.restart_timer(w, c, now_ns)
    return sent


# --- events; each returns True if there may be something to send


@jit
def on_rto(w: World, s: Subflow, now_ns: int) -> bool:
    """Handle the event of the retransmission timer of subflow `s`. If the timer has expired, send a
    tail loss probe or mark segments in flight as lost, and return True. Otherwise return False.

    At the first of several timeouts in a row, the segments in flight are also queued for
    reinjection over other subflows.
    """
    expired = events.has_expired(w, s.timer, now_ns)
    if not expired or s.state != at.ESTABLISHED:
        return False
    if s.timer_is_for == at.PROBE:
        tail_loss_probe.send(w, s, now_ns)
        return True
    if s.timer_is_for == at.REORDERING:
        acknowledgements.on_reordering_timer(w, s, now_ns)
        return True
    acknowledgements.on_timeout(w, s, now_ns)
    if s.backoff == 1:
        reinjection.reinject_in_flight(s)
    return True


@jit
def on_priority(s: Subflow) -> bool:
    """Apply a backup flag that MP_PRIO has brought to the sender of subflow `s` (RFC 8684, section
    3.3.8). If `s` is a backup now, queue its segments in flight for reinjection over other
    subflows. Always return True."""
    s.backup = s.requested_backup
    if s.backup == 1:
        reinjection.reinject_in_flight(s)
    return True


@jit
def on_removal(s: Subflow) -> bool:
    """Close subflow `s`: its sender has learned that an address of `s` was removed (RFC 8684,
    section 3.4.2). Queue its segments that are not acknowledged for reinjection over other
    subflows. Always return True."""
    c = s.connection
    s.state = at.CLOSED
    s.timer.expires_ns = s.delack.expires_ns = 0
    s.client_timer.expires_ns = s.server_timer.expires_ns = 0
    if c.scheduler == at.LINUX:
        linux_scheduler.reinject_everything(c)
    else:
        reinjection.reinject(s, s.write_seq)
    s.write_seq, s.lost = s.snd_nxt, 0
    return True


@jit
def receive(w: World, p: Packet, now_ns: int) -> Packet:
    """Receive packet `p` at the end of its route. It is a datagram, a segment, an acknowledgement,
    or it belongs to a handshake or an announcement.

    If an acknowledgement answers the packet and can enter its first hop now, return this
    acknowledgement. Otherwise return no packet.
    """
    s = p.subflow
    c = s.connection
    if p.kind == at.DATAGRAM:
        udp.receive_datagram(w, p, now_ns)
        return w.no_packet
    if p.kind >= at.ASK:
        exchanges.receive(w, p, now_ns)
        return w.no_packet
    if p.kind >= at.SYN:
        handshake.receive(w, p, now_ns)
        return w.no_packet
    if s.state != at.ESTABLISHED:
        links.free_packet(w, p)
        return w.no_packet
    if s.client != at.CONFIRMED or s.server != at.ACCEPTED:
        handshake.hear(w, s, p.kind, now_ns)
    if p.kind == at.ACK:
        advanced = p.dsn > c.data_snd_una
        c.data_snd_una = max(c.data_snd_una, p.dsn)
        offered = max(c.sender_window_end, p.window_end)
        c.sender_window_end = offered
        acknowledgements.receive_ack(w, s, p, now_ns)
        links.free_packet(w, p)
        push(w, c, now_ns)
        if advanced and c.scheduler == at.LINUX:
            linux_scheduler.restart_timer(w, c, now_ns)
        return w.no_packet
    earlier = receiver.note_mark(w, s, p, now_ns) if c.is_dctcp == 1 else w.no_packet
    at_once = receiver.receive_segment(s, p, now_ns)
    receiver.reassemble(c, p.dsn, now_ns)
    if 0 < c.awaited <= c.data_rcv_nxt:
        c.awaited, w.halted_by = 0, c.application
    links.free_packet(w, p)
    return receiver.acknowledge(w, s, at_once, earlier, now_ns)
