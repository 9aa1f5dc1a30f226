"""A packet on its way: links, the air of WiFi cells, LTE bearers, and the meter in front of a cell.

A place of a route is a hop or its end. A first-in first-out queue needs one event per packet, because the time of
departure is known on arrival; a bearer needs two, because its rate changes while packets wait.
"""

from __future__ import annotations

from lab.engines.sim import heap
from lab.engines.sim.chance import draw
from lab.engines.sim.jit import jit
from lab.engines.sim.layout import (
    AIR_DOWN,
    AIR_UP,
    ARRIVES,
    BACKLOG,
    BEARER,
    CELL,
    CHANCE_1,
    DELAY_NS,
    DOWNLINK_AIRTIME_NS,
    DROPPED,
    DROPPED_BYTES,
    DROPS,
    EVENT_KINDS,
    FREE_COUNT,
    FREE_NS,
    IN_BYTES,
    IN_PACKETS,
    IS_ACK,
    JITTER_NS,
    KIND,
    LAST_OUT_NS,
    LIMIT_NS,
    LOSS_PPM,
    METER_BPS,
    METER_BURST_NS,
    METER_DROPS,
    METER_FULL_NS,
    METER_PASSED_BYTES,
    METERED,
    NEXT_FREE_NS,
    NOTHING,
    NS_PER_S,
    OF_SUBFLOW,
    OUT_BYTES,
    OUT_PACKETS,
    PLACE,
    PRICE_PS,
    QUEUE,
    QUEUE_COUNT,
    QUEUE_HEAD,
    QUEUE_SIZE,
    RATE_BPS,
    SERVED,
    SERVED_NOW,
    SIZE,
    UP,
    UPLINK_FREE_NS,
    WIRE,
    World,
)

MILLION = 1_000_000


@jit
def take(w: World) -> int:
    """A free packet; there always is one (`loop.run` stops before they run out)."""
    count = w.g[FREE_COUNT] - 1
    w.g[FREE_COUNT] = count
    return w.free[count]


@jit
def give_back(w: World, p: int) -> None:
    """The packet is gone."""
    count = w.g[FREE_COUNT]
    w.free[count] = p
    w.g[FREE_COUNT] = count + 1


@jit
def drop(w: World, h: int, p: int) -> None:
    """The packet is lost at hop `h`."""
    w.hop[h + DROPS] += 1
    w.hop[h + DROPPED_BYTES] += w.packet[p + SIZE]
    if w.packet[p + IS_ACK] == 0:
        w.sub[w.packet[p + OF_SUBFLOW] + DROPPED] += 1
    give_back(w, p)


@jit
def leaves(w: World, h: int, p: int) -> None:
    """The packet is through hop `h`."""
    w.hop[h + OUT_PACKETS] += 1
    w.hop[h + OUT_BYTES] += w.packet[p + SIZE]
    w.packet[p + PLACE] += 1


@jit
def enters(w: World, h: int, p: int) -> bool:
    """Count the packet in; False if it was lost there: the link is down, or chance has it."""
    w.hop[h + IN_PACKETS] += 1
    w.hop[h + IN_BYTES] += w.packet[p + SIZE]
    lost = w.hop[h + UP] == 0
    if not lost and w.hop[h + LOSS_PPM] > 0:
        lost = draw(w.hop, h + CHANCE_1, MILLION) < w.hop[h + LOSS_PPM]
    if lost:
        drop(w, h, p)
    return not lost


@jit
def forward(w: World, p: int, at_ns: int, now_ns: int) -> int:
    """Send a packet on from its place at `at_ns`, through wires that only delay; returns it if it is at its next stop now."""
    while True:
        h = w.route[w.packet[p + PLACE]]
        if h == NOTHING or w.hop[h + KIND] != WIRE or w.hop[h + RATE_BPS] > 0 or w.hop[h + JITTER_NS] > 0:
            break
        if not enters(w, h, p):
            return NOTHING
        at_ns += w.hop[h + DELAY_NS]
        leaves(w, h, p)
    if at_ns <= now_ns:
        return p
    heap.push(w, at_ns, p * EVENT_KINDS + ARRIVES)
    return NOTHING


@jit
def waiting(w: World, h: int, now_ns: int) -> int:
    """Packets of a wire that have not left yet; the queue holds their times of departure."""
    hop = w.hop
    head, count, size, base = hop[h + QUEUE_HEAD], hop[h + QUEUE_COUNT], hop[h + QUEUE_SIZE], hop[h + QUEUE]
    while count > 0 and w.queue[base + head] <= now_ns:
        head = (head + 1) % size
        count -= 1
    hop[h + QUEUE_HEAD], hop[h + QUEUE_COUNT] = head, count
    return count


@jit
def through_wire(w: World, h: int, p: int, now_ns: int) -> int:
    """Drop-tail queue, rate, then delay with jitter, in order."""
    hop = w.hop
    out_ns = now_ns
    if hop[h + RATE_BPS] > 0:
        count = waiting(w, h, now_ns)
        if count >= hop[h + QUEUE_SIZE]:
            drop(w, h, p)
            return NOTHING
        out_ns = max(now_ns, hop[h + FREE_NS]) + w.packet[p + SIZE] * 8 * NS_PER_S // hop[h + RATE_BPS]
        hop[h + FREE_NS] = out_ns
        w.queue[hop[h + QUEUE] + (hop[h + QUEUE_HEAD] + count) % hop[h + QUEUE_SIZE]] = out_ns
        hop[h + QUEUE_COUNT] = count + 1
    out_ns += hop[h + DELAY_NS]
    if hop[h + JITTER_NS] > 0:
        out_ns += hop[h + JITTER_NS] * (draw(w.hop, h + CHANCE_1, 2 * MILLION + 1) - MILLION) // MILLION
    out_ns = max(now_ns, out_ns, hop[h + LAST_OUT_NS])
    hop[h + LAST_OUT_NS] = out_ns
    leaves(w, h, p)
    return forward(w, p, out_ns, now_ns)


