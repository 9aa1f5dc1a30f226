"""Carry packets over wired links and over the channels of WiFi cells. A hop is one direction of a
link or radio channel. The switch in front of each cell has meters, which limit the rate of data.

LTE is in `lte`, queues that drop early are in `queues`. A first-in first-out queue needs only one
event per packet, because the time at which a packet leaves is known when it arrives. If the link
changes meanwhile, `changed_links` moves these events.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Event, Hop, Packet, Step, Subflow, World


@jit
def new_packet(w: World, s: Subflow, kind: int, route: Step, size: int) -> Packet:
    """Take a packet from the chain of free packets, and fill in its subflow, its kind (such as
    SEGMENT), the first step of its route and its size in bytes. DCTCP's are ECN-capable.

    There is always a free packet, because `event_loop.run` stops before the last one is taken.
    """
    p = w.free_packet
    w.free_packet = p.next
    w.free_packets -= 1
    p.subflow, p.kind = s, kind
    p.step = route
    p.size = size
    if s.connection.is_dctcp == 1:
        p.ecn = at.ECT
    return p


@jit
def free_packet(w: World, p: Packet) -> None:
    p.departs_ns = p.ecn = p.echo = 0
    p.subflow = w.no_subflow
    p.next = w.free_packet
    w.free_packet = p
    w.free_packets += 1


@jit
def add_packets(w: World, packets: list[Packet], arrivals: list[Event], count: int) -> None:
    """Add `count` new packets to the free ones, each with its event of `arrivals`."""
    for n in range(count):
        p, e = packets[n], arrivals[n]
        e.kind = at.ARRIVAL
        e.first = p
        p.arrival = e
        p.wire = w.no_hop
        free_packet(w, p)


@jit
def drop(w: World, h: Hop, p: Packet) -> None:
    """Drop packet `p` at hop `h` and free it. The loss is counted at the hop. It is also counted at
    the packet's subflow if the packet carries data."""
    h.drops += 1
    h.dropped_bytes += p.size
    if p.kind == at.SEGMENT or p.kind == at.DATAGRAM:
        s = p.subflow
        s.segments_dropped += 1
        if p.step == s.data_route:
            s.segments_dropped_first += 1
    free_packet(w, p)


@jit
def admits(w: World, h: Hop, p: Packet) -> bool:
    """Count packet `p` at the entrance of hop `h`. Return True if it may enter. Otherwise drop it
    and return False.

    A hop that is down drops all packets. Any other hop drops a packet with probability LOSS_PPM /
    1,000,000, or in bursts.
    """
    h.in_packets += 1
    h.in_bytes += p.size
    lost = h.is_up == 0
    if not lost and h.loss_ppm > 0:
        probability_ppm = next_loss_ppm(h) if h.has_bursts == 1 else h.loss_ppm
        lost = random_below(h.random, at.MILLION) < probability_ppm
    if lost:
        drop(w, h, p)
    return not lost


@jit
def next_loss_ppm(h: Hop) -> int:
    """Return with which probability a packet is lost that arrives at hop `h`, which loses packets
    in bursts: that of the present state. The packet may change the state for the next one."""
    bursts = h.bursts
    if bursts.is_bad == 1:
        bursts.is_bad = int(random_below(h.random, at.MILLION) >= bursts.end_ppm)
        return bursts.bad_ppm
    bursts.is_bad = int(random_below(h.random, at.MILLION) < bursts.begin_ppm)
    return bursts.good_ppm


@jit
def count_out(h: Hop, p: Packet) -> None:
    """Count packet `p` at the exit of hop `h`, and advance the packet to the next hop of its
    route."""
    h.out_packets += 1
    h.out_bytes += p.size
    p.step = p.step.next


@jit
def forward(w: World, line: Event, p: Packet, at_ns: int, now_ns: int) -> Packet:
    """Let packet `p` arrive at its next hop, or at the end of its route, at time `at_ns`. If
    `at_ns` is later than `now_ns`, schedule the arrival in `line` (`events.line_up`) and return
    no packet. Otherwise return `p`.

    A link that only delays and drops needs no event: the packet crosses it in this call, and the
    link's delay is added to `at_ns`. If such a link drops the packet, return no packet.
    """
    while True:
        h = p.step.hop
        if h.kind != at.WIRE or h.rate_bps > 0 or h.jitter_ns > 0:
            break
        if h.reorder_ppm > 0 or h.duplicate_ppm > 0:
            break
        if not admits(w, h, p):
            return w.no_packet
        at_ns += h.delay_ns
        count_out(h, p)
    if at_ns <= now_ns:
        return p
    events.line_up(w, line, at_ns, p)
    return w.no_packet


# --- links


@jit
def queue_length(h: Hop, now_ns: int) -> int:
    """Return how many packets wait at link `h` or are in transmission.

    The queue of a link holds one time in ns for each packet: the end of its transmission. Packets
    whose transmission has ended by `now_ns` are removed first.
    """
    head, count = h.queue_head, h.queue_count
    size, queue = h.queue_size, h.queue
    while count > 0 and queue[head] <= now_ns:
        head = (head + 1) % size
        count -= 1
    h.queue_head = head
    h.queue_count = count
    return count


