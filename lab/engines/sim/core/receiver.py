"""Receive the segments of a subflow, acknowledge them (RFC 5681, section 4.2), and put the data of
a connection in order.

An acknowledgement is sent immediately for every second segment, and for every segment that is out
of order or fills a gap. Otherwise it is delayed by 40 ms. In Linux's quick mode
(tcp_incr_quickack), the next 16 acknowledgements are sent immediately. Quick mode begins with the
first segment, with a segment after a pause longer than the RTO, and with a segment that has arrived
before. The receiver sends no data, so its RTO is still that of the handshake.
"""

from __future__ import annotations

from lab.engines.sim.core import events, links, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

ACK_EVERY = 2  # segments
QUICK_ACKS = 16  # TCP_MAX_QUICKACKS
DELACK_WAIT_NS = 40_000_000  # Linux, TCP_DELACK_MIN


@jit
def window_end(row: Ints, c: int) -> int:
    """Return the data sequence number at which the receive window of connection `c` ends. Record it
    as the last end that was offered to the sender.

    As in Linux, the window is the free part of the receive buffer. Out-of-order data occupies the
    buffer until earlier data has arrived. While there is much out-of-order data, the end of the
    window stays where it is. The end never moves back (__mptcp_space, mptcp_set_rwin). Only Linux's
    scheduler respects this end.
    """
    free = row[c + at.RECEIVE_WINDOW] - row[c + at.REORDER_BUFFERED]
    end = max(row[c + at.OFFERED_WINDOW_END], row[c + at.DATA_RCV_NXT] + free)
    row[c + at.OFFERED_WINDOW_END] = end
    return end


@jit
def send_ack(row: Ints, f: int, now_ns: int) -> int:
    """Send an acknowledgement of what subflow `f` has received.

    If the acknowledgement reaches the first queue on its route at `now_ns`, return it, so that the
    caller lets it enter the queue. Return NOTHING (-1) if the acknowledgement arrives later, or was
    dropped (see `links.forward`).
    """
    c = row[f + at.CONNECTION]
    row[f + at.UNACKED] = 0
    row[f + at.QUICK_ACKS] = max(0, row[f + at.QUICK_ACKS] - 1)
    row[f + at.DELACK_NS] = 0
    p = links.new_packet(row, f, at.ACK, row[f + at.ACK_ROUTE], row[c + at.ACK_BYTES])
    row[p + at.SEQ] = row[f + at.RCV_NXT]
    row[p + at.DSN] = row[c + at.DATA_RCV_NXT]
    row[p + at.TRANSMISSION] = row[f + at.LAST_TRANSMISSION]
    row[p + at.SEGMENTS_SO_FAR] = row[f + at.SEGMENTS_RECEIVED]
    row[p + at.WINDOW_END] = window_end(row, c)
    return links.forward(row, f + at.ACK_LINE, p, now_ns, now_ns)


@jit
def receive_segment(row: Ints, f: int, p: int, now_ns: int) -> bool:
    """Receive segment `p` on subflow `f`. Return True if it must be acknowledged immediately, False
    if its acknowledgement is to be delayed."""
    seq = row[p + at.SEQ]
    paused = now_ns - row[f + at.LAST_RECEIVED_NS] > row[f + at.RECEIVER_RTO_NS]
    if row[f + at.SEGMENTS_RECEIVED] == 0 or paused or seq < row[f + at.RCV_NXT]:
        row[f + at.QUICK_ACKS] = QUICK_ACKS
    row[f + at.LAST_RECEIVED_NS] = now_ns
    slot = rings.segment(row, f, seq)
    row[f + at.SEGMENTS_RECEIVED] += 1
    row[f + at.LAST_TRANSMISSION] = row[p + at.TRANSMISSION]
    held = row[f + at.OUT_OF_ORDER_HELD]
    if seq == row[f + at.RCV_NXT]:
        row[slot + rings.SEG_ARRIVAL] = row[f + at.SEGMENTS_RECEIVED]
        row[f + at.RCV_NXT] = seq + 1
        while (
            row[f + at.OUT_OF_ORDER_HELD] > 0
            and row[rings.segment(row, f, row[f + at.RCV_NXT]) + rings.SEG_ARRIVAL] > 0
        ):
            row[f + at.OUT_OF_ORDER_HELD] -= 1
            row[f + at.RCV_NXT] += 1
        row[f + at.UNACKED] += 1
        return held > 0 or row[f + at.UNACKED] >= ACK_EVERY or row[f + at.QUICK_ACKS] > 0
    if seq > row[f + at.RCV_NXT] and row[slot + rings.SEG_ARRIVAL] == 0:
        row[slot + rings.SEG_ARRIVAL] = row[f + at.SEGMENTS_RECEIVED]
        row[f + at.OUT_OF_ORDER_HELD] += 1
        row[f + at.SEGMENTS_OUT_OF_ORDER] += 1
    return True


@jit
def reassemble(row: Ints, c: int, dsn: int, now_ns: int) -> None:
    """Put the segment with data sequence number `dsn` into the reorder buffer of connection `c`.
    The application reads data as soon as all earlier data has arrived."""
    expected = row[c + at.DATA_RCV_NXT]
    if dsn == expected:
        expected += 1
        while (
            row[c + at.REORDER_BUFFERED] > 0
            and row[rings.data(row, c, expected) + rings.DSN_RECEIVED] == 1
        ):
            row[rings.data(row, c, expected) + rings.DSN_RECEIVED] = 0
            row[c + at.REORDER_BUFFERED] -= 1
            expected += 1
        row[c + at.DATA_RCV_NXT] = expected
        if expected >= row[c + at.TOTAL_SEGMENTS] and row[c + at.DONE_NS] == 0:
            row[c + at.DONE_NS] = now_ns
    elif dsn > expected and row[rings.data(row, c, dsn) + rings.DSN_RECEIVED] == 0:
        row[rings.data(row, c, dsn) + rings.DSN_RECEIVED] = 1
        row[c + at.DATA_OUT_OF_ORDER] += 1
        buffered = row[c + at.REORDER_BUFFERED] + 1
        row[c + at.REORDER_BUFFERED] = buffered
        row[c + at.REORDER_BUFFERED_MAX] = max(row[c + at.REORDER_BUFFERED_MAX], buffered)
        row[c + at.REORDER_BUFFERED_RECENT] = max(row[c + at.REORDER_BUFFERED_RECENT], buffered)


@jit
def delay_ack(row: Ints, f: int, now_ns: int) -> None:
    """Let subflow `f` send an acknowledgement 40 ms from now, unless it sends one earlier."""
    events.start_timer(row, f + at.DELACK_NS, now_ns + DELACK_WAIT_NS, at.DELACK_DUE, f)


@jit
def on_delayed_ack(row: Ints, f: int, now_ns: int) -> int:
    """Handle the event of the delayed-acknowledgement timer of subflow `f`. If the timer has
    expired, send an acknowledgement. Return the acknowledgement if it can enter its first hop now,
    else NOTHING (-1)."""
    expired = events.timer_has_expired(row, f + at.DELACK_NS, now_ns, at.DELACK_DUE, f)
    return send_ack(row, f, now_ns) if expired else at.NOTHING