@jit
def passes_meter(w: World, h: int, p: int, now_ns: int) -> bool:
    """The token bucket of the cell's switch, kept as the time at which it will be full again; what does not fit is dropped."""
    size = w.packet[p + SIZE]
    if w.hop[h + METERED] != 0:
        c = w.hop[h + CELL]
        full_ns = max(now_ns, w.cell[c + METER_FULL_NS]) + size * 8 * NS_PER_S // w.cell[c + METER_BPS]
        if full_ns - now_ns > w.cell[c + METER_BURST_NS]:
            w.hop[h + METER_DROPS] += 1
            return False
        w.cell[c + METER_FULL_NS] = full_ns
    w.hop[h + METER_PASSED_BYTES] += size
    return True


@jit
def over_air_down(w: World, h: int, p: int, now_ns: int) -> None:
    """start = max(now, next_free); next_free = start + airtime; drop if start - now exceeds the buffer."""
    c, cell = w.hop[h + CELL], w.cell
    start_ns = max(now_ns, cell[c + NEXT_FREE_NS])
    if not passes_meter(w, h, p, now_ns) or start_ns - now_ns > cell[c + LIMIT_NS]:
        drop(w, h, p)
        return
    airtime_ns = w.packet[p + SIZE] * w.hop[h + PRICE_PS] // 1000
    cell[c + NEXT_FREE_NS] = start_ns + airtime_ns
    cell[c + DOWNLINK_AIRTIME_NS] = airtime_ns
    cell[c + BACKLOG] += 1
    w.packet[p + PLACE] += 1
    heap.push(w, start_ns + airtime_ns, p * EVENT_KINDS + ARRIVES)


@jit
def over_air_up(w: World, h: int, p: int, now_ns: int) -> int:
    """start = max(now, uplink_free); uplink_free = start + airtime + (backlogged downlink ? its airtime : 0);
    next_free = max(now, next_free) + airtime."""
    c, cell = w.hop[h + CELL], w.cell
    start_ns = max(now_ns, cell[c + UPLINK_FREE_NS])
    if start_ns - now_ns > cell[c + LIMIT_NS]:
        drop(w, h, p)
        return NOTHING
    airtime_ns = w.packet[p + SIZE] * w.hop[h + PRICE_PS] // 1000
    between_ns = cell[c + DOWNLINK_AIRTIME_NS] if cell[c + NEXT_FREE_NS] > now_ns else 0
    cell[c + UPLINK_FREE_NS] = start_ns + airtime_ns + between_ns
    cell[c + NEXT_FREE_NS] = max(now_ns, cell[c + NEXT_FREE_NS]) + airtime_ns
    leaves(w, h, p)
    return forward(w, p, start_ns + airtime_ns, now_ns)


@jit
def left_air(w: World, p: int) -> None:
    """A packet has come down: it no longer waits at the access point."""
    place = w.packet[p + PLACE] - 1
    h = w.route[place]
    if h != NOTHING and w.hop[h + KIND] == AIR_DOWN:
        w.cell[w.hop[h + CELL] + BACKLOG] -= 1
        w.hop[h + OUT_PACKETS] += 1
        w.hop[h + OUT_BYTES] += w.packet[p + SIZE]


@jit
def serve(w: World, h: int, p: int, now_ns: int) -> None:
    """A bearer begins to send a packet."""
    w.hop[h + SERVED] = p
    took_ns = w.packet[p + SIZE] * 8 * NS_PER_S // w.hop[h + RATE_BPS]
    heap.push(w, now_ns + took_ns, h * EVENT_KINDS + SERVED_NOW)


@jit
def into_bearer(w: World, h: int, p: int, now_ns: int) -> None:
    """Meter, then a queue of its own for every user."""
    hop = w.hop
    count = hop[h + QUEUE_COUNT]
    if not passes_meter(w, h, p, now_ns) or count >= hop[h + QUEUE_SIZE]:
        drop(w, h, p)
    elif hop[h + SERVED] == NOTHING:
        serve(w, h, p, now_ns)
    else:
        w.queue[hop[h + QUEUE] + (hop[h + QUEUE_HEAD] + count) % hop[h + QUEUE_SIZE]] = p
        hop[h + QUEUE_COUNT] = count + 1


@jit
def served(w: World, h: int, now_ns: int) -> int:
    """A bearer has sent a packet: begin the next; returns the packet if it is at its next stop now."""
    hop = w.hop
    p = hop[h + SERVED]
    hop[h + SERVED] = NOTHING
    if hop[h + QUEUE_COUNT] > 0:
        head = hop[h + QUEUE_HEAD]
        hop[h + QUEUE_HEAD] = (head + 1) % hop[h + QUEUE_SIZE]
        hop[h + QUEUE_COUNT] -= 1
        serve(w, h, w.queue[hop[h + QUEUE] + head], now_ns)
    leaves(w, h, p)
    return forward(w, p, now_ns, now_ns)


@jit
def at_hop(w: World, h: int, p: int, now_ns: int) -> int:
    """A packet has come to hop `h`; returns it if it is at the next stop already."""
    if not enters(w, h, p):
        return NOTHING
    kind = w.hop[h + KIND]
    if kind == WIRE:
        return through_wire(w, h, p, now_ns)
    if kind == AIR_UP:
        return over_air_up(w, h, p, now_ns)
    if kind == BEARER:
        into_bearer(w, h, p, now_ns)
    else:
        over_air_down(w, h, p, now_ns)
    return NOTHING
