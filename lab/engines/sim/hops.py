"""A packet on its way: links, the air of WiFi cells, and the meter in front of a cell; LTE is in `lte`.

A place of a route is a hop or its end. A first-in first-out queue needs one event per packet, because the time of
departure is known on arrival.
"""

from __future__ import annotations

from lab.engines.sim import heap
from lab.engines.sim import layout as at
from lab.engines.sim.chance import draw
from lab.engines.sim.jit import jit

MILLION = 1_000_000


@jit
def take(w: at.World) -> int:
    """A free packet; there always is one (`loop.run` stops before they run out)."""
    count = w.g[at.FREE_COUNT] - 1
    w.g[at.FREE_COUNT] = count
    return w.free[count]


@jit
def give_back(w: at.World, p: int) -> None:
    """The packet is gone."""
    count = w.g[at.FREE_COUNT]
    w.free[count] = p
    w.g[at.FREE_COUNT] = count + 1


@jit
def drop(w: at.World, h: int, p: int) -> None:
    """The packet is lost at hop `h`."""
    w.hop[h + at.DROPS] += 1
    w.hop[h + at.DROPPED_BYTES] += w.packet[p + at.SIZE]
    if w.packet[p + at.IS_ACK] != 1:
        w.sub[w.packet[p + at.OF_SUBFLOW] + at.DROPPED] += 1
    give_back(w, p)


@jit
def leaves(w: at.World, h: int, p: int) -> None:
    """The packet is through hop `h`."""
    w.hop[h + at.OUT_PACKETS] += 1
    w.hop[h + at.OUT_BYTES] += w.packet[p + at.SIZE]
    w.packet[p + at.PLACE] += 1


@jit
def enters(w: at.World, h: int, p: int) -> bool:
    """Count the packet in; False if it was lost there: the link is down, or chance has it."""
    w.hop[h + at.IN_PACKETS] += 1
    w.hop[h + at.IN_BYTES] += w.packet[p + at.SIZE]
    lost = w.hop[h + at.UP] == 0
    if not lost and w.hop[h + at.LOSS_PPM] > 0:
        lost = draw(w.hop, h + at.CHANCE_1, MILLION) < w.hop[h + at.LOSS_PPM]
    if lost:
        drop(w, h, p)
    return not lost


@jit
def forward(w: at.World, p: int, at_ns: int, now_ns: int) -> int:
    """Send a packet on from its place at `at_ns`, through wires that only delay; returns it if it is at its next stop now."""
    while True:
        h = w.route[w.packet[p + at.PLACE]]
        if h == at.NOTHING or w.hop[h + at.KIND] != at.WIRE or w.hop[h + at.RATE_BPS] > 0 or w.hop[h + at.JITTER_NS] > 0:
            break
        if not enters(w, h, p):
            return at.NOTHING
        at_ns += w.hop[h + at.DELAY_NS]
        leaves(w, h, p)
    if at_ns <= now_ns:
        return p
    heap.push(w, at_ns, p * at.EVENT_KINDS + at.ARRIVES)
    return at.NOTHING


@jit
def waiting(w: at.World, h: int, now_ns: int) -> int:
    """Packets of a wire that have not left yet; the queue holds their times of departure."""
    hop = w.hop
    head, count, size, base = hop[h + at.QUEUE_HEAD], hop[h + at.QUEUE_COUNT], hop[h + at.QUEUE_SIZE], hop[h + at.QUEUE]
    while count > 0 and w.queue[base + head] <= now_ns:
        head = (head + 1) % size
        count -= 1
    hop[h + at.QUEUE_HEAD], hop[h + at.QUEUE_COUNT] = head, count
    return count


@jit
def through_wire(w: at.World, h: int, p: int, now_ns: int) -> int:
    """Drop-tail queue, rate, then delay with jitter, in order."""
    hop = w.hop
    out_ns = now_ns
    if hop[h + at.RATE_BPS] > 0:
        count = waiting(w, h, now_ns)
        if count >= hop[h + at.QUEUE_SIZE]:
            drop(w, h, p)
            return at.NOTHING
        out_ns = max(now_ns, hop[h + at.FREE_NS]) + w.packet[p + at.SIZE] * 8 * at.NS_PER_S // hop[h + at.RATE_BPS]
        hop[h + at.FREE_NS] = out_ns
        w.queue[hop[h + at.QUEUE] + (hop[h + at.QUEUE_HEAD] + count) % hop[h + at.QUEUE_SIZE]] = out_ns
        hop[h + at.QUEUE_COUNT] = count + 1
    out_ns += hop[h + at.DELAY_NS]
    if hop[h + at.JITTER_NS] > 0:
        out_ns += hop[h + at.JITTER_NS] * (draw(w.hop, h + at.CHANCE_1, 2 * MILLION + 1) - MILLION) // MILLION
    out_ns = max(now_ns, out_ns, hop[h + at.LAST_OUT_NS])
    hop[h + at.LAST_OUT_NS] = out_ns
    leaves(w, h, p)
    return forward(w, p, out_ns, now_ns)


