"""Carry a packet over the hops of its route: links, the air of WiFi cells, and the meter in front
of a cell.

LTE bearers are in `lte`. A route is a list of hops, with NOTHING behind the last one. A first-in
first-out queue needs one event per packet, because the time of departure is known when the packet
arrives.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below

MILLION = 1_000_000


@jit
def new_packet(row: Ints, f: int, packet_type: int, route: int, size: int) -> int:
    """Take a free packet for a subflow; `event_loop.run` stops before there is none."""
    p = row[at.FREE_PACKET]
    row[at.FREE_PACKET] = row[p + at.NEXT_FREE]
    row[at.FREE_PACKETS] -= 1
    row[p + at.SUBFLOW] = f
    row[p + at.PACKET_TYPE] = packet_type
    row[p + at.ROUTE_POSITION] = route
    row[p + at.SIZE] = size
    return p


@jit
def free_packet(row: Ints, p: int) -> None:
    """Put a packet back among the free ones."""
    row[p + at.NEXT_FREE] = row[at.FREE_PACKET]
    row[at.FREE_PACKET] = p
    row[at.FREE_PACKETS] += 1


@jit
def drop(row: Ints, h: int, p: int) -> None:
    """Drop a packet at hop `h`."""
    row[h + at.DROPS] += 1
    row[h + at.DROPPED_BYTES] += row[p + at.SIZE]
    if row[p + at.PACKET_TYPE] != at.ACK:
        f = row[p + at.SUBFLOW]
        row[f + at.SEGMENTS_DROPPED] += 1
        if row[p + at.ROUTE_POSITION] == row[f + at.DATA_ROUTE]:
            row[f + at.SEGMENTS_DROPPED_FIRST] += 1
    free_packet(row, p)


@jit
def admits(row: Ints, h: int, p: int) -> bool:
    """Count a packet in at hop `h`; drop it and return False if the link is down or loses it at
    random."""
    row[h + at.IN_PACKETS] += 1
    row[h + at.IN_BYTES] += row[p + at.SIZE]
    lost = row[h + at.UP] == 0
    if not lost and row[h + at.LOSS_PPM] > 0:
        lost = random_below(row, h + at.RNG_1, MILLION) < row[h + at.LOSS_PPM]
    if lost:
        drop(row, h, p)
    return not lost


@jit
def count_out(row: Ints, h: int, p: int) -> None:
    """Count a packet out of hop `h`."""
    row[h + at.OUT_PACKETS] += 1
    row[h + at.OUT_BYTES] += row[p + at.SIZE]
    row[p + at.ROUTE_POSITION] += 1


@jit
def forward(row: Ints, p: int, at_ns: int, now_ns: int) -> int:
    """Let a packet arrive at its next hop at `at_ns`; return it if that is now, else NOTHING.

    Links that only delay need no event: the packet passes them here.
    """
    while True:
        h = row[row[p + at.ROUTE_POSITION]]
        if (
            h == at.NOTHING
            or row[h + at.KIND] != at.WIRE
            or row[h + at.RATE_BPS] > 0
            or row[h + at.JITTER_NS] > 0
        ):
            break
        if not admits(row, h, p):
            return at.NOTHING
        at_ns += row[h + at.DELAY_NS]
        count_out(row, h, p)
    if at_ns <= now_ns:
        return p
    events.schedule(row, at_ns, at.ARRIVAL, p)
    return at.NOTHING


# --- links


@jit
def queue_length(row: Ints, h: int, now_ns: int) -> int:
    """Return how many packets of a link have not left; its queue holds their times of departure."""
    head, count = row[h + at.QUEUE_HEAD], row[h + at.QUEUE_COUNT]
    size, queue = row[h + at.QUEUE_SIZE], row[h + at.QUEUE]
    while count > 0 and row[queue + head] <= now_ns:
        head = (head + 1) % size
        count -= 1
    row[h + at.QUEUE_HEAD] = head
    row[h + at.QUEUE_COUNT] = count
    return count


@jit
def cross_wire(row: Ints, h: int, p: int, now_ns: int) -> int:
    """Send a packet through a drop-tail queue, the link's rate, then its delay with jitter; packets
    stay in order."""
    out_ns = now_ns
    if row[h + at.RATE_BPS] > 0:
        count = queue_length(row, h, now_ns)
        if count >= row[h + at.QUEUE_SIZE]:
            drop(row, h, p)
            return at.NOTHING
        transmission_ns = row[p + at.SIZE] * 8 * at.NS_PER_S // row[h + at.RATE_BPS]
        out_ns = max(now_ns, row[h + at.BUSY_UNTIL_NS]) + transmission_ns
        row[h + at.BUSY_UNTIL_NS] = out_ns
        row[row[h + at.QUEUE] + (row[h + at.QUEUE_HEAD] + count) % row[h + at.QUEUE_SIZE]] = out_ns
        row[h + at.QUEUE_COUNT] = count + 1
    out_ns += row[h + at.DELAY_NS]
    if row[h + at.JITTER_NS] > 0:
        millionths = random_below(row, h + at.RNG_1, 2 * MILLION + 1) - MILLION
        out_ns += row[h + at.JITTER_NS] * millionths // MILLION
    out_ns = max(now_ns, out_ns, row[h + at.LAST_OUT_NS])
    row[h + at.LAST_OUT_NS] = out_ns
    count_out(row, h, p)
    return forward(row, p, out_ns, now_ns)


# --- cells


@jit
def passes_meter(row: Ints, h: int, p: int, now_ns: int) -> bool:
    """Return True if the meter of a station's switch passes a packet.

    The meter is a token bucket, kept as the time at which it will be full. Acknowledgements
    pass without being counted (MP-SDN, section V-C), and so does UDP.
    """
    if row[p + at.PACKET_TYPE] != at.SEGMENT:
        return True
    size = row[p + at.SIZE]
    if row[h + at.METERED] != 0:
        c = row[h + at.CELL] + (row[h + at.METERED] - 1) * at.METER_FIELDS
        refill_ns = size * 8 * at.NS_PER_S // row[c + at.METER_BPS]
        full_ns = max(now_ns, row[c + at.METER_FULL_NS]) + refill_ns
        if full_ns - now_ns > row[c + at.METER_BURST_NS]:
            row[h + at.METER_DROPS] += 1
            return False
        row[c + at.METER_FULL_NS] = full_ns
    row[h + at.METER_PASSED_BYTES] += size
    return True


@jit
def airtime_ns(row: Ints, h: int, p: int) -> int:
    """Return the air that a frame takes: its fixed part and its bytes, for each of its
    transmissions."""
    once_ns = row[h + at.FRAME_AIRTIME_NS] + row[p + at.SIZE] * row[h + at.BYTE_AIRTIME_PS] // 1000
    return once_ns * row[row[h + at.MEDIUM] + at.TRANSMISSIONS_PPM] // MILLION


@jit
def send_down(row: Ints, h: int, p: int, now_ns: int) -> None:
    """Send a packet from a WiFi access point to a station.

    start = max(now, busy_until); busy_until = start + airtime; it is dropped if start - now exceeds
    the buffer.
    """
    c = row[h + at.MEDIUM]
    start_ns = max(now_ns, row[c + at.DOWNLINK_BUSY_UNTIL_NS])
    if not passes_meter(row, h, p, now_ns) or start_ns - now_ns > row[c + at.MAX_WAIT_NS]:
        drop(row, h, p)
        return
    took_ns = airtime_ns(row, h, p)
    row[c + at.DOWNLINK_BUSY_UNTIL_NS] = start_ns + took_ns
    row[c + at.DOWNLINK_AIRTIME_NS] = took_ns
    row[row[h + at.CELL] + at.BACKLOG] += 1
    row[p + at.ROUTE_POSITION] += 1
    events.schedule(row, start_ns + took_ns, at.ARRIVAL, p)


@jit
def send_up(row: Ints, h: int, p: int, now_ns: int) -> int:
    """Send a packet from a station to its WiFi access point; return it if it is at its next hop
    now.

    start = max(now, uplink_busy_until); uplink_busy_until = start + airtime + (backlogged downlink
    ? its airtime : 0); downlink_busy_until = max(now, downlink_busy_until) + airtime. The meter is
    behind the access point, so what it drops has taken its air.
    """
    c = row[h + at.MEDIUM]
    start_ns = max(now_ns, row[c + at.UPLINK_BUSY_UNTIL_NS])
    if start_ns - now_ns > row[c + at.MAX_WAIT_NS]:
        drop(row, h, p)
        return at.NOTHING
    took_ns = airtime_ns(row, h, p)
    backlogged = row[c + at.DOWNLINK_BUSY_UNTIL_NS] > now_ns
    between_ns = row[c + at.DOWNLINK_AIRTIME_NS] if backlogged else 0
    row[c + at.UPLINK_BUSY_UNTIL_NS] = start_ns + took_ns + between_ns
    row[c + at.DOWNLINK_BUSY_UNTIL_NS] = max(now_ns, row[c + at.DOWNLINK_BUSY_UNTIL_NS]) + took_ns
    row[h + at.BUSY_UNTIL_NS] = start_ns + took_ns
    if not passes_meter(row, h, p, start_ns + took_ns):
        drop(row, h, p)
        return at.NOTHING
    count_out(row, h, p)
    return forward(row, p, start_ns + took_ns, now_ns)


@jit
def leave_air(row: Ints, p: int) -> None:
    """Take a packet off the access point's backlog if it has just crossed the air of a WiFi cell
    downwards."""
    h = row[row[p + at.ROUTE_POSITION] - 1]
    if h != at.NOTHING and row[h + at.KIND] == at.AIR_DOWN:
        row[row[h + at.CELL] + at.BACKLOG] -= 1
        row[h + at.OUT_PACKETS] += 1
        row[h + at.OUT_BYTES] += row[p + at.SIZE]
