"""UDP datagrams at a constant rate, without acknowledgements, retransmissions or congestion
control."""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below


@jit
def send_datagram(row: Ints, c: int, now_ns: int) -> None:
    """Send the next datagram of connection `c`, and schedule the one after it. The datagram leaves
    the host at a random time up to HOST_NOISE_NS from now."""
    f = row[c + at.FIRST]
    p = links.new_packet(row, f, at.DATAGRAM, row[f + at.DATA_ROUTE], row[c + at.FRAME_BYTES])
    row[f + at.SEGMENTS_SENT] += 1
    interval_ns = row[c + at.SEGMENT_BYTES] * 8 * at.NS_PER_S // row[c + at.DEMAND_BPS]
    row[c + at.APP_EVENT_NS] = now_ns + interval_ns
    events.schedule(row, row[c + at.APP_EVENT_NS], at.APP_DUE, c)
    noise_ns = random_below(row, f + at.HOST_RNG_1, row[at.HOST_NOISE_NS])
    links.forward(row, f + at.HOST_LINE, p, now_ns + 1 + noise_ns, now_ns)


@jit
def receive_datagram(row: Ints, p: int) -> None:
    f = row[p + at.SUBFLOW]
    row[f + at.SEGMENTS_RECEIVED] += 1
    row[f + at.RCV_NXT] += 1
    row[row[f + at.CONNECTION] + at.DATA_RCV_NXT] += 1
    links.free_packet(row, p)
