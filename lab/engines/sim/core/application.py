"""Applications that write data at a limited rate, every 20 ms."""

from __future__ import annotations

from lab.engines.sim.core import events, udp
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, World

SLICE_NS = 20_000_000  # an application writes its data this often,
UNSENT_SEGMENTS = 16  # and at most this far ahead of the sender


@jit
def restart(w: World, c: Connection, now_ns: int) -> None:
    """Let the application of connection `c` write at its present rate from now on. The connection
    must be established."""
    if c.demand_bps == at.AS_ASKED:
        events.schedule(w, now_ns, c.push)
        return
    if c.demand_bps == at.UNLIMITED:
        c.written, c.app_event_ns = at.FOREVER, 0
        events.schedule(w, now_ns, c.push)
        return
    c.written = min(c.written, c.data_snd_nxt + UNSENT_SEGMENTS)
    c.app_event_ns = now_ns + 1  # must differ from an older event that is due now
    events.schedule(w, c.app_event_ns, c.app)


@jit
def on_application(w: World, c: Connection, now_ns: int) -> bool:
    """Write the next 20 ms of data for connection `c`, whose application has a limited rate.
    Schedule the next write. Return True if TCP data may be sent now.

    The application skips data that TCP cannot send soon, so that unsent data does not pile up. For
    UDP, send one datagram instead, and return False.
    """
    if c.app_event_ns != now_ns:
        return False  # the demand has changed since
    c.app_event_ns = 0
    if c.state != at.ESTABLISHED or c.demand_bps <= 0:
        return False
    if c.is_datagrams == 1:
        udp.send_datagram(w, c, now_ns)
        return False
    segment_bits = 8 * c.segment_bytes
    c.credit_bits += c.demand_bps * SLICE_NS // at.NS_PER_S
    segments = c.credit_bits // segment_bits
    c.credit_bits -= segments * segment_bits
    most = c.data_snd_nxt + max(UNSENT_SEGMENTS, segments)
    c.written = max(c.written, min(c.written + segments, most))
    c.app_event_ns = now_ns + SLICE_NS
    events.schedule(w, now_ns + SLICE_NS, c.app)
    return True
