"""A packet on its way: links, the air of WiFi cells, and the meter in front of a cell; LTE is in `lte`.

A place of a route is a hop or its end. A first-in first-out queue needs one event per packet, because the time of
departure is known on arrival.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below

MILLION = 1_000_000


@jit
def take_packet(row: Ints) -> int:
    """A free packet; there always is one (`loop.run` stops before they run out)."""
    p = row[at.FREE_PACKET]
    row[at.FREE_PACKET], row[at.FREE_PACKETS] = row[p + at.NEXT_FREE], row[at.FREE_PACKETS] - 1
    return p


@jit
def free_packet(row: Ints, p: int) -> None:
    """The packet is gone."""
    row[p + at.NEXT_FREE], row[at.FREE_PACKET], row[at.FREE_PACKETS] = (
        row[at.FREE_PACKET],
        p,
        row[at.FREE_PACKETS] + 1,
    )


@jit
def drop(row: Ints, h: int, p: int) -> None:
    """The packet is lost at hop `h`."""
    row[h + at.DROPS] += 1
    row[h + at.DROPPED_BYTES] += row[p + at.SIZE]
    if row[p + at.PACKET_TYPE] != at.ACK:
        row[row[p + at.SUBFLOW] + at.SEGMENTS_DROPPED] += 1
    free_packet(row, p)


@jit
def count_out(row: Ints, h: int, p: int) -> None:
    """The packet is through hop `h`."""
    row[h + at.OUT_PACKETS] += 1
    row[h + at.OUT_BYTES] += row[p + at.SIZE]
    row[p + at.ROUTE_POSITION] += 1


@jit
def admits(row: Ints, h: int, p: int) -> bool:
    """Count the packet in; False if it was lost there: the link is down, or chance has it."""
    row[h + at.IN_PACKETS] += 1
    row[h + at.IN_BYTES] += row[p + at.SIZE]
    lost = row[h + at.UP] == 0
    if not lost and row[h + at.LOSS_PPM] > 0:
        lost = random_below(row, h + at.RNG_1, MILLION) < row[h + at.LOSS_PPM]
    if lost:
        drop(row, h, p)
    return not lost


@jit
def forward(row: Ints, p: int, at_ns: int, now_ns: int) -> int:
    """Send a packet on from its place at `at_ns`, through wires that only delay; returns it if it is at its next stop now."""
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
    events.schedule(row, at_ns, p * at.EVENT_KINDS + at.ARRIVAL)
    return at.NOTHING


@jit
def queue_length(row: Ints, h: int, now_ns: int) -> int:
    """Packets of a wire that have not left yet; the queue holds their times of departure."""
    head, count, size, base = (
        row[h + at.QUEUE_HEAD],
        row[h + at.QUEUE_COUNT],
        row[h + at.QUEUE_SIZE],
        row[h + at.QUEUE],
    )
    while count > 0 and row[base + head] <= now_ns:
        head = (head + 1) % size
        count -= 1
    row[h + at.QUEUE_HEAD], row[h + at.QUEUE_COUNT] = head, count
    return count


@jit
def cross_wire(row: Ints, h: int, p: int, now_ns: int) -> int:
    """Drop-tail queue, rate, then delay with jitter, in order."""
    out_ns = now_ns
    if row[h + at.RATE_BPS] > 0:
        count = queue_length(row, h, now_ns)
        if count >= row[h + at.QUEUE_SIZE]:
            drop(row, h, p)
            return at.NOTHING
        out_ns = (
            max(now_ns, row[h + at.BUSY_UNTIL_NS])
            + row[p + at.SIZE] * 8 * at.NS_PER_S // row[h + at.RATE_BPS]
        )
        row[h + at.BUSY_UNTIL_NS] = out_ns
        row[row[h + at.QUEUE] + (row[h + at.QUEUE_HEAD] + count) % row[h + at.QUEUE_SIZE]] = out_ns
        row[h + at.QUEUE_COUNT] = count + 1
    out_ns += row[h + at.DELAY_NS]
    if row[h + at.JITTER_NS] > 0:
        out_ns += (
            row[h + at.JITTER_NS]
            * (random_below(row, h + at.RNG_1, 2 * MILLION + 1) - MILLION)
            // MILLION
        )
    out_ns = max(now_ns, out_ns, row[h + at.LAST_OUT_NS])
    row[h + at.LAST_OUT_NS] = out_ns
    count_out(row, h, p)
    return forward(row, p, out_ns, now_ns)


@jit
def passes_meter(row: Ints, h: int, p: int, now_ns: int) -> bool:
    """A token bucket of the cell's switch, kept as the time at which it will be full again; what does not fit is dropped.
    Acknowledgements pass uncounted (MP-SDN, section V-C), and so does what is not TCP."""
    if row[p + at.PACKET_TYPE] != at.SEGMENT:
        return True
    size = row[p + at.SIZE]
    if row[h + at.METERED] != 0:
        c = row[h + at.CELL] + (row[h + at.METERED] - 1) * at.METER_FIELDS
        full_ns = (
            max(now_ns, row[c + at.METER_FULL_NS]) + size * 8 * at.NS_PER_S // row[c + at.METER_BPS]
        )
        if full_ns - now_ns > row[c + at.METER_BURST_NS]:
            row[h + at.METER_DROPS] += 1
            return False
        row[c + at.METER_FULL_NS] = full_ns
    row[h + at.METER_PASSED_BYTES] += size
    return True


@jit
def airtime_ns(row: Ints, h: int, p: int) -> int:
    """What every frame takes, what its bytes take, and all of it again for every time it is sent."""
    once_ns = row[h + at.FRAME_AIRTIME_NS] + row[p + at.SIZE] * row[h + at.BYTE_AIRTIME_PS] // 1000
    return once_ns * row[row[h + at.MEDIUM] + at.TRANSMISSIONS_PPM] // MILLION


@jit
def send_down(row: Ints, h: int, p: int, now_ns: int) -> None:
    """start = max(now, next_free); next_free = start + airtime; drop if start - now exceeds the buffer."""
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
    events.schedule(row, start_ns + took_ns, p * at.EVENT_KINDS + at.ARRIVAL)


@jit
def send_up(row: Ints, h: int, p: int, now_ns: int) -> int:
    """start = max(now, uplink_free); uplink_free = start + airtime + (backlogged downlink ? its airtime : 0);
    next_free = max(now, next_free) + airtime. The meter of uplink data is behind the access point: its air is spent."""
    c = row[h + at.MEDIUM]
    start_ns = max(now_ns, row[c + at.UPLINK_BUSY_UNTIL_NS])
    if start_ns - now_ns > row[c + at.MAX_WAIT_NS]:
        drop(row, h, p)
        return at.NOTHING
    took_ns = airtime_ns(row, h, p)
    between_ns = (
        row[c + at.DOWNLINK_AIRTIME_NS] if row[c + at.DOWNLINK_BUSY_UNTIL_NS] > now_ns else 0
    )
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
    """A packet that has come down no longer waits at the access point."""
    place = row[p + at.ROUTE_POSITION] - 1
    h = row[place]
    if h != at.NOTHING and row[h + at.KIND] == at.AIR_DOWN:
        row[row[h + at.CELL] + at.BACKLOG] -= 1
        row[h + at.OUT_PACKETS] += 1
        row[h + at.OUT_BYTES] += row[p + at.SIZE]
