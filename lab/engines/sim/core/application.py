"""Applications that write data at a limited rate, every 20 ms."""

from __future__ import annotations

from lab.engines.sim.core import events, udp
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

SLICE_NS = 20_000_000  # an application writes its data this often,
UNSENT_SEGMENTS = 16  # and at most this far ahead of the sender


@jit
def on_application(row: Ints, c: int, now_ns: int) -> bool:
    """Write the next 20 ms of data for connection `c`, whose application has a limited rate.
    Schedule the next write. Return True if TCP data may be sent now.

    The application skips data that TCP cannot send soon, so that unsent data does not pile up. For
    UDP, send one datagram instead, and return False.
    """
    if row[c + at.APP_EVENT_NS] != now_ns:
        return False  # the demand has changed since
    row[c + at.APP_EVENT_NS] = 0
    if row[c + at.CONN_STATE] != at.RUNNING or row[c + at.DEMAND_BPS] <= 0:
        return False
    if row[c + at.DATAGRAMS] == 1:
        udp.send_datagram(row, c, now_ns)
        return False
    segment_bits = 8 * row[c + at.SEGMENT_BYTES]
    row[c + at.CREDIT_BITS] += row[c + at.DEMAND_BPS] * SLICE_NS // at.NS_PER_S
    segments = row[c + at.CREDIT_BITS] // segment_bits
    row[c + at.CREDIT_BITS] -= segments * segment_bits
    most = row[c + at.DATA_SND_NXT] + max(UNSENT_SEGMENTS, segments)
    row[c + at.WRITTEN] = max(row[c + at.WRITTEN], min(row[c + at.WRITTEN] + segments, most))
    row[c + at.APP_EVENT_NS] = now_ns + SLICE_NS
    events.schedule(row, now_ns + SLICE_NS, at.APP_DUE, c)
    return True
