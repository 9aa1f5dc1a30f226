"""Receive the segments of a subflow, acknowledge them (RFC 5681, section 4.2), and put the data of
a connection in order.

An acknowledgement is sent immediately for every second segment, and for every segment that is out
of order or fills a gap. Otherwise it is delayed by 40 ms. In Linux's quick mode
(tcp_incr_quickack), the next 16 acknowledgements are sent immediately. Quick mode begins with the
first segment, with a segment after a pause longer than the RTO, and with a segment that has arrived
before. The receiver sends no data, so its RTO is still that of the handshake.
"""

from __future__ import annotations

from lab.engines.sim.core import ecn, events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Packet, Subflow, World, segment

ACK_EVERY = 2  # segments
QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
DELACK_WAIT_NS = 40_000_000  # Linux, TCP_DELACK_MIN


@jit
def window_end(c: Connection) -> int:
    """Return the data sequence number at which the receive window of connection `c` ends. Record it
    as the last end that was offered to the sender.

    As in Linux, the window is the free part of the receive buffer. Out-of-order data occupies the
    buffer until earlier data has arrived. While there is much out-of-order data, the end of the
    window stays where it is. The end never moves back (__mptcp_space, mptcp_set_rwin). Only Linux's
    scheduler respects this end.
    """
    free = c.receive_window - c.reorder_buffered
    end = max(c.offered_window_end, c.data_rcv_nxt + free)
    c.offered_window_end = end
    return end


@jit
def send_ack(w: World, s: Subflow, now_ns: int) -> Packet:
    """Send an acknowledgement of what subflow `s` has received.

    If the acknowledgement reaches the first queue on its route at `now_ns`, return it, so that the
    caller lets it enter the queue. Return no packet if the acknowledgement arrives later, or was
    dropped (see `links.forward`).
    """
    c = s.connection
    s.unacked = 0
    s.quick_acks = max(0, s.quick_acks - 1)
    s.delack.expires_ns = 0
    p = links.new_packet(w, s, at.ACK, s.ack_route, c.ack_bytes)
    p.seq = s.rcv_nxt
    p.dsn = c.data_rcv_nxt
    p.transmission = s.last_transmission
    p.segments_so_far = s.segments_received
    p.echo = s.is_echoing
    p.window_end = window_end(c)
    return links.forward(w, s.ack_line, p, now_ns, now_ns)


@jit
def receive_segment(s: Subflow, p: Packet, now_ns: int) -> bool:
    """Receive segment `p` on subflow `s`. Return True if it must be acknowledged immediately, False
    if its acknowledgement is to be delayed."""
    seq = p.seq
    paused = now_ns - s.last_received_ns > s.receiver_rto_ns
    if s.segments_received == 0 or paused or seq < s.rcv_nxt:
        s.quick_acks = QUICK_ACKS
    s.last_received_ns = now_ns
    slot = segment(s, seq)
    s.segments_received += 1
    s.last_transmission = p.transmission
    held = s.out_of_order_held
    if s.connection.is_ecn == 1 and s.connection.is_dctcp == 0:
        ecn.receive(s, p)
    if seq == s.rcv_nxt:
        slot.arrival = s.segments_received
        s.rcv_nxt = seq + 1
        while s.out_of_order_held > 0 and segment(s, s.rcv_nxt).arrival > 0:
            s.out_of_order_held -= 1
            s.rcv_nxt += 1
        s.unacked += 1
        return held > 0 or s.unacked >= ACK_EVERY or s.quick_acks > 0
    if seq > s.rcv_nxt and slot.arrival == 0:
        slot.arrival = s.segments_received
        s.out_of_order_held += 1
        s.segments_out_of_order += 1
    return True


@jit
def reassemble(c: Connection, dsn: int, now_ns: int) -> None:
    """Put the segment with data sequence number `dsn` into the reorder buffer of connection `c`.
    The application reads data as soon as all earlier data has arrived."""
    expected = c.data_rcv_nxt
    if dsn == expected:
        expected += 1
        while c.reorder_buffered > 0 and c.received[expected & (c.ring_size - 1)] == 1:
            c.received[expected & (c.ring_size - 1)] = 0
            c.reorder_buffered -= 1
            expected += 1
        c.data_rcv_nxt = expected
        if expected >= c.total_segments and c.done_ns == 0:
            c.done_ns = now_ns
    elif dsn > expected and c.received[dsn & (c.ring_size - 1)] == 0:
        c.received[dsn & (c.ring_size - 1)] = 1
        c.data_out_of_order += 1
        buffered = c.reorder_buffered + 1
        c.reorder_buffered = buffered
        c.reorder_buffered_max = max(c.reorder_buffered_max, buffered)
        c.reorder_buffered_recent = max(c.reorder_buffered_recent, buffered)


@jit
def note_mark(w: World, s: Subflow, p: Packet, now_ns: int) -> Packet:
    """Note whether segment `p` is marked, as a receiver of DCTCP does before anything else (RFC
    8257, section 3.2; Linux, tcp_dctcp.h).

    Each acknowledgement says whether the last segment was marked (ECE). So that this is true of all
    that it acknowledges, a segment that differs from the one before is acknowledged at once, and a
    delayed acknowledgement of earlier segments is sent first. Return the
    acknowledgement of earlier segments if one is sent, as `send_ack` does."""
    earlier = w.no_packet
    if p.echo == 1:  # CWR: the window of the sender may be small
        s.quick_acks = max(s.quick_acks, 1)
    is_marked = int(p.ecn == at.CE)
    if p.seq < s.rcv_nxt or is_marked == s.is_echoing:
        return earlier
    if s.delack.expires_ns > 0:
        earlier = send_ack(w, s, now_ns)
    s.is_echoing = is_marked
    s.quick_acks = max(s.quick_acks, 1)
    return earlier


@jit
def acknowledge(w: World, s: Subflow, at_once: bool, earlier: Packet, now_ns: int) -> Packet:
    """Acknowledge what subflow `s` has received, at once or later. `earlier` is an acknowledgement
    that can enter its first hop now, or no packet. Return as `send_ack`, and `earlier` first."""
    if not at_once:
        delay_ack(w, s, now_ns)
        return earlier
    p = send_ack(w, s, now_ns)
    if earlier == w.no_packet:
        return p
    if p != w.no_packet:
        events.line_up(w, s.ack_line, now_ns, p)
    return earlier


@jit
def delay_ack(w: World, s: Subflow, now_ns: int) -> None:
    """Let subflow `s` send an acknowledgement 40 ms from now, unless it sends one earlier."""
    events.start_timer(w, s.delack, now_ns + DELACK_WAIT_NS)


@jit
def on_delayed_ack(w: World, s: Subflow, now_ns: int) -> Packet:
    """Handle the event of the delayed-acknowledgement timer of subflow `s`. If the timer has
    expired, send an acknowledgement. Return the acknowledgement if it can enter its first hop now,
    else no packet."""
    expired = events.has_expired(w, s.delack, now_ns)
    return send_ack(w, s, now_ns) if expired else w.no_packet
