"""From a topology and its flows to the table of `layout`: rows are made once, before the first event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller import paths
from controller.units import ppm_from_fraction
from lab.engines.sim.compiled import floats, ints
from lab.engines.sim.core import events, links, random_numbers, rings, sender
from lab.engines.sim.core import layout as at
from lab.engines.sim.routes import DOWN, UP, Ends, Subflow
from lab.radio import lte, wifi
from lab.radio.cell import Cell, Station
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.link_delay import link_delay_ns
from lab.topologies.topology import Interface, Link, Topology, Wiring, wire

FRAME_BYTES = 1514  # a full Ethernet frame
TCP_PAYLOAD_BYTES = 1448  # of it, with time stamps (RFC 7323)
MPTCP_PAYLOAD_BYTES = 1420  # of it, with a 64-bit data sequence signal as upstream Linux sends it (RFC 8684, section 3.3)
TCP_ACK_BYTES = FRAME_BYTES - TCP_PAYLOAD_BYTES
UDP_PAYLOAD_BYTES = 1472
MPTCP_ACK_BYTES = TCP_ACK_BYTES + 12  # with a 64-bit data acknowledgement
NO_THRESHOLD = float(at.FOREVER)
LARGEST_WINDOW = 1 << 16  # segments of a receive buffer that are kept apart
HOST_NOISE_NS = 100_000  # within which a host sends what it has decided to send
PACKETS = 2048  # room for packets under way to begin with
SPARE = 1 << 16  # places beyond those that are asked for
SCHEDULERS = {
    "lowest_rtt": at.LOWEST_RTT,
    "round_robin": at.ROUND_ROBIN,
    "linux": at.LINUX,
    "redundant": at.REDUNDANT,
}
VARIANTS = {"kernel": at.KERNEL, "draft": at.DRAFT}
TCP, UDP, SERVER_PORT = 6, 17, 5001
FIRST_PORT, PORTS = (
    32_768,
    28_232,
)  # from which hosts take the ports of their own end, as Linux does

Row = Mapping[int, int]


class Tables:
    """The rows that become the `World`, and where each begins."""

    def __init__(self, topology: Topology, multipath: Multipath, seed: int) -> None:
        self.topology, self.multipath, self.seed = topology, multipath, seed
        self.wiring: Wiring = wire(topology)
        self.values: list[int] = []
        self._add(at.GLOBAL_FIELDS, {
            at.HOST_NOISE_NS: HOST_NOISE_NS,
            at.BALIA_DECREASE: VARIANTS[multipath.balia_decrease],
            at.OLIA_METRIC: VARIANTS[multipath.olia_metric],
            at.PENALISATION: int(multipath.penalisation),
            at.EXPECTED_BY_WINDOW: int(multipath.expected_by == "window"),
        })  # fmt: skip
        self.links: dict[tuple[str, str], int] = {}  # (link, node it leads to)
        self.stations: dict[tuple[str, str, str], int] = {}  # (access point, user, direction)
        self.cells = {
            cell.ap: self._add(at.CELL_FIELDS, _cell_row(cell)) for cell in topology.cells
        }
        self.airs = {cell.ap: self.cells[cell.medium or cell.ap] for cell in topology.cells}
        for cell in topology.cells:
            self._add_stations(cell)
        self.connections: dict[str, int] = {}
        self.subflows: dict[str, list[Subflow]] = {}
        self.slots = 64
        for link in topology.links:
            self._add_link(link)

    def _add(self, fields: int, row: Row, ring: int = 0) -> int:
        """Where the new row begins, and `fields` later its ring; what is not named is 0."""
        begins = len(self.values)
        self.values += [row.get(field, 0) for field in range(fields)] + [0] * ring
        return begins

    # --- links and cells

    def _hop(self, name: str, row: Row) -> int:
        first, second = random_numbers.new_stream(self.seed, name)
        size = max(1, row.get(at.QUEUE_SIZE, 1))
        queue = {at.QUEUE: len(self.values) + at.HOP_FIELDS, at.QUEUE_SIZE: size}
        return self._add(
            at.HOP_FIELDS, {at.UP: 1, at.RNG_1: first, at.RNG_2: second, **row, **queue}, size
        )

    def _add_link(self, link: Link) -> None:
        """Both directions; the delay of an access point is added to that of its links. A relay's link is the air."""
        for ap, relay in ((link.a, link.b), (link.b, link.a)):
            if (ap, relay, DOWN) in self.stations:
                self.links[link.id, relay], self.links[link.id, ap] = (
                    self.stations[ap, relay, each] for each in (DOWN, UP)
                )
                return
        delay_ns, jitter_ns = link_delay_ns(link, self.topology.cells)
        row = {
            at.KIND: at.WIRE,
            at.RATE_BPS: link.rate_bps or 0,
            at.DELAY_NS: delay_ns,
            at.JITTER_NS: jitter_ns,
            at.QUEUE_SIZE: link.queue_packets if link.rate_bps else 1,
        }
        for node, loss_ppm in ((link.b, link.loss_ppm), (link.a, link.loss_back_ppm)):
            self.links[link.id, node] = self._hop(
                f"link/{link.id}/{node}", {**row, at.LOSS_PPM: loss_ppm}
            )

    def _add_stations(self, cell: Cell) -> None:
        """A row and direction for each station, and for each that may come."""
        add = self._add_air if cell.kind == "wifi" else self._add_bearers
        add(cell)

    def _add_air(self, cell: Cell) -> None:
        for station in (*cell.stations, *_visitors(cell, self.topology.cells)):
            for direction, kind in ((DOWN, at.AIR_DOWN), (UP, at.AIR_UP)):
                self._add_station(cell, station, direction, {
                    at.KIND: kind,
                    at.MEDIUM: self.airs[cell.ap],
                    at.RATE_BPS: station.rate_bps,
                    at.BYTE_AIRTIME_PS: wifi.byte_price_ps(station),
                    at.FRAME_AIRTIME_NS: wifi.fixed_ns(station),
                })  # fmt: skip

    def _add_bearers(self, cell: Cell) -> None:
        """A scheduler for each direction, which finds its first bearer, and each bearer the next."""
        for direction in (DOWN, UP):
            following = at.NOTHING
            ring = lte.HARQ_TTIS * lte.ATTEMPTS
            air = self._add(at.LTE_FIELDS, {
                at.HARQ_RING: len(self.values) + at.LTE_FIELDS,
                at.HARQ_RING_SIZE: ring,
                at.BLOCK_ERROR_PPM: ppm_from_fraction(lte.BLOCK_ERROR),
                at.HARQ_TTIS: lte.HARQ_TTIS,
                at.ATTEMPTS: lte.ATTEMPTS,
                at.IS_UPLINK: int(direction == UP),
            }, ring)  # fmt: skip
            for station in reversed(cell.stations):
                following = self._add_station(cell, station, direction, {
                    at.KIND: at.BEARER,
                    at.MEDIUM: air,
                    at.NEXT_BEARER: following,
                    at.QUEUE_SIZE: cell.queue_packets,
                    at.DELAY_NS: station.delay_ns,
                    **bearer(station),
                })  # fmt: skip
            self.values[air + at.FIRST_BEARER] = following

    def _add_station(self, cell: Cell, station: Station, direction: str, row: Row) -> int:
        hop = self._hop(
            f"cell/{cell.ap}/{station.user}/{direction}",
            {at.CELL: self.cells[cell.ap], at.LOSS_PPM: cell.loss_ppm, **row},
        )
        self.stations[cell.ap, station.user, direction] = hop
        return hop

    # --- connections

    def add_connection(self, flow: Flow) -> None:
        """A connection and its subflows; multipath ones have one for every address of their user, UDP is on the first."""
        datagrams = flow.protocol == "udp"
        multipath = (
            flow.user in self.topology.multipath and self.multipath.server_enabled and not datagrams
        )
        own = [
            (each, address)
            for each in self.wiring.of(flow.user)
            for address in (each.address, *each.further)
        ]
        ends = own if multipath else own[:1]
        payload, ack = (
            (MPTCP_PAYLOAD_BYTES, MPTCP_ACK_BYTES)
            if multipath
            else (TCP_PAYLOAD_BYTES, TCP_ACK_BYTES)
        )
        payload = UDP_PAYLOAD_BYTES if datagrams else payload
        window = min(LARGEST_WINDOW, max(2, self.multipath.receive_buffer_kb * 1000 // payload))
        while self.slots < 2 * window:
            self.slots *= 2
        volume = flow.volume_bytes
        place = self._add(at.CONN_FIELDS, {
            at.FIRST: len(self.values) + at.CONN_FIELDS,
            at.COUNT: len(ends),
            at.SEGMENT_BYTES: payload,
            at.FRAME_BYTES: FRAME_BYTES,
            at.ACK_BYTES: ack,
            at.TOTAL_SEGMENTS: at.FOREVER if volume is None else -(-volume // payload),
            at.VOLUME_BYTES: at.FOREVER if volume is None else volume,
            at.RECEIVE_WINDOW: window,
            at.SEND_WINDOW: window,
            at.DATAGRAMS: int(datagrams),
            at.SCHEDULER: SCHEDULERS[self.multipath.scheduler],
            at.DEMAND_BPS: at.UNLIMITED if flow.rate_bps is None else flow.rate_bps,
        })  # fmt: skip
        self.connections[flow.id] = place
        self.subflows[flow.id] = [
            self._add_subflow(f"{flow.id}/{n}", place, flow, interface, address)
            for n, (interface, address) in enumerate(ends, 1)
        ]

    def _add_subflow(
        self, name: str, connection: int, flow: Flow, interface: Interface, address: str
    ) -> Subflow:
        """Its ways are found when it begins."""
        first, second = random_numbers.new_stream(self.seed, f"host/{name}")
        server = self.wiring.of(self.topology.server_of(flow.user))[0]
        port = FIRST_PORT + random_numbers.new_stream(self.seed, f"port/{name}")[0] % PORTS
        towards_user = paths.Flow(
            server.address, address, UDP if flow.protocol == "udp" else TCP, SERVER_PORT, port
        )
        row = {at.CONNECTION: connection, at.HOST_RNG_1: first, at.HOST_RNG_2: second}
        return Subflow(
            self._add(at.SUB_FIELDS, row), Ends(server, interface, towards_user), flow.direction
        )

    # --- the whole

    def world(self) -> at.World:
        """Both tables, with room for everything that is known now, and some packets."""
        subflows = [each.place for several in self.subflows.values() for each in several]
        window = floats([0.0] * len(self.values))
        for f in subflows:
            window[f + at.CWND], window[f + at.SSTHRESH], window[f + at.GROWTH_DIVISOR] = (
                sender.INITIAL_WINDOW,
                NO_THRESHOLD,
                1.0,
            )
        end = len(self.values)
        for rings_at, places, fields in (
            (at.RING, subflows, rings.SUBFLOW_FIELDS),
            (at.CONN_RING, self.connections.values(), rings.CONNECTION_FIELDS),
        ):
            for place in places:
                self.values[place + rings_at] = end
                end += self.slots * fields
        self.values[at.RING_SIZE], self.values[at.PLACES_USED] = self.slots, end
        row = ints(self.values + [0] * (end - len(self.values)))
        return with_room(at.World(row, window), PACKETS)


def with_room(w: at.World, packets: int) -> at.World:
    """So many more packets, and room for as many more events."""
    size = int(w.row[at.HEAP_SIZE])
    w, begins = with_places(w, packets * at.PACKET_FIELDS)
    w, heap_begins = with_places(w, (size + packets) * events.FIELDS)
    row, old = w.row, int(w.row[at.HEAP])
    for p in range(begins, heap_begins, at.PACKET_FIELDS):
        row[p + at.NEXT_FREE], row[at.FREE_PACKET] = row[at.FREE_PACKET], p
    row[at.FREE_PACKETS] += packets
    row[heap_begins : heap_begins + size * events.FIELDS] = row[old : old + size * events.FIELDS]
    row[at.HEAP], row[at.HEAP_SIZE] = heap_begins, size + packets
    return w


def with_places(w: at.World, count: int) -> tuple[at.World, int]:
    """So many more places, all 0, and where they begin."""
    begins = int(w.row[at.PLACES_USED])
    if begins + count > len(w.row):
        longer = ints([0] * (begins + count + SPARE))
        longer[: len(w.row)] = w.row
        w = w._replace(row=longer)
    w.row[at.PLACES_USED] = begins + count
    return w, begins


def _cell_row(cell: Cell) -> Row:
    return {
        at.MAX_WAIT_NS: wifi.limit_ns(cell) if cell.capacity_bps else 0,
        at.TRANSMISSIONS_PPM: links.MILLION,
    }


def bearer(station: Station) -> Row:
    """What a station's rate and weight are to the scheduler."""
    return {
        at.RATE_BPS: lte.on_air_bps(station.rate_bps),
        at.WEIGHT_PPM: ppm_from_fraction(station.weight),
    }


def _visitors(cell: Cell, cells: Iterable[Cell]) -> list[Station]:
    """Stations of other WiFi cells that may be handed over to this one."""
    if cell.kind == "lte" or cell.radio is None:
        return []
    here = {each.user for each in cell.stations}
    others = (
        each for other in cells if other.kind == "wifi" and other.radio for each in other.stations
    )
    return [each for each in others if each.user not in here]
