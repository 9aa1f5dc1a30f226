"""UDP at a constant rate: nobody acknowledges, nothing is sent again, nothing gives way."""

from __future__ import annotations

from lab.engines.sim import heap, hops
from lab.engines.sim import layout as at
from lab.engines.sim.chance import draw
from lab.engines.sim.jit import jit


@jit
def send(w: at.World, c: int, now_ns: int) -> None:
    """The next datagram; a host is not punctual to the nanosecond."""
    conn, f, p = w.conn, w.conn[c + at.FIRST], hops.take(w)
    w.packet[p + at.OF_SUBFLOW], w.packet[p + at.PLACE], w.packet[p + at.IS_ACK] = f, w.sub[f + at.DATA_ROUTE], at.DATAGRAM
    w.packet[p + at.SIZE] = conn[c + at.FRAME_BYTES]
    w.sub[f + at.SEGMENTS_SENT] += 1
    conn[c + at.APP_EVENT_NS] = now_ns + conn[c + at.SEGMENT_BYTES] * 8 * at.NS_PER_S // conn[c + at.DEMAND_BPS]
    heap.push(w, conn[c + at.APP_EVENT_NS], c * at.EVENT_KINDS + at.APP_DUE)
    hops.forward(w, p, now_ns + 1 + draw(w.sub, f + at.NOISE_1, w.g[at.HOST_NOISE_NS]), now_ns)


@jit
def arrived(w: at.World, p: int) -> None:
    """One has come to its receiver."""
    f = w.packet[p + at.OF_SUBFLOW]
    w.sub[f + at.SEGMENTS_IN] += 1
    w.sub[f + at.RCV_NXT] += 1
    w.conn[w.sub[f + at.OF_CONNECTION] + at.DATA_NXT] += 1
    hops.give_back(w, p)