@jit
def passes_meter(w: at.World, h: int, p: int, now_ns: int) -> bool:
    """A token bucket of the cell's switch, kept as the time at which it will be full again; what does not fit is dropped.
    Acknowledgements pass uncounted (MP-SDN, section V-C), and so does what is not TCP."""
    if w.packet[p + at.IS_ACK] != 0:
        return True
    size = w.packet[p + at.SIZE]
    if w.hop[h + at.METERED] != 0:
        c = w.hop[h + at.CELL] + (w.hop[h + at.METERED] - 1) * at.METER_FIELDS
        full_ns = max(now_ns, w.cell[c + at.METER_FULL_NS]) + size * 8 * at.NS_PER_S // w.cell[c + at.METER_BPS]
        if full_ns - now_ns > w.cell[c + at.METER_BURST_NS]:
            w.hop[h + at.METER_DROPS] += 1
            return False
        w.cell[c + at.METER_FULL_NS] = full_ns
    w.hop[h + at.METER_PASSED_BYTES] += size
    return True


@jit
def airtime_ns(w: at.World, h: int, p: int) -> int:
    """What every frame takes, what its bytes take, and all of it again for every time it is sent."""
    once_ns = w.hop[h + at.FIXED_NS] + w.packet[p + at.SIZE] * w.hop[h + at.PRICE_PS] // 1000
    return once_ns * w.cell[w.hop[h + at.AIR] + at.SENT_PPM] // MILLION


@jit
def over_air_down(w: at.World, h: int, p: int, now_ns: int) -> None:
    """start = max(now, next_free); next_free = start + airtime; drop if start - now exceeds the buffer."""
    c, cell = w.hop[h + at.AIR], w.cell
    start_ns = max(now_ns, cell[c + at.NEXT_FREE_NS])
    if not passes_meter(w, h, p, now_ns) or start_ns - now_ns > cell[c + at.LIMIT_NS]:
        drop(w, h, p)
        return
    took_ns = airtime_ns(w, h, p)
    cell[c + at.NEXT_FREE_NS] = start_ns + took_ns
    cell[c + at.DOWNLINK_AIRTIME_NS] = took_ns
    cell[w.hop[h + at.CELL] + at.BACKLOG] += 1
    w.packet[p + at.PLACE] += 1
    heap.push(w, start_ns + took_ns, p * at.EVENT_KINDS + at.ARRIVES)


@jit
def over_air_up(w: at.World, h: int, p: int, now_ns: int) -> int:
    """start = max(now, uplink_free); uplink_free = start + airtime + (backlogged downlink ? its airtime : 0);
    next_free = max(now, next_free) + airtime. The meter of uplink data is behind the access point: its air is spent."""
    c, cell = w.hop[h + at.AIR], w.cell
    start_ns = max(now_ns, cell[c + at.UPLINK_FREE_NS])
    if start_ns - now_ns > cell[c + at.LIMIT_NS]:
        drop(w, h, p)
        return at.NOTHING
    took_ns = airtime_ns(w, h, p)
    between_ns = cell[c + at.DOWNLINK_AIRTIME_NS] if cell[c + at.NEXT_FREE_NS] > now_ns else 0
    cell[c + at.UPLINK_FREE_NS] = start_ns + took_ns + between_ns
    cell[c + at.NEXT_FREE_NS] = max(now_ns, cell[c + at.NEXT_FREE_NS]) + took_ns
    w.hop[h + at.FREE_NS] = start_ns + took_ns
    if not passes_meter(w, h, p, start_ns + took_ns):
        drop(w, h, p)
        return at.NOTHING
    leaves(w, h, p)
    return forward(w, p, start_ns + took_ns, now_ns)


@jit
def left_air(w: at.World, p: int) -> None:
    """A packet that has come down no longer waits at the access point."""
    place = w.packet[p + at.PLACE] - 1
    h = w.route[place]
    if h != at.NOTHING and w.hop[h + at.KIND] == at.AIR_DOWN:
        w.cell[w.hop[h + at.CELL] + at.BACKLOG] -= 1
        w.hop[h + at.OUT_PACKETS] += 1
        w.hop[h + at.OUT_BYTES] += w.packet[p + at.SIZE]
