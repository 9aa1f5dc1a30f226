"""One subflow's receiver: acknowledges every second segment, and at once what is out of order (RFC 5681, section 4.2)."""

from __future__ import annotations

from lab.engines.sim.core import events, links, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

ACK_EVERY = 2  # segments, RFC 5681, section 4.2
DELACK_WAIT_NS = 40_000_000  # Linux, TCP_DELACK_MIN


@jit
def send_ack(row: Ints, f: int, now_ns: int) -> int:
    """Send an acknowledgement of what has arrived; returns it if it is at its first stop now."""
    c = row[f + at.CONNECTION]
    row[f + at.UNACKED], row[f + at.DELACK_NS] = 0, 0
    p = links.take_packet(row)
    row[p + at.SUBFLOW], row[p + at.ROUTE_POSITION], row[p + at.PACKET_TYPE] = (
        f,
        row[f + at.ACK_ROUTE],
        1,
    )
    row[p + at.SIZE], row[p + at.SEQ], row[p + at.DSN] = (
        row[c + at.ACK_BYTES],
        row[f + at.RCV_NXT],
        row[c + at.DATA_RCV_NXT],
    )
    row[p + at.TRANSMISSION], row[p + at.SEGMENTS_SO_FAR] = (
        row[f + at.LAST_TRANSMISSION],
        row[f + at.SEGMENTS_RECEIVED],
    )
    return links.forward(row, p, now_ns, now_ns)


@jit
def receive_segment(row: Ints, f: int, p: int) -> bool:
    """A segment has come to the receiver; whether to acknowledge it at once."""
    seq = row[p + at.SEQ]
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
        return held > 0 or row[f + at.UNACKED] >= ACK_EVERY
    if seq > row[f + at.RCV_NXT] and row[slot + rings.SEG_ARRIVAL] == 0:
        row[slot + rings.SEG_ARRIVAL] = row[f + at.SEGMENTS_RECEIVED]
        row[f + at.OUT_OF_ORDER_HELD] += 1
        row[f + at.SEGMENTS_OUT_OF_ORDER] += 1
    return True


@jit
def delay_ack(row: Ints, f: int, now_ns: int) -> None:
    """The delayed acknowledgement's timer."""
    events.start_timer(
        row, f + at.DELACK_NS, now_ns + DELACK_WAIT_NS, f * at.EVENT_KINDS + at.DELACK_DUE
    )


@jit
def on_delayed_ack(row: Ints, f: int, now_ns: int) -> int:
    """The event of a delayed acknowledgement: answer, or wait on; returns the answer if it is at its first stop now."""
    ran_out = events.timer_has_expired(
        row, f + at.DELACK_NS, now_ns, f * at.EVENT_KINDS + at.DELACK_DUE
    )
    return send_ack(row, f, now_ns) if ran_out else at.NOTHING