@jit
def cross_wire(w: World, h: Hop, p: Packet, now_ns: int) -> Packet:
    """Send packet `p` over link `h`: through its drop-tail queue, at its rate, and then with its
    delay and jitter. Jitter does not reorder packets (see `arrival_ns`).

    Return `p` if it arrives immediately, over a link with neither rate nor delay. Return no
    packet if its arrival is scheduled for later, or if it was dropped.
    """
    out_ns = now_ns
    if h.rate_bps > 0:
        count = queue_length(h, now_ns)
        if count >= h.queue_size:
            drop(w, h, p)
            return w.no_packet
        transmission_ns = p.size * 8 * at.NS_PER_S // h.rate_bps
        out_ns = max(now_ns, h.busy_until_ns) + transmission_ns
        h.busy_until_ns = out_ns
        h.queue[(h.queue_head + count) % h.queue_size] = out_ns
        h.queue_count = count + 1
    p.wire = h
    p.departs_ns = out_ns
    p.out_ns = arrival_ns(h, out_ns, now_ns)
    count_out(h, p)
    return forward(w, h.line, p, p.out_ns, now_ns)


@jit
def arrival_ns(h: Hop, departs_ns: int, now_ns: int) -> int:
    """Return when the packet that leaves link `h` next, at `departs_ns`, is at the other end. Only
    a packet that skips the delay arrives before an earlier one."""
    if h.reorder_ppm > 0 and random_below(h.random, at.MILLION) < h.reorder_ppm:
        return max(now_ns, departs_ns)
    out_ns = departs_ns + h.delay_ns
    if h.jitter_ns > 0:
        millionths = random_below(h.random, 2 * at.MILLION + 1) - at.MILLION
        out_ns += h.jitter_ns * millionths // at.MILLION
    out_ns = max(now_ns, out_ns, h.last_out_ns)
    h.last_out_ns = out_ns
    return out_ns


# --- cells


@jit
def passes_meter(h: Hop, p: Packet, now_ns: int) -> bool:
    """Return True if the meter of hop `h` lets packet `p` pass, False if the packet must be
    dropped. A hop without a meter lets every packet pass.

    The meter is a token bucket. Its only state is the time at which the bucket will be full.
    All packets but TCP's segments pass without being counted (MP-SDN, section V-C).
    """
    if p.kind != at.SEGMENT:
        return True
    size = p.size
    if h.metered != 0:
        meter = h.cell.meters[h.metered - 1]
        refill_ns = size * 8 * at.NS_PER_S // meter.rate_bps
        full_ns = max(now_ns, meter.full_ns) + refill_ns
        if full_ns - now_ns > meter.burst_ns:
            h.meter_drops += 1
            return False
        meter.full_ns = full_ns
    h.meter_passed_bytes += size
    return True


@jit
def airtime_ns(h: Hop, p: Packet) -> int:
    """Return how long packet `p` occupies the radio channel of hop `h`, in ns: a fixed time plus a
    time per byte, multiplied by the mean number of transmissions of a frame."""
    once_ns = h.frame_airtime_ns + p.size * h.byte_airtime_ps // 1000
    return once_ns * h.channel.transmissions_ppm // at.MILLION


@jit
def send_down(w: World, h: Hop, p: Packet, now_ns: int) -> None:
    """Send packet `p` from a WiFi access point to a station over hop `h`, and schedule its arrival.

    The transmission can start at start = max(now, DOWNLINK_BUSY_UNTIL_NS). The packet is dropped if
    the meter refuses it, or if start - now exceeds the access point's buffer, MAX_WAIT_NS.
    Otherwise DOWNLINK_BUSY_UNTIL_NS becomes start + airtime.
    """
    air = h.channel
    start_ns = max(now_ns, air.downlink_busy_until_ns)
    if not passes_meter(h, p, now_ns) or start_ns - now_ns > air.max_wait_ns:
        drop(w, h, p)
        return
    took_ns = airtime_ns(h, p)
    air.downlink_busy_until_ns = start_ns + took_ns
    air.downlink_airtime_ns = took_ns
    h.cell.backlog += 1
    p.step = p.step.next
    events.line_up(w, h.line, start_ns + took_ns, p)


@jit
def send_up(w: World, h: Hop, p: Packet, now_ns: int) -> Packet:
    """Send packet `p` from a station to its WiFi access point over hop `h`. Return `p` if it
    continues now. Return no packet if its arrival is scheduled for later, or if it was dropped.

    The transmission can start at start = max(now, UPLINK_BUSY_UNTIL_NS). The packet is dropped if
    start - now exceeds MAX_WAIT_NS. Otherwise the uplink is busy until start + airtime. If the
    downlink is busy now, the airtime of its last frame is added to this time. In both cases, the
    downlink is busy longer by the airtime of `p`.

    The meter is behind the access point: a packet that the meter drops has already used the
    channel.
    """
    air = h.channel
    start_ns = max(now_ns, air.uplink_busy_until_ns)
    if start_ns - now_ns > air.max_wait_ns:
        drop(w, h, p)
        return w.no_packet
    took_ns = airtime_ns(h, p)
    backlogged = air.downlink_busy_until_ns > now_ns
    between_ns = air.downlink_airtime_ns if backlogged else 0
    air.uplink_busy_until_ns = start_ns + took_ns + between_ns
    air.downlink_busy_until_ns = max(now_ns, air.downlink_busy_until_ns) + took_ns
    h.busy_until_ns = start_ns + took_ns
    if not passes_meter(h, p, start_ns + took_ns):
        drop(w, h, p)
        return w.no_packet
    count_out(h, p)
    return forward(w, h.line, p, start_ns + took_ns, now_ns)


@jit
def leave_air(w: World, p: Packet) -> Packet:
    """Handle packet `p`, which arrives at the end of a hop now. Return `p` if it continues.

    If the hop is a WiFi downlink, remove the packet from the backlog of the access point. If the
    station has left this access point meanwhile, drop the packet and return no packet.
    """
    h = p.step.before.hop
    if h.kind != at.AIR_DOWN:
        return p
    h.cell.backlog -= 1
    if h.is_up == 0:
        p.step = p.step.before
        drop(w, h, p)
        return w.no_packet
    h.out_packets += 1
    h.out_bytes += p.size
    return p
