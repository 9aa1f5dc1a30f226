"""Make the records of a simulated network (`core.state`) from a topology and its flows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from controller import paths
from controller.units import STOPPED_BPS, ns_from_ms, ppm_from_fraction
from lab.engines.sim.core import dcf as core_dcf
from lab.engines.sim.core import queues, random_numbers, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.memory import Group, Objects
from lab.engines.sim.routes import DOWN, UP, Ends, Subflow
from lab.radio import dcf, lte, wifi
from lab.radio.cell import Cell, Station, Towards
from lab.scenario.flows import Flow
from lab.scenario.interfaces import role_of
from lab.scenario.schema import Multipath
from lab.scenario.subflows import Planned, of_call, planned
from lab.topologies.bursts import Bursts
from lab.topologies.queues import FIFO, Discipline, red
from lab.topologies.topology import Interface, Link, Topology, Wiring, link_delay_ns, wire

FRAME_BYTES = 1514  # a full Ethernet frame
TCP_PAYLOAD_BYTES = 1448  # of a full frame, with time stamps (RFC 7323)
# of a full frame with a 64-bit data sequence signal, as upstream Linux sends it (RFC 8684, 3.3)
MPTCP_PAYLOAD_BYTES = 1420
TCP_ACK_BYTES = FRAME_BYTES - TCP_PAYLOAD_BYTES
UDP_PAYLOAD_BYTES = 1472
UDP_HEADER_BYTES = FRAME_BYTES - UDP_PAYLOAD_BYTES
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
QUEUES = {"fifo": at.TAIL, "codel": at.CODEL, "fq_codel": at.FQ_CODEL, "red": at.RED}
VARIANTS = {"kernel": at.KERNEL, "draft": at.DRAFT}
TCP, UDP, SERVER_PORT = 6, 17, 5001
JOINS = 32  # subflows that a connection can open again, after an interface was down
LEAST_RING = 64  # segments
CALL_ARRIVALS = 1024  # datagrams of a call for which there is room
RINGS_PER_FILE = 4  # so many times may a ring hold a file: its segments can be sent again
METERS = 2  # of an access point: at.TIER_2_METER and at.DEMAND_METER

NO_THRESHOLD = float(at.FOREVER)


class Tables:
    """The records of a network. `w` is its world; the other records are found by names:

    - `links[link id, node]`: the hop over a link towards a node
    - `stations[access point, user, direction]`: the hop of a WiFi station's channel or LTE queue
    - `cells[access point]`: the cell of an access point
    - `airs[access point]`: the cell whose channel the access point uses, which may be another
      access point's
    - `contenders[access point]`: the access point itself, as a sender on a channel with DCF
    - `connections[flow id]`: the connection of a flow
    - `applications[n - 1]`: the flow for whose application number n the core stops: a client or a
      call
    - `subflows[flow id]`: the subflows of a connection, as `routes.Subflow`
    - `present[flow id]`: the same, without those of connections that were forgotten
    """

    def __init__(
        self,
        topology: Topology,
        multipath: Multipath,
        flows: Iterable[Flow],
        seed: int,
        make: Objects,
    ) -> None:
        """Make the records of links, cells and stations. Those of each flow are added later by
        `add_connection`; `flows` are all that will be. `make` makes the records."""
        self.topology, self.multipath, self.seed = topology, multipath, seed
        self.make = make
        self.wiring: Wiring = wire(topology)
        self.w = self._world()
        self.links: dict[tuple[str, str], at.Hop] = {}
        self.stations: dict[tuple[str, str, str], at.Hop] = {}
        self.cells = {cell.ap: self._cell(cell) for cell in topology.cells}
        self.airs = {cell.ap: self.cells[cell.medium or cell.ap] for cell in topology.cells}
        self.contenders = {
            cell.ap: self._contender(cell, cell.ap) for cell in topology.cells if cell.air == "dcf"
        }
        for cell in topology.cells:
            self._add_stations(cell)
        self.connections: dict[str, at.Connection] = {}
        self.subflows: dict[str, list[Subflow]] = {}
        self.flows: dict[str, Flow] = {}
        self.present: dict[str, list[Subflow]] = {}
        self._groups: dict[str, Group] = {}
        tcp = (flow for flow in flows if not flow.call)
        windows = [self._receive_window(self._sizes(flow)[1]) for flow in tcp]
        self.ring_size = _power_of_two(max([LEAST_RING, *(2 * each for each in windows)]))
        self.applications: list[Flow] = []
        for link in topology.links:
            self._add_link(link)

    def _world(self) -> at.World:
        """Return a world with the records that stand for no packet, no hop and no subflow."""
        one = self.make.one
        no_hop, no_packet = one(at.Hop, kind=at.END), one(at.Packet)
        no_subflow = one(at.Subflow, connection=one(at.Connection))
        end = one(at.Step, hop=no_hop)
        end.next = end.before = no_packet.step = end
        no_packet.next = no_packet
        no_packet.subflow = no_subflow
        no_contender = one(at.Contender)
        no_contender.next = no_contender.before = no_contender
        return one(
            at.World,
            host_noise_ns=HOST_NOISE_NS,
            heap=self.make.many(at.Due, 0),
            free_packet=no_packet,
            no_packet=no_packet,
            no_hop=no_hop,
            no_subflow=no_subflow,
            no_contender=no_contender,
            end=end,
        )

    def _cell(self, cell: Cell) -> at.Cell:
        made = self.make.one(
            at.Cell,
            max_wait_ns=wifi.limit_ns(cell),
            transmissions_ppm=at.MILLION,
            meters=self.make.many(at.Meter, METERS),
        )
        if cell.air == "dcf" and not cell.medium:
            made.air = self._air(cell)
        return made

    def _air(self, cell: Cell) -> at.Air:
        """Return the channel of a cell with DCF."""
        own = asdict(dcf.times(cell.standard, cell.rate_scale))
        made = self.make.one(at.Air, first=self.w.no_contender, **own)
        made.access = self.make.one(at.Event, kind=at.ACCESS_DUE, air=made)
        return made

    def _contender(self, cell: Cell, node: str) -> at.Contender:
        """Return an access point or a station as a sender on the channel of a cell."""
        return self.make.one(
            at.Contender,
            air=self.airs[cell.ap].air,
            next=self.w.no_contender,
            before=self.w.no_contender,
            random=self._stream(f"dcf/{cell.ap}/{node}"),
            first=self.w.no_packet,
            last=self.w.no_packet,
            limit=cell.queue_packets,
            window=core_dcf.CW_MIN,
        )

    def _line(self) -> at.Event:
        no_packet = self.w.no_packet
        return self.make.one(at.Event, kind=at.LINE, first=no_packet, last=no_packet)

    def _stream(self, name: str) -> at.Stream:
        first, second = random_numbers.new_stream(self.seed, name)
        return self.make.one(at.Stream, first=first, second=second)

    # --- links and cells

    def _hop(self, name: str, **fields: Any) -> at.Hop:
        random, line = self._stream(name), self._line()
        return self.make.one(at.Hop, is_up=1, random=random, line=line, **fields)

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
        for node, way in ((link.b, link.way("ab")), (link.a, link.way("ba"))):
            delay_ns, jitter_ns = link_delay_ns(way, self.topology.cells)
            size = max(1, way.queue_packets) if way.rate_bps and way.discipline == FIFO else 1
            hop = self.links[link.id, node] = self._hop(
                f"link/{link.id}/{node}",
                kind=at.WIRE,
                rate_bps=way.rate_bps or 0,
                delay_ns=delay_ns,
                jitter_ns=jitter_ns,
                loss_ppm=way.loss_ppm,
                reorder_ppm=way.reorder_ppm,
                duplicate_ppm=way.duplicate_ppm,
                queue_size=size,
                queue=self.make.ints(size),
            )
            if way.bursts:
                hop.has_bursts, hop.bursts = 1, self._bursts(way.bursts)
            if way.rate_bps and way.discipline != FIFO:
                hop.kind = at.MANAGED
                hop.managed = self.queue(way.discipline, way.queue_packets)

    def _bursts(self, bursts: Bursts) -> at.Bursts:
        return self.make.one(
            at.Bursts,
            begin_ppm=bursts.begin_ppm,
            end_ppm=bursts.end_ppm,
            good_ppm=bursts.good_ppm,
            bad_ppm=bursts.bad_ppm,
        )

    def queue(self, discipline: Discipline, packets: int) -> at.Queue:
        """Return an empty queue of a MANAGED link."""
        one, kind = self.make.one, QUEUES[discipline.kind]
        queue = one(
            at.Queue,
            kind=kind,
            limit=packets - 1 if kind == at.TAIL else packets,  # the one in transmission counts
            is_marking=int(discipline.is_marking),
            sent=one(at.Event, kind=at.SENT, first=self.w.no_packet),
            target_ns=ns_from_ms(discipline.target_ms),
            interval_ns=ns_from_ms(discipline.interval_ms),
            flows=self.make.many(at.FlowQueue, queues.FLOWS if kind == at.FQ_CODEL else 1),
            new_flows=one(at.FlowList, first=at.NOTHING),
            old_flows=one(at.FlowList, first=at.NOTHING),
        )
        if kind == at.RED:
            own = red(discipline, packets)
            queue.min_bytes = own.min_packets * FRAME_BYTES
            queue.max_bytes = own.max_packets * FRAME_BYTES
            queue.weight_log, queue.since_mark = own.weight_log, -1
            queue.span = round((queue.max_bytes - queue.min_bytes) / discipline.probability)
        return queue

    def _add_stations(self, cell: Cell) -> None:
        """Add a downlink hop and an uplink hop for each station of a cell. A WiFi cell also gets
        hops for users that may be handed over to it."""
        if cell.kind == "lte":
            self._add_bearers(cell)
        elif cell.air == "dcf":
            self._add_dcf(cell)
        else:
            self._add_air(cell)

    def _add_dcf(self, cell: Cell) -> None:
        for station in (*cell.stations, *_visitors(cell, self.topology.cells)):
            own = self._contender(cell, station.user)
            sides = ((DOWN, at.DCF_DOWN, self.contenders[cell.ap]), (UP, at.DCF_UP, own))
            for direction, kind, contender in sides:
                self._add_station(
                    cell,
                    station,
                    direction,
                    kind=kind,
                    contender=contender,
                    rate_bps=station.way(direction).rate_bps,
                    **dcf.frames(cell, station.way(direction)),
                )

    def _add_air(self, cell: Cell) -> None:
        for station in (*cell.stations, *_visitors(cell, self.topology.cells)):
            for direction, kind in ((DOWN, at.AIR_DOWN), (UP, at.AIR_UP)):
                self._add_station(
                    cell,
                    station,
                    direction,
                    kind=kind,
                    channel=self.airs[cell.ap],
                    rate_bps=station.way(direction).rate_bps,
                    **airtime(station.way(direction)),
                )

    def _add_bearers(self, cell: Cell) -> None:
        """Add a scheduler for each direction of an LTE cell. Each station gets a queue (bearer) at
        both schedulers. The bearers of a scheduler form a linked list."""
        ways: tuple[Towards, Towards] = ("down", "up")
        for towards in ways:
            ring = lte.HARQ_TTIS * lte.ATTEMPTS
            scheduler = self.make.one(
                at.Direction,
                first_bearer=self.w.no_hop,
                harq=self.make.ints(ring),
                harq_size=ring,
                block_error_ppm=ppm_from_fraction(lte.BLOCK_ERROR),
                harq_ttis=lte.HARQ_TTIS,
                attempts=lte.ATTEMPTS,
                is_uplink=int(towards == UP),
            )
            scheduler.tti = self.make.one(at.Event, kind=at.TTI_DUE, direction=scheduler)
            for station in reversed(cell.stations):
                scheduler.first_bearer = self._add_bearer(cell, station, towards, scheduler)

    def _add_bearer(
        self, cell: Cell, station: Station, towards: Towards, scheduler: at.Direction
    ) -> at.Hop:
        way = self.topology.bearer(cell, station, towards)
        size = max(1, way.queue_packets or 1)
        is_fifo = way.discipline == FIFO
        hop = self._add_station(
            cell,
            station,
            towards,
            kind=at.BEARER,
            direction=scheduler,
            next_bearer=scheduler.first_bearer,
            queue_size=size,
            packets=self.make.many(at.Waiting, size if is_fifo else 1),
            delay_ns=way.delay_ns,
            **bearer(station.way(towards)),
        )
        hop.loss_ppm += way.loss_ppm or 0
        if way.bursts:
            hop.has_bursts, hop.bursts = 1, self._bursts(way.bursts)
        if way.discipline and not is_fifo:
            hop.managed = self.queue(way.discipline, size)
            hop.has_managed = 1
        return hop

    def _add_station(self, cell: Cell, station: Station, towards: str, **fields: Any) -> at.Hop:
        hop = self._hop(
            f"cell/{cell.ap}/{station.user}/{towards}",
            cell=self.cells[cell.ap],
            loss_ppm=cell.loss_ppm,
            **fields,
        )
        self.stations[cell.ap, station.user, towards] = hop
        return hop

    # --- connections

    def add_connection(self, flow: Flow) -> at.Connection:
        """Add the records of a flow's connection and of the connection's subflows, and return the
        connection.

        A Multipath TCP connection has a subflow for each address of its user. Any other connection
        has only one subflow, from the user's first address.
        """
        self._groups[flow.id] = []
        with self.make.group(self._groups[flow.id]):
            return self._add_connection(flow)

    def _add_connection(self, flow: Flow) -> at.Connection:
        is_multipath, payload, ack = self._sizes(flow)
        ends = self._ends(flow, is_multipath)
        spare = JOINS if len(ends) > 1 else 0
        window = self._receive_window(payload)
        volume = flow.volume_bytes
        segments = at.FOREVER if volume is None else -(-volume // payload)
        ring = LEAST_RING if flow.call else self._ring_size(segments)
        c = self.make.one(
            at.Connection,
            subflows=self.make.many(at.Subflow, len(ends) + spare),
            count=len(ends),
            segment_bytes=payload,
            frame_bytes=payload + UDP_HEADER_BYTES if flow.call else FRAME_BYTES,
            ack_bytes=ack,
            is_mptcp=int(is_multipath),
            is_upload=int(flow.direction == UP),
            total_segments=segments,
            volume_bytes=at.FOREVER if volume is None else volume,
            receive_window=window,
            send_window=window,
            sender_window_end=window,
            is_datagrams=int(flow.protocol == "udp"),
            demand_bps=at.UNLIMITED if flow.rate_bps is None else flow.rate_bps,
            ring_size=ring,
            received=self.make.ints(ring),
            reinject_queue=self.make.ints(ring),
            **self._settings(),
        )
        c.app, c.push, c.reinject_timer, c.ask_timer, c.address_timer = (
            self.make.one(at.Event, kind=kind, connection=c)
            for kind in (at.APP_DUE, at.PUSH, at.REINJECT_DUE, at.ASK_DUE, at.ADDRESS_DUE)
        )
        if flow.client or flow.call:
            self.applications.append(flow)
            c.application = len(self.applications)
        if flow.client:
            part_bytes = -(-flow.client.request_bytes // flow.client.request_packets)
            c.demand_bps, c.ask_bytes = at.AS_ASKED, part_bytes + ack
        if flow.call:
            c.arrivals_size = CALL_ARRIVALS
            c.arrival_numbers = self.make.ints(CALL_ARRIVALS)
            c.arrival_delays_ns = self.make.ints(CALL_ARRIVALS)
        self.connections[flow.id], self.flows[flow.id] = c, flow
        self.subflows[flow.id] = self.present[flow.id] = [
            self._add_subflow(c, n, flow, each) for n, each in enumerate(ends)
        ]
        return c

    def _ends(self, flow: Flow, is_multipath: bool) -> list[Planned]:
        if flow.call:
            return [of_call(self.topology, self.wiring, flow.user, flow.interface)]
        ends = planned(self.topology, self.wiring, self.multipath, flow.user)
        return ends if is_multipath else ends[:1]

    def forget(self, flow_id: str) -> None:
        """Let the records of a connection be used again by others. Of the connection and its
        subflows, copies with their numbers stay. Nothing may refer to the records any more
        (`core.reuse`)."""
        c = self.connections[flow_id] = self.make.copy(self.connections[flow_id])
        for subflow in self.present.pop(flow_id):
            subflow.record = self.make.copy(subflow.record)
            subflow.record.connection, subflow.is_forgotten = c, True
        self.make.give_back(self._groups.pop(flow_id))

    def _ring_size(self, segments: int) -> int:
        """Return the size of the rings of a connection that has so many segments to send."""
        return min(self.ring_size, _power_of_two(max(LEAST_RING, RINGS_PER_FILE * segments)))

    def joins_left(self, flow: Flow) -> int:
        first = len(planned(self.topology, self.wiring, self.multipath, flow.user))
        return JOINS + first - self.connections[flow.id].count

    def add_join(self, flow: Flow, old: Subflow) -> Subflow:
        """Add the records of one more subflow to a connection, between the ends of `old`. At most
        `JOINS` are possible."""
        c, ends = self.connections[flow.id], old.ends
        between = Planned(ends.user, ends.flow.destination, ends.server)
        with self.make.group(self._groups[flow.id]):
            new = self._add_subflow(c, c.count, flow, between)
        new.record.law_number = old.record.law_number
        c.count += 1
        self.subflows[flow.id].append(new)
        return new

    def _settings(self) -> dict[str, int]:
        """Return the fields of a connection that are settings of the scenario."""
        return {
            "scheduler": SCHEDULERS[self.multipath.scheduler],
            "balia_decrease": VARIANTS[self.multipath.balia_decrease],
            "olia_metric": VARIANTS[self.multipath.olia_metric],
            "is_penalising": int(self.multipath.penalisation),
            "is_expected_by_window": int(self.multipath.expected_by == "window"),
            "is_ecn": int(self.multipath.ecn),
        }

    def announced(self, server: Interface) -> int:
        """Return the number of a server's interface if the server announces its address, else 0."""
        if role_of(self.multipath, server, "none") == "none":
            return 0
        return self.wiring.of(server.node).index(server)

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
            payload = flow.call.packet_bytes if flow.call else UDP_PAYLOAD_BYTES
            return False, payload, TCP_ACK_BYTES
        if flow.user in self.topology.multipath and self.multipath.server_enabled:
            return True, MPTCP_PAYLOAD_BYTES, MPTCP_ACK_BYTES
        return False, TCP_PAYLOAD_BYTES, TCP_ACK_BYTES

    def _add_subflow(self, c: at.Connection, n: int, flow: Flow, ends: Planned) -> Subflow:
        """Make subflow number `n` of connection `c`. It has no path until its connection starts."""
        protocol = UDP if flow.protocol == "udp" else TCP
        towards_user = paths.Flow(
            ends.server.address, ends.address, protocol, SERVER_PORT, flow.port
        )
        s = c.subflows[n]
        s.number, s.connection, s.announced = n, c, self.announced(ends.server)
        s.cwnd, s.ssthresh, s.growth_divisor = sender.INITIAL_WINDOW, NO_THRESHOLD, 1.0
        s.data_route = s.ack_route = self.w.end
        s.law, s.bbr = self.make.one(at.LawState), self.make.one(at.Bbr)
        s.delivery, s.dctcp = self.make.one(at.Delivery), self.make.one(at.Dctcp)
        s.host_random = self._stream(f"host/{flow.id}/{n + 1}")
        s.flow_hash = self._stream(f"flow/{flow.id}/{n + 1}").first % queues.FLOWS
        s.host_line, s.ack_line = self._line(), self._line()
        s.timer, s.delack, s.client_timer, s.server_timer, s.priority, s.removal = (
            self.make.one(at.Event, kind=kind, subflow=s, connection=c)
            for kind in range(at.RTO_DUE, at.REMOVAL + 1)
        )
        s.ring_size = c.ring_size
        s.segments = self.make.many(at.Segment, s.ring_size)
        s.transmissions_sent = self.make.many(at.Transmission, s.ring_size)
        return Subflow(s, Ends(ends.server, ends.user, towards_user), flow.direction)


def _power_of_two(least: int) -> int:
    """Return the smallest power of two that is not below `least`."""
    return 1 << (least - 1).bit_length()


def airtime(station: Station) -> dict[str, int]:
    """Return the fields of a WiFi station's hop that depend on the station's rate."""
    return {
        "byte_airtime_ps": wifi.byte_price_ps(station),
        "frame_airtime_ns": wifi.fixed_ns(station),
    }


def bearer(station: Station) -> dict[str, int]:
    """Return the fields of an LTE bearer (the queue of one station) that depend on the station's
    rate and weight."""
    stopped = station.rate_bps <= STOPPED_BPS
    return {
        "rate_bps": station.rate_bps if stopped else lte.on_air_bps(station.rate_bps),
        "weight_ppm": ppm_from_fraction(station.weight),
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
