"""UDP at a constant rate: nobody acknowledges, nothing is sent again, nothing gives way."""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links as hops
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import draw


@jit
def send(row: Ints, c: int, now_ns: int) -> None:
    """The next datagram; a host is not punctual to the nanosecond."""
    f, p = row[c + at.FIRST], hops.take(row)
    row[p + at.OF_SUBFLOW], row[p + at.PLACE], row[p + at.IS_ACK] = (
        f,
        row[f + at.DATA_ROUTE],
        at.DATAGRAM,
    )
    row[p + at.SIZE] = row[c + at.FRAME_BYTES]
    row[f + at.SEGMENTS_SENT] += 1
    row[c + at.APP_EVENT_NS] = (
        now_ns + row[c + at.SEGMENT_BYTES] * 8 * at.NS_PER_S // row[c + at.DEMAND_BPS]
    )
    events.push(row, row[c + at.APP_EVENT_NS], c * at.EVENT_KINDS + at.APP_DUE)
    hops.forward(row, p, now_ns + 1 + draw(row, f + at.NOISE_1, row[at.HOST_NOISE_NS]), now_ns)


@jit
def arrived(row: Ints, p: int) -> None:
    """One has come to its receiver."""
    f = row[p + at.OF_SUBFLOW]
    row[f + at.SEGMENTS_IN] += 1
    row[f + at.RCV_NXT] += 1
    row[row[f + at.OF_CONNECTION] + at.DATA_NXT] += 1
    hops.give_back(row, p)
