"""A simulated network in virtual time: connections start and stop, and subflows and links change.

A hop is one direction of a link, of a WiFi station's channel or of an LTE station's queue. It is
given as the index of its state in the integer table (`core.layout`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from controller.observation import SubflowKey
from controller.paths import Path
from lab.engines.sim import compiled
from lab.engines.sim.compiled import float_zeros, int_zeros
from lab.engines.sim.core import (
    application,
    dispatch,
    event_loop,
    events,
    links,
    rings,
    round_trips,
    sender,
)
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Floats, Ints
from lab.engines.sim.core.lte import TTI_NS
from lab.engines.sim.routes import DOWN, UP, Hops, Routes, Subflow
from lab.engines.sim.tables import FRAME_BYTES, TCP_ACK_BYTES, Tables
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.scenario.targets import LinkChange, SetLinkDelay, SetLinkLoss, SetLinkRate, SetLinkUp
from lab.topologies.topology import Interface, Topology, data_directions, link_delay_ns

# The two tables of numbers (`core.layout`). The integer table grows while the network runs.

NO_THRESHOLD = float(at.FOREVER)
PACKETS = 2048  # packets in flight for which new tables have space
SPARE = 1 << 16  # entries added beyond those needed


def build(tables: Tables) -> at.World:
    """Return the two tables of a network at the start of a run. The integer table has the rows of
    `tables`, a ring buffer of recent segments for each subflow and connection, and space for
    packets and events."""
    return with_room(at.World(_with_rings(tables), _windows(tables)), PACKETS)


def with_room(w: at.World, packets: int) -> at.World:
    """Return the tables with space for `packets` more packets in flight, and for as many more
    scheduled events."""
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
    """Reserve `count` entries, all 0, in the integer table. The table is lengthened if needed.

    Return the tables and the index of the first reserved entry. The integer table in the result may
    be a new one.
    """
    begins = int(w.row[at.PLACES_USED])
    if begins + count > len(w.row):
        longer = int_zeros(begins + count + SPARE)
        longer[: len(w.row)] = w.row
        w = w._replace(row=longer)
    w.row[at.PLACES_USED] = begins + count
    return w, begins


def _windows(tables: Tables) -> Floats:
    """Return the floating-point table at the start of a run. It has the initial congestion window,
    SSTHRESH and growth divisor of each subflow."""
    window = float_zeros(len(tables.values))
    for f in _subflows(tables):
        window[f + at.CWND] = sender.INITIAL_WINDOW
        window[f + at.SSTHRESH] = NO_THRESHOLD
        window[f + at.GROWTH_DIVISOR] = 1.0
    return window


def _with_rings(tables: Tables) -> Ints:
    """Return the integer table at the start of a run: the rows of `tables`, then a ring buffer of
    recent segments for each subflow and each connection (`core.rings`)."""
    values, end = tables.values, len(tables.values)
    for field, places, fields in (
        (at.RING, _subflows(tables), rings.SUBFLOW_FIELDS),
        (at.CONN_RING, list(tables.connections.values()), rings.CONNECTION_FIELDS),
    ):
        for place in places:
            values[place + field] = end
            end += tables.ring_size * fields
    values[at.RING_SIZE], values[at.PLACES_USED] = tables.ring_size, end
    table = int_zeros(end + PACKETS * (at.PACKET_FIELDS + events.FIELDS) + SPARE)
    table[: len(values)] = values
    return table


def _subflows(tables: Tables) -> list[int]:
    return [each.place for subflows in tables.subflows.values() for each in subflows]


class Network:
    """A simulated network. `w` holds its state in two tables of numbers. `tables` says where the
    state of each connection, subflow and hop begins. `now_ns` is the virtual time.

    Time passes only in `run`. Between two calls of `run`, anything may be read or changed.
    """

    def __init__(
        self, topology: Topology, multipath: Multipath, flows: Iterable[Flow], seed: int
    ) -> None:
        """`flows` must contain every flow that will start in the run. All random numbers of the run
        derive from `seed`."""
        compiled.speed_up_if_possible()
        self.tables = Tables(topology, multipath, seed)
        flows = list(flows)
        for flow in flows:
            self.tables.add_connection(flow)
        users = {(flow.user, flow.direction) for flow in flows}
        self._data_hops = self._hops_of_data(topology, users)
        relays = {(relay, direction) for relay in topology.relays for direction in (DOWN, UP)}
        self._data_directions = users | relays
        self.routes = Routes(self.tables.wiring, self.tables.links, self.tables.stations)
        self.w = build(self.tables)
        self._written: dict[Hops, int] = {}  # index of the hops in the integer table
        self.now_ns = 0

    def _hops_of_data(
        self, topology: Topology, users: Iterable[tuple[str, str]]
    ) -> dict[str, list[int]]:
        """Return, by the id of a link, those of its two hops (directions) in which data can travel.
        `users` has pairs of a user and the direction of the user's data, "down" or "up"."""
        directions = data_directions(topology, users)
        return {
            link.id: [
                self.tables.links[link.id, end]
                for direction, end in (("ab", link.b), ("ba", link.a))
                if direction in directions[link.id]
            ]
            for link in topology.links
        }

    def run(self, until_ns: int) -> None:
        """Handle all events that are due before `until_ns`, and set the virtual time to `until_ns`.
        The integer table is lengthened if it becomes too short."""
        self.w = at.World(compiled.ints(self.w.row), compiled.floats(self.w.window))
        while not event_loop.run(self.w, until_ns):
            self.w = with_room(self.w, int(self.w.row[at.HEAP_SIZE]))
        self.now_ns = until_ns

    # --- connections

    def start(self, flow: Flow, cc: str) -> None:
        """Open the connection of a flow, with congestion control `cc`.

        At t = 0, all subflows are established without a handshake, as in the emulation. Later, the
        first subflow is established after one round trip. Each further subflow then needs one more
        round trip, on its own path. UDP has no handshake.
        """
        c, subflows = self.tables.connections[flow.id], self.tables.subflows[flow.id]
        rtts_ns = [self._set_path(each) for each in subflows]
        row = self.w.row
        row[c + at.CONN_STATE], row[c + at.STARTED_NS] = at.RUNNING, self.now_ns
        if flow.protocol == "udp":
            f = subflows[0].place
            row[f + at.SRTT_NS], row[f + at.STATE] = rtts_ns[0], at.ESTABLISHED
        else:
            for subflow, rtt_ns in zip(subflows, rtts_ns, strict=True):
                self._open(subflow.place, cc, rtt_ns)
                if self.now_ns:
                    first_ns = rtts_ns[0] if subflow is not subflows[0] else 0
                    events.schedule(row, self.now_ns + first_ns + rtt_ns, at.JOINED, subflow.place)
        self.set_demand(flow, flow.rate_bps)

    def _open(self, f: int, cc: str, rtt_ns: int) -> None:
        """Initialise the sender of TCP subflow `f`. `rtt_ns` is the RTT of its path without
        queueing. At t = 0 the subflow is established immediately; later, its handshake begins."""
        row = self.w.row
        row[f + at.STATE] = at.JOINING if self.now_ns else at.ESTABLISHED
        row[f + at.LAW] = dispatch.number(cc)
        round_trips.start(row, f, rtt_ns)

    def stop(self, flow: Flow) -> None:
        """Close the connection of a flow immediately. Its packets in flight have no effect from now
        on."""
        w = self.w
        w.row[self.tables.connections[flow.id] + at.CONN_STATE] = at.CLOSED
        for subflow in self.tables.subflows[flow.id]:
            w.row[subflow.place + at.STATE] = at.CLOSED

    def set_demand(self, flow: Flow, rate_bps: int | None) -> None:
        """Set the rate in bit/s at which the application of a flow writes data. 0 pauses the
        application. None removes the limit: TCP then always has data to send."""
        c, row = self.tables.connections[flow.id], self.w.row
        row[c + at.DEMAND_BPS] = at.UNLIMITED if rate_bps is None else rate_bps
        if row[c + at.CONN_STATE] != at.RUNNING:
            return
        if row[c + at.DEMAND_BPS] == at.UNLIMITED:
            row[c + at.WRITTEN], row[c + at.APP_EVENT_NS] = at.FOREVER, 0
            events.schedule(row, self.now_ns, at.PUSH, c)
            return
        row[c + at.WRITTEN] = min(
            int(row[c + at.WRITTEN]), int(row[c + at.DATA_SND_NXT]) + application.UNSENT_SEGMENTS
        )
        due_ns = self.now_ns + 1  # must differ from an older event that is due now
        row[c + at.APP_EVENT_NS] = due_ns
        events.schedule(row, due_ns, at.APP_DUE, c)

    # --- subflows

    def subflow(self, key: SubflowKey) -> Subflow:
        """Return the subflow with this key. The key is a flow id and the number of the subflow in
        its connection, from 1."""
        return self.tables.subflows[key[0]][key[1] - 1]

    def is_active(self, subflow: Subflow) -> bool:
        """Return True if a TCP subflow is established and its connection has not yet transferred
        its whole file."""
        f, row = subflow.place, self.w.row
        c = row[f + at.CONNECTION]
        return bool(
            not row[c + at.DATAGRAMS]
            and row[f + at.STATE] == at.ESTABLISHED
            and row[c + at.DONE_NS] == 0
        )

    def route(self, subflow: Subflow, path: Path) -> None:
        """Route a subflow over `path`, which the controller requests. Packets in flight stay on the
        old path."""
        subflow.requested_path = path
        self._set_path(subflow)

    def move(self, subflow: Subflow, user: Interface) -> None:
        """Attach the user's end of a subflow to another interface. Forget the path that the
        controller requested. If the subflow has a path, choose a new one."""
        subflow.ends, subflow.requested_path = replace(subflow.ends, user=user), ()
        if subflow.path:
            self._set_path(subflow)

    def expect(self, subflow: Subflow, rate_bps: int | None) -> None:
        """Set the expected rate of a subflow in bit/s of Ethernet frames; None removes it. The
        sender keeps to this rate by pacing or, if the scenario says `expected_by: window`, by its
        congestion window."""
        f, row = subflow.place, self.w.row
        row[f + at.EXPECTED_BPS], row[f + at.PACED_UNTIL_NS] = rate_bps or 0, 0
        events.schedule(row, self.now_ns, at.PUSH, int(row[f + at.CONNECTION]))

    def set_backup(self, subflow: Subflow, backup: bool) -> None:
        """Set or clear the backup flag of a subflow. The receiver sends the flag with MP_PRIO (RFC
        8684), so the sender applies it half a round trip later. At t = 0 the flag is applied
        immediately."""
        f, row = subflow.place, self.w.row
        row[f + at.REQUESTED_BACKUP] = int(backup)
        if not self.now_ns:
            row[f + at.BACKUP] = int(backup)
            return
        due_ns = self.now_ns + int(row[f + at.SRTT_NS]) // 2
        events.schedule(row, due_ns, at.PRIORITY, f)

    def _set_path(self, subflow: Subflow) -> int:
        """Choose the path of a subflow, which its packets use from now on. Return the RTT of the
        path without queueing, in ns."""
        subflow.path = self.routes.path(subflow.ends, subflow.requested_path)
        hops = self.routes.hops(subflow.ends, subflow.path)
        data, back = hops[subflow.data_direction], hops[_other(subflow.data_direction)]
        data_route, ack_route = self.write_hops(data), self.write_hops(back)
        self.w.row[subflow.place + at.DATA_ROUTE] = data_route
        self.w.row[subflow.place + at.ACK_ROUTE] = ack_route
        return max(1, self._crossing_ns(data, FRAME_BYTES) + self._crossing_ns(back, TCP_ACK_BYTES))

    def write_hops(self, hops: Hops) -> int:
        """Write the hops of a path in one direction to the integer table, and return the index of
        the first one. Equal paths are written once and never moved, because packets in flight refer
        to them."""
        if hops not in self._written:
            self.w, before = with_places(self.w, len(hops) + 2)
            for n, hop in enumerate((at.NOTHING, *hops, at.NOTHING)):
                self.w.row[before + n] = hop
            self._written[hops] = before + 1  # `links.leave_air` reads the entry before
        return self._written[hops]

    def _crossing_ns(self, hops: Hops, size: int) -> int:
        """Return the time in ns that a packet of `size` bytes needs to cross all `hops` without
        queueing. Over LTE this time is a whole number of TTIs (1 ms) plus the delay."""
        crossing_ns = 0
        for h in hops:
            rate_bps = self.hop(h, at.RATE_BPS)
            step_ns = TTI_NS if self.hop(h, at.KIND) == at.BEARER else 1
            air_ns = size * 8 * at.NS_PER_S // rate_bps if rate_bps else 0
            crossing_ns += self.hop(h, at.DELAY_NS) + -(-air_ns // step_ns) * step_ns
        return crossing_ns

    # --- links

    def set_link(self, change: LinkChange) -> None:
        """Change the rate, delay, loss or state (up or down) of a link. A new loss applies only to
        the directions that carry data. All other changes apply to both directions."""
        both = [hop for (name, _), hop in self.tables.links.items() if name == change.link]
        match change:
            case SetLinkRate(_, rate_bps):
                self._set(both, at.RATE_BPS, rate_bps)
            case SetLinkDelay(link, delay_ns):
                self._set(both, at.DELAY_NS, self._with_cell_delay_ns(link, delay_ns))
            case SetLinkLoss(link, loss_ppm):
                self._set(self._data_hops[link], at.LOSS_PPM, loss_ppm)
            case SetLinkUp(link, up):
                self._set(both, at.UP, int(up))
                self._reroute_around(link, up)

    def _with_cell_delay_ns(self, link: str, delay_ns: int) -> int:
        """Return the total delay in ns of a link whose own delay becomes `delay_ns`. If the link
        ends at an access point, the delay of the access point's cell is added."""
        topology = self.tables.topology
        (changed,) = (
            replace(each, delay_ns=delay_ns) for each in topology.links if each.id == link
        )
        return link_delay_ns(changed, topology.cells)[0]

    def _set(self, hops: Iterable[int], field: int, value: int) -> None:
        for hop in hops:
            self.w.row[hop + field] = value

    def _reroute_around(self, link: str, up: bool) -> None:
        """Record that a link went up or down. Then choose the path of each started subflow
        again."""
        self.routes.set_link(link, up)
        for subflow in self.subflows():
            if subflow.path:
                self._set_path(subflow)

    # --- counters

    def hop(self, place: int, field: int) -> int:
        """Return one field of a hop (one direction of a link or radio channel). `place` is the
        index of the hop's state in the integer table. `field` is a constant of `core.layout`, such
        as QUEUE_COUNT."""
        return int(self.w.row[place + field])

    def station(self, ap: str, user: str, direction: str, field: int) -> int:
        """Return one field of the radio channel between an access point and a user. `direction` is
        "down" or "up". `field` is a constant of `core.layout`, such as QUEUE_COUNT."""
        return self.hop(self.tables.stations[ap, user, direction], field)

    def queued(self, place: int) -> int:
        """Return how many packets wait or are in transmission on one direction of a link. `place`
        is the index of its state in the integer table."""
        return int(links.queue_length(self.w.row, place, self.now_ns))

    def has_data(self, user: str, direction: str) -> bool:
        """Return True if the user has a flow whose data goes in this direction: "down" (to the
        user) or "up". For a relay, a switch that is a WiFi station, the result is True in both
        directions."""
        return (user, direction) in self._data_directions

    def subflows(self) -> Iterator[Subflow]:
        return (subflow for subflows in self.tables.subflows.values() for subflow in subflows)


def _other(direction: str) -> str:
    return UP if direction == DOWN else DOWN
