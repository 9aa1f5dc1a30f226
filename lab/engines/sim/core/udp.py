"""UDP at a constant rate: nobody acknowledges, nothing is sent again, nothing gives way."""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below


@jit
def send_datagram(row: Ints, c: int, now_ns: int) -> None:
    """The next datagram; a host is not punctual to the nanosecond."""
    f, p = row[c + at.FIRST], links.take_packet(row)
    row[p + at.SUBFLOW], row[p + at.ROUTE_POSITION], row[p + at.PACKET_TYPE] = (
        f,
        row[f + at.DATA_ROUTE],
        at.DATAGRAM,
    )
    row[p + at.SIZE] = row[c + at.FRAME_BYTES]
    row[f + at.SEGMENTS_SENT] += 1
    row[c + at.APP_EVENT_NS] = (
        now_ns + row[c + at.SEGMENT_BYTES] * 8 * at.NS_PER_S // row[c + at.DEMAND_BPS]
    )
    events.schedule(row, row[c + at.APP_EVENT_NS], c * at.EVENT_KINDS + at.APP_DUE)
    links.forward(
        row, p, now_ns + 1 + random_below(row, f + at.HOST_RNG_1, row[at.HOST_NOISE_NS]), now_ns
    )


@jit
def receive_datagram(row: Ints, p: int) -> None:
    """One has come to its receiver."""
    f = row[p + at.SUBFLOW]
    row[f + at.SEGMENTS_RECEIVED] += 1
    row[f + at.RCV_NXT] += 1
    row[row[f + at.CONNECTION] + at.DATA_RCV_NXT] += 1
    links.free_packet(row, p)
