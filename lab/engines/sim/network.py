"""A simulated network in virtual time: connections start and stop, and subflows and links change.
Its state is in the records of `core.state`."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from weakref import WeakSet

from controller.observation import SubflowKey
from controller.paths import Path
from controller.units import STOPPED_BPS
from lab.congestion import NEEDS_ECN
from lab.engines.sim import compiled
from lab.engines.sim.core import (
    announcements,
    application,
    changed_links,
    changed_queues,
    congestion,
    dispatch,
    event_loop,
    events,
    exchanges,
    handshake,
    links,
    queues,
    reuse,
    round_trips,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.lte import TTI_NS
from lab.engines.sim.routes import DOWN, UP, Hops, Routes, Subflow
from lab.engines.sim.tables import FRAME_BYTES, JOINS, TCP_ACK_BYTES, Tables
from lab.errors import LabError
from lab.scenario.flows import Flow
from lab.scenario.interfaces import endpoint_of
from lab.scenario.schema import Multipath, Role
from lab.scenario.targets import (
    LinkChange,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkQueue,
    SetLinkRate,
    SetLinkUp,
    with_queue,
)
from lab.topologies.topology import (
    BOTH,
    Direction,
    Interface,
    Link,
    Topology,
    data_directions,
    link_delay_ns,
)

PACKETS = 2048  # packets in flight for which a new network has space

_interpreted: WeakSet[Network] = WeakSet()  # networks that compiled code cannot run


def add_room(tables: Tables, count: int) -> list[at.Packet]:
    """Make space for `count` more packets in flight, and for as many more scheduled events. Return
    the packets."""
    w, make = tables.w, tables.make
    longer = make.longer(at.Due, w.heap, w.heap_count, w.heap_size + count)
    w.heap, w.heap_size = longer, w.heap_size + count
    packets = make.many(at.Packet, count)
    links.add_packets(w, packets, make.many(at.Event, count), count)
    return packets


class Network:
    """A simulated network. `w` is its world, and `tables` has the records of its connections,
    subflows and hops. `now_ns` is the virtual time.

    Time passes only in `run`. Between two calls of `run`, anything may be read or changed.
    """

    def __init__(
        self, topology: Topology, multipath: Multipath, flows: Iterable[Flow], seed: int
    ) -> None:
        """`flows` must contain every flow that will start in the run. All random numbers of the run
        derive from `seed`."""
        if not compiled.is_fast():
            gc.collect()  # forgets networks that nobody uses any more
        if not _interpreted:
            compiled.speed_up_if_possible()
        if not compiled.is_fast():
            _interpreted.add(self)
        flows = list(flows)
        self.tables = Tables(topology, multipath, flows, seed, compiled.records())
        users = {(flow.user, flow.direction) for flow in flows}
        self._data_hops = self._hops_of_data(topology, users)
        relays = {(relay, direction) for relay in topology.relays for direction in (DOWN, UP)}
        self._data_directions = users | relays
        self.routes = Routes(self.tables.wiring, self.tables.links, self.tables.stations)
        self.w = self.tables.w
        self._packets: list[tuple[list[at.Packet], int]] = []  # all of the network, with numbers
        self._add_room(PACKETS)
        self._steps: dict[Hops, at.Step] = {}  # the first one of each route
        self._queued: dict[str, Link] = {}  # links whose queue was changed
        self._down: set[Interface] = set()
        self._roles: dict[Interface, Role] = {}  # "subflow" where one is missing
        self._closed: dict[Interface, list[tuple[Flow, Subflow]]] = defaultdict(list)
        self.now_ns = 0
        self._delays_ns: dict[str, dict[int, int]] = {}  # of each call, by the datagram's number
        self.on_halt: Callable[[Flow], int] = lambda _: at.FOREVER  # returns when to stop next

    def _hops_of_data(
        self, topology: Topology, users: Iterable[tuple[str, str]]
    ) -> dict[str, list[at.Hop]]:
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
        """Handle all events that are due before `until_ns`, and set the virtual time to `until_ns`,
        or to an earlier time at which a client is to act (`on_halt`)."""
        while not event_loop.run(self.w, until_ns):
            if number := self.w.halted_by:
                self.w.halted_by, self.now_ns = 0, self.w.now_ns
                flow = self.tables.applications[number - 1]
                if flow.call:
                    self._take_arrivals(flow)
                else:
                    until_ns = min(until_ns, self.on_halt(flow))
            else:
                self._add_room(self.w.heap_size)
        self.now_ns = until_ns

    def _add_room(self, count: int) -> None:
        self._packets.append((add_room(self.tables, count), count))

    # --- connections

    def start(self, flow: Flow, cc: str) -> None:
        """Open the connection of a flow, with congestion control `cc`.

        The client begins the handshake now (`core.handshake`). A warm connection is open already,
        with all subflows; the RTTs are those of the paths without queueing. UDP has no handshake.
        """
        self._make_room()
        c, subflows = self.tables.add_connection(flow), self.tables.subflows[flow.id]
        rtts_ns = [self._set_path(each) for each in subflows]
        c.state, c.started_ns = at.OPENING, self.now_ns
        is_udp = flow.protocol == "udp"
        if cc in NEEDS_ECN and not is_udp:
            c.is_ecn = c.is_dctcp = 1
        for subflow, rtt_ns in zip(subflows, rtts_ns, strict=True):
            if not is_udp:
                subflow.record.law_number = dispatch.number(cc)
            if is_udp or flow.warm:
                _establish(subflow.record, rtt_ns)
                congestion.begin(subflow.record, self.now_ns)
                c.state = at.ESTABLISHED
        for subflow in subflows:
            self._mark(subflow)
        for subflow in subflows[1:]:
            shut = [
                each for each in (subflow.ends.user, subflow.ends.server) if not self._opens(each)
            ]
            if shut:
                subflow.record.state = at.CLOSED
                self._closed[shut[0]].append((flow, subflow))
        if c.state == at.OPENING:
            c.addresses_due = self._addresses_due(subflows)
            handshake.begin(self.w, subflows[0].record, self.now_ns)
        self.set_demand(flow, flow.rate_bps)

    def _addresses_due(self, subflows: list[Subflow]) -> int:
        """Return the addresses that the server of a connection announces, as bits."""
        return sum(
            1 << number
            for each in self.tables.wiring.of(subflows[0].ends.server.node)
            if self._opens(each) and (number := self.tables.announced(each))
        )

    def _make_room(self) -> None:
        if self.w.heap_count + event_loop.NEW_PER_EVENT > self.w.heap_size:
            self._add_room(self.w.heap_size)

    def stop(self, flow: Flow) -> None:
        """Close the connection of a flow immediately. Its packets in flight have no effect from now
        on."""
        self.tables.connections[flow.id].state = at.CLOSED
        for subflow in self.tables.subflows[flow.id]:
            subflow.record.state = at.CLOSED

    def set_demand(self, flow: Flow, rate_bps: int | None) -> None:
        """Set the rate in bit/s at which the application of a flow writes data. 0 pauses the
        application. None removes the limit: TCP then always has data to send."""
        if flow.id not in self.tables.present:
            return
        c = self.tables.connections[flow.id]
        if not c.application:
            c.demand_bps = at.UNLIMITED if rate_bps is None else rate_bps
        if c.state == at.ESTABLISHED:
            application.restart(self.w, c, self.now_ns)

    def forget_ended(self) -> list[str]:
        """Let the records of connections that are over be used again (`Tables.forget`), as far as
        no packet in flight and no scheduled event names them. Return the ids of their flows."""
        connections = ((each, self.tables.connections[each]) for each in self.tables.present)
        over = {each: c for each, c in connections if c.state == at.CLOSED or c.done_ns}
        if not over:
            return []
        for c in over.values():
            c.is_named = 0
        self.mark_named()
        ended = [each for each, c in over.items() if not c.is_named]
        for each in ended:
            self._take_arrivals(self.tables.flows[each])
            self.tables.forget(each)
        return ended

    def mark_named(self) -> None:
        """Mark all connections that a packet in flight or a scheduled event names."""
        reuse.mark_of_events(self.w)
        for packets, count in self._packets:
            reuse.mark_of_packets(self.w, packets, count)

    # --- requests and answers

    def ask(self, flow: Flow) -> None:
        """Let the client of a flow send one more request, unless its connection is over."""
        if flow.id not in self.tables.present:
            return
        for _ in range(_request_packets(flow)):
            self._make_room()
            exchanges.ask(self.w, self.tables.connections[flow.id], self.now_ns)

    def heard(self, flow: Flow) -> int:
        """Return how many requests the server of a flow has received, in order."""
        return self.tables.connections[flow.id].heard // _request_packets(flow)

    def answer(self, flow: Flow, size_bytes: int) -> int:
        """Let the server of a flow write this much more data, in full segments. Return the data
        sequence number at its end."""
        self._make_room()
        c = self.tables.connections[flow.id]
        c.written += -(-size_bytes // c.segment_bytes)
        events.schedule(self.w, self.now_ns, c.push)
        return c.written

    def arrived(self, flow: Flow) -> int:
        """Return the data sequence number up to which the client of a flow has read."""
        return self.tables.connections[flow.id].data_rcv_nxt

    def wait_for(self, flow: Flow, end: int) -> None:
        """Call `on_halt` when the client has read up to this data sequence number."""
        self.tables.connections[flow.id].awaited = end

    # --- calls

    def delays_ns(self, flow: Flow) -> dict[int, int]:
        """Return the one-way delay in ns of each datagram of a call that has arrived, by its number
        from 0."""
        self._take_arrivals(flow)
        return self._delays_ns.get(flow.id, {})

    def _take_arrivals(self, flow: Flow) -> None:
        """Make room for further datagrams of a call. Of equal datagrams the first one counts."""
        if not flow.call or flow.id not in self.tables.present:
            return
        c, found = self.tables.connections[flow.id], self._delays_ns.setdefault(flow.id, {})
        for n in range(c.arrivals):
            found.setdefault(c.arrival_numbers[n], c.arrival_delays_ns[n])
        c.arrivals = 0

    # --- subflows

    def subflow(self, key: SubflowKey) -> Subflow:
        """Return the subflow with this key. The key is a flow id and the number of the subflow in
        its connection, from 1."""
        return self.tables.subflows[key[0]][key[1] - 1]

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
        if subflow.is_forgotten:
            return
        s = subflow.record
        s.expected_bps, s.paced_until_ns = rate_bps or 0, 0
        events.schedule(self.w, self.now_ns, s.connection.push)

    def set_backup(self, subflow: Subflow, backup: bool) -> None:
        """Set or clear the backup flag of a subflow. The receiver sends the flag with MP_PRIO (RFC
        8684), so the sender applies it half a round trip later. At t = 0 the flag is applied
        immediately."""
        if subflow.is_forgotten:
            return
        s = subflow.record
        s.requested_backup = int(backup)
        if not self.now_ns:
            s.backup = int(backup)
            return
        events.schedule(self.w, self.now_ns + s.srtt_ns // 2, s.priority)

    def _set_path(self, subflow: Subflow) -> int:
        """Choose the path of a subflow, which its packets use from now on. Return the RTT of the
        path without queueing, in ns."""
        subflow.path = self.routes.path(subflow.ends, subflow.requested_path)
        if subflow.is_forgotten:
            return 0
        hops = self.routes.hops(subflow.ends, subflow.path)
        data, back = hops[subflow.data_direction], hops[_other(subflow.data_direction)]
        subflow.record.data_route, subflow.record.ack_route = self.steps(data), self.steps(back)
        return max(1, _crossing_ns(data, FRAME_BYTES) + _crossing_ns(back, TCP_ACK_BYTES))

    def steps(self, hops: Hops) -> at.Step:
        """Return the first step of the route over `hops`. The steps of equal routes are made once
        and stay as they are, because packets in flight refer to them."""
        if hops not in self._steps:
            end, make = self.w.end, self.tables.make
            steps = [make.one(at.Step, hop=hop, next=end, before=end) for hop in hops]
            for before, after in pairwise(steps):
                before.next, after.before = after, before
            steps[-1].next = make.one(at.Step, hop=self.w.no_hop, before=steps[-1])
            self._steps[hops] = steps[0]
        return self._steps[hops]

    # --- links

    def set_link(self, change: LinkChange) -> None:
        """Change the rate, delay, loss or state (up or down) of a link. A new loss applies only to
        the directions that carry data, and to packets that arrive from now on. A new rate or delay
        applies also to packets that wait."""
        ways = self._ways(change.link)
        match change:
            case SetLinkRate(_, rate_bps, sides):
                for side in sides:
                    hop = ways[side]
                    changed_links.change(self.w, hop, rate_bps, hop.delay_ns, self.now_ns)
            case SetLinkDelay(link, delay_ns, sides):
                in_all_ns = self._with_cell_delay_ns(link, delay_ns)
                for side in sides:
                    hop = ways[side]
                    changed_links.change(self.w, hop, hop.rate_bps, in_all_ns, self.now_ns)
            case SetLinkLoss(link, loss_ppm, sides):
                for hop in [ways[side] for side in sides] if sides else self._data_hops[link]:
                    hop.loss_ppm, hop.has_bursts = loss_ppm, 0
            case SetLinkQueue():
                self._set_queue(change, ways)
            case SetLinkUp(link, up):
                self.routes.set_link(link, up)
                for hop in ways.values():
                    hop.is_up = int(
                        up and not any(hop in self._hops_at(each) for each in self._down)
                    )
                self._reroute()

    def _set_queue(self, change: SetLinkQueue, ways: dict[Direction, at.Hop]) -> None:
        link = with_queue(self._queued.get(change.link) or self._link(change.link), change)
        self._queued[change.link] = link
        for side in change.sides:
            hop, way = ways[side], link.way(side)
            queue = self.tables.queue(way.discipline, way.queue_packets)
            changed_queues.change_queue(self.w, hop, queue, self.now_ns)

    def _link(self, id: str) -> Link:
        return next(each for each in self.tables.topology.links if each.id == id)

    def _ways(self, link: str) -> dict[Direction, at.Hop]:
        found, hops = self._link(link), self.tables.links
        return {"ab": hops[link, found.b], "ba": hops[link, found.a]}

    def _with_cell_delay_ns(self, link: str, delay_ns: int) -> int:
        """Return the total delay in ns of a link whose own delay becomes `delay_ns`. If the link
        ends at an access point, the delay of the access point's cell is added."""
        topology = self.tables.topology
        (changed,) = (
            each.changed(BOTH, delay_ns=delay_ns) for each in topology.links if each.id == link
        )
        return link_delay_ns(changed, topology.cells)[0]

    def _reroute(self) -> None:
        """Choose the path of each started subflow again."""
        for subflow in self.subflows():
            if subflow.path:
                self._set_path(subflow)

    # --- interfaces

    def set_interface(self, interface: Interface, up: bool) -> list[tuple[Flow, Subflow]]:
        """Remove the addresses of a host's interface, or add them again. While it has none, nothing
        passes it. Return the subflows that open now, with their flows.

        Raise `LabError` if a connection has no room for more subflows.
        """
        opens = self._roles.get(interface) != "none"
        joined = self._open_again(interface) if up and opens else []
        (self._down.discard if up else self._down.add)(interface)
        for hop in self._hops_at(interface):
            hop.is_up = int(up and not self.routes.is_broken(interface.link))
        if opens and not up:
            self._close_all(interface)
        return self._joins(interface, joined)

    def set_endpoint(self, interface: Interface, role: Role) -> list[tuple[Flow, Subflow]]:
        """Let the addresses of a user's interface open subflows, open backups, or open none. Return
        the subflows that open now, with their flows.

        Raise `LabError` if a connection has no room for more subflows.
        """
        opens = interface not in self._down
        was_none = self._roles.get(interface) == "none"
        joined = self._open_again(interface) if opens and was_none else []
        self._roles[interface] = role
        if opens and role == "none":
            self._close_all(interface)
        elif opens:
            for _, subflow in self._subflows_at(interface):
                self.set_backup(subflow, self._is_backup(subflow))
        return self._joins(interface, joined)

    def _opens(self, interface: Interface) -> bool:
        return interface not in self._down and self._roles.get(interface) != "none"

    def _mark(self, subflow: Subflow) -> None:
        """Give a subflow that opens the backup flag of its endpoint (RFC 8684, section 3.2)."""
        if self._is_backup(subflow):
            subflow.record.backup = subflow.record.requested_backup = 1

    def _is_backup(self, subflow: Subflow) -> bool:
        """Return whether an endpoint at one of its ends makes the subflow a backup."""
        roles = (self._roles.get(each) for each in (subflow.ends.user, subflow.ends.server))
        return any(role in ("backup", "signal_backup") for role in roles)

    def _subflows_at(self, interface: Interface) -> list[tuple[Flow, Subflow]]:
        return [
            (flow, subflow)
            for flow in self._open_flows()
            for subflow in self.tables.subflows[flow.id]
            if interface in (subflow.ends.user, subflow.ends.server)
            and subflow.record.state != at.CLOSED
        ]

    def _close_all(self, interface: Interface) -> None:
        """Close the subflows of an interface if their connection has another one: at its host now,
        and at the other end when it hears of it over the other one (REMOVE_ADDR)."""
        found = self._subflows_at(interface)
        self._closed[interface] += [each for each in found if self._close(each[1], interface)]

    def _open_again(self, interface: Interface) -> list[tuple[Flow, Subflow]]:
        """Return the subflows of an interface that were closed, with their flows, and forget
        them."""
        is_open = set(self._open_flows())
        closed = [each for each in self._closed.get(interface, []) if each[0] in is_open]
        for flow, _ in closed:
            needed = sum(each == flow for each, _ in closed)
            if self.tables.joins_left(flow) < needed:
                raise LabError(f"open {flow.id} again: it has opened {JOINS} subflows anew")
        self._closed.pop(interface, None)
        return closed

    def _joins(
        self, interface: Interface, closed: list[tuple[Flow, Subflow]]
    ) -> list[tuple[Flow, Subflow]]:
        """For each subflow that was closed, open a new one (MP_JOIN), and return these.

        Those wait whose other end is shut. As in Linux, a user whose `interface` is back knows the
        server's first address, and with `fullmesh` those to which it has other subflows. It opens
        the others when the server announces them again.
        """
        joined = []
        for flow, old in closed:
            user, server = old.ends.user, old.ends.server
            shut = [each for each in (user, server) if not self._opens(each)]
            if interface == user and not self._is_known(flow, old):
                shut.append(server)
            if shut:
                self._closed[shut[0]].append((flow, old))
            else:
                joined.append((flow, old))
        return [(flow, self._join(interface, flow, old)) for flow, old in joined]

    def _is_known(self, flow: Flow, old: Subflow) -> bool:
        tables = self.tables
        if old.ends.server == tables.wiring.of(old.ends.server.node)[0]:
            return True
        said = endpoint_of(tables.multipath, old.ends.user)
        others = (each for each in tables.subflows[flow.id] if each.record.state != at.CLOSED)
        is_meshed = said is not None and said.is_fullmesh
        return is_meshed and any(each.ends.server == old.ends.server for each in others)

    def replace_interface(self, old: Interface, new: Interface) -> None:
        """Let an interface that has moved to another access point be as it was: off, with the
        subflows that were closed because of this, and with its role."""
        if old in self._down:
            self._down.discard(old)
            self._down.add(new)
        if old in self._closed:
            self._closed[new] = self._closed.pop(old)
        if old in self._roles:
            self._roles[new] = self._roles.pop(old)

    def _hops_at(self, interface: Interface) -> list[at.Hop]:
        return [self.routes.user_hop(interface, direction) for direction in (DOWN, UP)]

    def _open_flows(self) -> Iterator[Flow]:
        for flow in self.tables.flows.values():
            c = self.tables.connections[flow.id]
            if c.is_mptcp and c.state in (at.OPENING, at.ESTABLISHED) and not c.done_ns:
                yield flow

    def _close(self, subflow: Subflow, interface: Interface) -> bool:
        """Return whether the subflow closes, because its interface is shut. The first one of a
        connection that opens does not: its SYN is repeated."""
        s = subflow.record
        c = s.connection
        if s.state != at.ESTABLISHED:
            closes = s.number > 0 and s.state != at.CLOSED
            s.state = at.CLOSED if closes else s.state
            return closes
        rtts_ns = [
            each.record.srtt_ns
            for each in self.subflows()
            if each.record.connection == c
            and each.record.state == at.ESTABLISHED
            and self._opens(each.ends.user)
            and self._opens(each.ends.server)
        ]
        if rtts_ns:
            is_at_sender = (interface == subflow.ends.user) == bool(c.is_upload)
            heard_ns = 0 if is_at_sender else min(rtts_ns) // 2
            events.schedule(self.w, self.now_ns + heard_ns, s.removal)
        return bool(rtts_ns)

    def _join(self, interface: Interface, flow: Flow, old: Subflow) -> Subflow:
        """Open a subflow anew, because `interface` is back. That of a server is announced first."""
        self._make_room()
        new = self.tables.add_join(flow, old)
        self._mark(new)
        self._set_path(new)
        s = new.record
        if s.announced and interface == new.ends.server:
            announcements.announce(self.w, s.connection, s.announced, self.now_ns)
        elif self.tables.subflows[flow.id][0].record.client == at.CONFIRMED:
            handshake.begin(self.w, new.record, self.now_ns)  # else it begins with the others
        return new

    # --- counters

    def queued(self, hop: at.Hop) -> int:
        """Return how many packets wait or are in transmission on one direction of a link."""
        if hop.kind == at.MANAGED:
            return int(queues.waiting(self.w, hop.managed))
        return int(links.queue_length(hop, self.now_ns))

    def sent(self, hop: at.Hop) -> tuple[int, int]:
        """Return how many bytes and packets one direction of a link has sent.

        The simulator counts a packet when it is sure to be sent. In a first-in first-out queue,
        that is when it enters.
        """
        if hop.kind == at.MANAGED or not hop.rate_bps:
            return hop.out_bytes, hop.out_packets
        left_ns = max(0, hop.busy_until_ns - self.now_ns)
        left_bytes = left_ns * hop.rate_bps // (8 * at.NS_PER_S)
        return hop.out_bytes - left_bytes, hop.out_packets - self.queued(hop)

    def has_data(self, user: str, direction: str) -> bool:
        """Return True if the user has a flow whose data goes in this direction: "down" (to the
        user) or "up". For a relay, a switch that is a WiFi station, the result is True in both
        directions."""
        return (user, direction) in self._data_directions

    def subflows(self) -> Iterator[Subflow]:
        """Yield the subflows of all connections that were started, also of those that are over."""
        return (subflow for subflows in self.tables.subflows.values() for subflow in subflows)


def _establish(s: at.Subflow, rtt_ns: int) -> None:
    """Open subflow `s` at both ends without a packet."""
    s.state, s.client, s.server = at.ESTABLISHED, at.CONFIRMED, at.ACCEPTED
    round_trips.start(s, rtt_ns)
    s.receiver_rto_ns = s.rto_ns


def _request_packets(flow: Flow) -> int:
    assert flow.client is not None
    return flow.client.request_packets


def _other(direction: str) -> str:
    return UP if direction == DOWN else DOWN


def _crossing_ns(hops: Hops, size: int) -> int:
    """Return the time in ns that a packet of `size` bytes needs to cross all `hops` without
    queueing, also if it is stopped now. Over LTE this time is a whole number of TTIs (1 ms) plus
    the delay."""
    crossing_ns = 0
    for hop in hops:
        step_ns = TTI_NS if hop.kind == at.BEARER else 1
        passes = hop.rate_bps > STOPPED_BPS
        air_ns = size * 8 * at.NS_PER_S // hop.rate_bps if passes else 0
        crossing_ns += hop.delay_ns + -(-air_ns // step_ns) * step_ns
    return crossing_ns
