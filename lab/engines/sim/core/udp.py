"""UDP datagrams at a constant rate, without acknowledgements, retransmissions or congestion
control.

Of a call, the number and the one-way delay of each datagram that arrives are kept. The core stops
(`World.halted_by`) when there is no room for more, and the engine takes them.
"""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Connection, Packet, World


@jit
def send_datagram(w: World, c: Connection, now_ns: int) -> None:
    """Send the next datagram of connection `c`, and schedule the one after it. The datagram leaves
    the host at a random time up to HOST_NOISE_NS from now."""
    s = c.subflows[0]
    p = links.new_packet(w, s, at.DATAGRAM, s.data_route, c.frame_bytes)
    p.seq = s.segments_sent
    p.stamp_ns = now_ns
    s.segments_sent += 1
    interval_ns = c.segment_bytes * 8 * at.NS_PER_S // c.demand_bps
    c.app_event_ns = now_ns + interval_ns
    events.schedule(w, c.app_event_ns, c.app)
    noise_ns = random_below(s.host_random, w.host_noise_ns)
    links.forward(w, s.host_line, p, now_ns + 1 + noise_ns, now_ns)


@jit
def receive_datagram(w: World, p: Packet, now_ns: int) -> None:
    s = p.subflow
    c = s.connection
    s.segments_received += 1
    s.rcv_nxt += 1
    c.data_rcv_nxt += 1
    if c.arrivals < c.arrivals_size:
        c.arrival_numbers[c.arrivals] = p.seq
        c.arrival_delays_ns[c.arrivals] = now_ns - p.stamp_ns
        c.arrivals += 1
        if c.arrivals == c.arrivals_size:
            w.halted_by = c.application
    links.free_packet(w, p)
