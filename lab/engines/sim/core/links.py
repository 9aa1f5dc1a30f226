"""Carry packets over wired links and over the channels of WiFi cells. A hop is one direction of a
link or radio channel. The switch in front of each cell has meters, which limit the rate of data.

LTE is in `lte`. A first-in first-out queue needs only one event per packet, because the time at
which a packet leaves is known when it arrives.
"""

from __future__ import annotations

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit
from lab.engines.sim.core.random_numbers import random_below

MILLION = 1_000_000


@jit
def new_packet(row: Ints, f: int, packet_type: int, route: int, size: int) -> int:
    """Take a packet from the list of free packets, and fill in its subflow `f`, type, route and
    size in bytes.

    `packet_type` is SEGMENT, ACK or DATAGRAM. `route` is the index in `row` of the first hop of the
    route. There is always a free packet, because `event_loop.run` stops before the last one is
    taken.
    """
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
    row[p + at.NEXT_FREE] = row[at.FREE_PACKET]
    row[at.FREE_PACKET] = p
    row[at.FREE_PACKETS] += 1


@jit
def drop(row: Ints, h: int, p: int) -> None:
    """Drop packet `p` at hop `h` and free it. The loss is counted at the hop. It is also counted at
    the packet's subflow, unless the packet is an acknowledgement."""
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
    """Count packet `p` at the entrance of hop `h`. Return True if it may enter. Otherwise drop it
    and return False.

    A hop that is down drops all packets. Any other hop drops a packet with probability LOSS_PPM /
    1,000,000.
    """
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
    """Count packet `p` at the exit of hop `h`, and advance the packet to the next hop of its
    route."""
    row[h + at.OUT_PACKETS] += 1
    row[h + at.OUT_BYTES] += row[p + at.SIZE]
    row[p + at.ROUTE_POSITION] += 1


@jit
def forward(row: Ints, line: int, p: int, at_ns: int, now_ns: int) -> int:
    """Let packet `p` arrive at its next hop, or at the end of its route, at time `at_ns`. If
    `at_ns` is later than `now_ns`, schedule the arrival in `line` (`events.line_up`) and return
    NOTHING (-1). Otherwise return `p`.

    A link with neither rate nor jitter needs no event: the packet crosses it in this call, and the
    link's delay is added to `at_ns`. If such a link drops the packet, return NOTHING.
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
    events.line_up(row, line, at_ns, p)
    return at.NOTHING


# --- links


@jit
def queue_length(row: Ints, h: int, now_ns: int) -> int:
    """Return how many packets wait at link `h` or are in transmission.

    The queue of a link holds one time in ns for each packet: the end of its transmission. Packets
    whose transmission has ended by `now_ns` are removed first.
    """
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
    """Send packet `p` over link `h`: through its drop-tail queue, at its rate, and then with its
    delay and jitter. Jitter does not reorder packets.

    Return `p` if it arrives immediately, over a link with neither rate nor delay. Return NOTHING
    (-1) if its arrival is scheduled for later, or if it was dropped.
    """
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
    return forward(row, h + at.LINE, p, out_ns, now_ns)


# --- cells


@jit
def passes_meter(row: Ints, h: int, p: int, now_ns: int) -> bool:
    """Return True if the meter of hop `h` lets packet `p` pass, False if the packet must be
    dropped. A hop without a meter lets every packet pass.

    The meter is a token bucket. Its only state is the time at which the bucket will be full.
    Acknowledgements and UDP pass without being counted (MP-SDN, section V-C).
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
    """Return how long packet `p` occupies the radio channel of hop `h`, in ns: a fixed time plus a
    time per byte, multiplied by the mean number of transmissions of a frame."""
    once_ns = row[h + at.FRAME_AIRTIME_NS] + row[p + at.SIZE] * row[h + at.BYTE_AIRTIME_PS] // 1000
    return once_ns * row[row[h + at.MEDIUM] + at.TRANSMISSIONS_PPM] // MILLION


@jit
def send_down(row: Ints, h: int, p: int, now_ns: int) -> None:
    """Send packet `p` from a WiFi access point to a station over hop `h`, and schedule its arrival.

    The transmission can start at start = max(now, DOWNLINK_BUSY_UNTIL_NS). The packet is dropped if
    the meter refuses it, or if start - now exceeds the access point's buffer, MAX_WAIT_NS.
    Otherwise DOWNLINK_BUSY_UNTIL_NS becomes start + airtime.
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
    events.line_up(row, h + at.LINE, start_ns + took_ns, p)


@jit
def send_up(row: Ints, h: int, p: int, now_ns: int) -> int:
    """Send packet `p` from a station to its WiFi access point over hop `h`. Return `p` if it
    continues now. Return NOTHING (-1) if its arrival is scheduled for later, or if it was dropped.

    The transmission can start at start = max(now, UPLINK_BUSY_UNTIL_NS). The packet is dropped if
    start - now exceeds MAX_WAIT_NS. Otherwise the uplink is busy until start + airtime. If the
    downlink is busy now, the airtime of its last frame is added to this time. In both cases, the
    downlink is busy longer by the airtime of `p`.

    The meter is behind the access point: a packet that the meter drops has already used the
    channel.
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
    return forward(row, h + at.LINE, p, start_ns + took_ns, now_ns)


@jit
def leave_air(row: Ints, p: int) -> int:
    """Handle packet `p`, which arrives at the end of a hop now. Return `p` if it continues.

    If the hop is a WiFi downlink, remove the packet from the backlog of the access point. If the
    station has left this access point meanwhile, drop the packet and return NOTHING (-1).
    """
    h = row[row[p + at.ROUTE_POSITION] - 1]
    if h == at.NOTHING or row[h + at.KIND] != at.AIR_DOWN:
        return p
    row[row[h + at.CELL] + at.BACKLOG] -= 1
    if row[h + at.UP] == 0:
        row[p + at.ROUTE_POSITION] -= 1
        drop(row, h, p)
        return at.NOTHING
    row[h + at.OUT_PACKETS] += 1
    row[h + at.OUT_BYTES] += row[p + at.SIZE]
    return p
