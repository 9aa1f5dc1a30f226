"""Make the integer table of a simulated network (`core.layout`) from a topology and its flows,
before a run starts.

The table consists of rows. A row is the state of one cell, hop, connection or subflow, as adjacent
numbers. A cell is the radio of an access point. A hop is one direction of a link, of a WiFi
station's channel or of an LTE bearer, which is the queue of one station.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller import paths
from controller.units import ppm_from_fraction
from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links, random_numbers
from lab.engines.sim.routes import DOWN, UP, Ends, Subflow
from lab.radio import lte, wifi
from lab.radio.cell import Cell, Station
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Interface, Link, Topology, Wiring, link_delay_ns, wire

FRAME_BYTES = 1514  # a full Ethernet frame
TCP_PAYLOAD_BYTES = 1448  # of a full frame, with time stamps (RFC 7323)
# of a full frame with a 64-bit data sequence signal, as upstream Linux sends it (RFC 8684, 3.3)
MPTCP_PAYLOAD_BYTES = 1420
TCP_ACK_BYTES = FRAME_BYTES - TCP_PAYLOAD_BYTES
UDP_PAYLOAD_BYTES = 1472
MPTCP_ACK_BYTES = TCP_ACK_BYTES + 12  # with a 64-bit data acknowledgement
# memory of a full frame at the receiver (skb->truesize, in the emulation and on a tun device)
LINUX_FRAME_MEMORY_BYTES = 2304
LARGEST_WINDOW = 1 << 16  # segments; a larger receive buffer is cut to it
HOST_NOISE_NS = 100_000  # a host sends within this time of its decision to send
SCHEDULERS = {
    "lowest_rtt": at.LOWEST_RTT,
    "round_robin": at.ROUND_ROBIN,
    "linux": at.LINUX,
    "redundant": at.REDUNDANT,
}
VARIANTS = {"kernel": at.KERNEL, "draft": at.DRAFT}
TCP, UDP, SERVER_PORT = 6, 17, 5001

Row = Mapping[int, int]


class Tables:
    """The rows of the integer table, one after the other in `values`. Each other attribute says at
    which index the row of something begins:

    - `links[link id, node]`: the hop over a link towards a node
    - `stations[access point, user, direction]`: the hop of a WiFi station's channel or LTE queue
    - `cells[access point]`: the cell of an access point
    - `airs[access point]`: the cell whose channel the access point uses, which may be another
      access point's
    - `connections[flow id]`: the connection of a flow
    - `subflows[flow id]`: the subflows of a connection, as `Subflow` objects with the index `place`
    """

    def __init__(self, topology: Topology, multipath: Multipath, seed: int) -> None:
        """Make the rows of links, cells and stations. The rows of flows are added later by
        `add_connection`."""
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
        self.links: dict[tuple[str, str], int] = {}
        self.stations: dict[tuple[str, str, str], int] = {}
        self.cells = {
            cell.ap: self._add(at.CELL_FIELDS, _cell_row(cell)) for cell in topology.cells
        }
        self.airs = {cell.ap: self.cells[cell.medium or cell.ap] for cell in topology.cells}
        for cell in topology.cells:
            self._add_stations(cell)
        self.connections: dict[str, int] = {}
        self.subflows: dict[str, list[Subflow]] = {}
        self.ring_size = 64  # segments; a power of two
        for link in topology.links:
            self._add_link(link)

    def _add(self, fields: int, row: Row, ring: int = 0) -> int:
        """Append a row to the table, and return its index. The row has `fields` numbers. `row` maps
        a field's number to its value; all other fields are 0. `ring` is the number
        of zeros to append after the row, as space for a ring buffer."""
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
        """Add a hop for each direction of a link.

        A link between an access point and a relay (a switch that is a WiFi station) stands for a
        radio channel. It gets no new hops: it uses those of this radio channel.
        """
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
        """Add a downlink hop and an uplink hop for each station of a cell. A WiFi cell also gets
        hops for users that may be handed over to it."""
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
        """Add a scheduler for each direction of an LTE cell. Each station gets a queue (bearer) at
        both schedulers. The bearers of a scheduler form a linked list."""
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
        """Add the rows of a flow's connection and of the connection's subflows.

        A Multipath TCP connection has a subflow for each address of its user. Any other connection
        has only one subflow, from the user's first address.
        """
        is_multipath, payload, ack = self._sizes(flow)
        own = [
            (each, address)
            for each in self.wiring.of(flow.user)
            for address in (each.address, *each.further)
        ]
        ends = own if is_multipath else own[:1]
        window = self._receive_window(payload)
        while self.ring_size < 2 * window:
            self.ring_size *= 2
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
            at.SENDER_WINDOW_END: window,
            at.DATAGRAMS: int(flow.protocol == "udp"),
            at.SCHEDULER: SCHEDULERS[self.multipath.scheduler],
            at.DEMAND_BPS: at.UNLIMITED if flow.rate_bps is None else flow.rate_bps,
        })  # fmt: skip
        self.connections[flow.id] = place
        self.subflows[flow.id] = [
            self._add_subflow(f"{flow.id}/{n}", place, flow, interface, address)
            for n, (interface, address) in enumerate(ends, 1)
        ]

    def _receive_window(self, payload_bytes: int) -> int:
        """Return how many segments the receive buffer holds, between 2 and LARGEST_WINDOW. Each
        segment has `payload_bytes` of payload.

        With the scheduler "linux", the buffer is counted as in Linux: the requested size is
        doubled, and each packet counts with all of its memory and not only its payload (socket(7),
        SO_RCVBUF).
        """
        requested = self.multipath.receive_buffer_kb * 1000
        if self.multipath.scheduler == "linux":
            window = 2 * requested // LINUX_FRAME_MEMORY_BYTES
        else:
            window = requested // payload_bytes
        return min(LARGEST_WINDOW, max(2, window))

    def _sizes(self, flow: Flow) -> tuple[bool, int, int]:
        """Return three values for a flow: whether it uses Multipath TCP, the payload of a full
        frame in bytes, and the size in bytes of a frame with only an acknowledgement."""
        if flow.protocol == "udp":
            return False, UDP_PAYLOAD_BYTES, TCP_ACK_BYTES
        if flow.user in self.topology.multipath and self.multipath.server_enabled:
            return True, MPTCP_PAYLOAD_BYTES, MPTCP_ACK_BYTES
        return False, TCP_PAYLOAD_BYTES, TCP_ACK_BYTES

    def _add_subflow(
        self, name: str, connection: int, flow: Flow, interface: Interface, address: str
    ) -> Subflow:
        """Add a subflow that uses `address` of the user's `interface`. It has no path until its
        connection starts."""
        first, second = random_numbers.new_stream(self.seed, f"host/{name}")
        server = self.wiring.of(self.topology.server_of(flow.user))[0]
        towards_user = paths.Flow(
            server.address, address, UDP if flow.protocol == "udp" else TCP, SERVER_PORT, flow.port
        )
        row = {at.CONNECTION: connection, at.HOST_RNG_1: first, at.HOST_RNG_2: second}
        return Subflow(
            self._add(at.SUB_FIELDS, row), Ends(server, interface, towards_user), flow.direction
        )


def _cell_row(cell: Cell) -> Row:
    return {
        at.MAX_WAIT_NS: wifi.limit_ns(cell),
        at.TRANSMISSIONS_PPM: links.MILLION,
    }


def bearer(station: Station) -> Row:
    """Return the fields of an LTE bearer (the queue of one station) that depend on the station's
    rate and weight. The keys are field numbers of `core.layout`."""
    return {
        at.RATE_BPS: lte.on_air_bps(station.rate_bps),
        at.WEIGHT_PPM: ppm_from_fraction(station.weight),
    }


def _visitors(cell: Cell, cells: Iterable[Cell]) -> list[Station]:
    """Return the stations of other WiFi cells whose users may be handed over to `cell`. There are
    none for an LTE cell, nor for a cell without a radio model."""
    if cell.kind == "lte" or cell.radio is None:
        return []
    here = {each.user for each in cell.stations}
    others = (
        each for other in cells if other.kind == "wifi" and other.radio for each in other.stations
    )
    return [each for each in others if each.user not in here]
