"""A running network: the tables, time, and everything that can be asked of it or changed in it from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from controller import units
from controller.observation import SubflowKey
from controller.paths import Path
from lab.engines.sim import compiled
from lab.engines.sim.core import dispatch, event_loop, events, links, mptcp
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.lte import TTI_NS
from lab.engines.sim.routes import DOWN, UP, Hops, Routes, Subflow
from lab.engines.sim.tables import (
    FRAME_BYTES,
    TCP_ACK_BYTES,
    Tables,
    bearer,
    with_places,
    with_room,
)
from lab.radio import wifi
from lab.radio.cell import Station
from lab.scenario.changes import (
    LinkChange,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetLinkUp,
)
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.data_directions import data_directions
from lab.topologies.link_delay import link_delay_ns
from lab.topologies.topology import Topology

RTO_FIRST_NS = 1_000_000_000  # RFC 6298, (2.1)
METER_BURST_PACKETS, METER_BURST_NS = 10, 20_000_000  # a policer that holds less starves a TCP flow


class Network:
    """Time goes on in `run`; between two calls anything may be read or changed."""

    def __init__(
        self, topology: Topology, multipath: Multipath, flows: Iterable[Flow], seed: int
    ) -> None:
        compiled.speed_up_if_possible()
        self.tables = Tables(topology, multipath, seed)
        flows = list(flows)
        for flow in flows:
            self.tables.add_connection(flow)
        data = data_directions(topology, ((flow.user, flow.direction) for flow in flows))
        self._data_hops = {  # by link: the hops that data can cross
            link.id: [
                self.tables.links[link.id, end]
                for direction, end in (("ab", link.b), ("ba", link.a))
                if direction in data[link.id]
            ]
            for link in topology.links
        }
        self._directions = {(flow.user, flow.direction) for flow in flows}
        self._directions |= {
            (relay, direction) for relay in topology.relays for direction in (DOWN, UP)
        }
        self.routes = Routes(self.tables.wiring, self.tables.links, self.tables.stations)
        self.w = self.tables.world()
        self._laid: dict[Hops, int] = {}  # of a way: where its hops are written down
        self.now_ns = 0

    def run(self, until_ns: int) -> None:
        """Let everything happen that is due before `until_ns`."""
        compiled.speed_up_if_possible()
        self.w = at.World(compiled.ints(self.w.row), compiled.floats(self.w.window))
        while not event_loop.run(self.w, until_ns):
            self.w = with_room(self.w, int(self.w.row[at.HEAP_SIZE]))
        self.now_ns = until_ns

    # --- connections

    def start(self, flow: Flow, cc: str) -> None:
        """Open a connection; a further subflow joins one round trip of its own after the first is established. What starts at 0
        has connected before, as in the emulation."""
        c, subflows = self.tables.connections[flow.id], self.tables.subflows[flow.id]
        rtts_ns = [self._lay(each) for each in subflows]
        w, row = self.w, self.w.row
        row[c + at.CONN_STATE], row[c + at.STARTED_NS] = at.RUNNING, self.now_ns
        if flow.protocol == "udp":
            f = subflows[0].place
            row[f + at.SRTT_NS], row[f + at.STATE] = rtts_ns[0], at.ESTABLISHED
            self.demand(flow, flow.rate_bps)
            return
        established_ns = 0
        for subflow, rtt_ns in zip(subflows, rtts_ns, strict=True):
            f = subflow.place
            row[f + at.STATE], row[f + at.LAW] = (
                at.JOINING if self.now_ns else at.ESTABLISHED,
                dispatch.number(cc),
            )
            row[f + at.SRTT_NS], row[f + at.RTTVAR_NS], row[f + at.BASE_RTT_NS] = (
                rtt_ns,
                rtt_ns // 2,
                rtt_ns,
            )
            row[f + at.RTO_NS] = max(RTO_FIRST_NS, 3 * rtt_ns)
            if self.now_ns:
                at_ns = established_ns + rtt_ns if established_ns else self.now_ns + rtt_ns
                established_ns = established_ns or at_ns
                events.schedule(w.row, at_ns, at.JOINED, f)
        self.demand(flow, flow.rate_bps)

    def stop(self, flow: Flow) -> None:
        """Close a connection at once."""
        w = self.w
        w.row[self.tables.connections[flow.id] + at.CONN_STATE] = at.CLOSED
        for subflow in self.tables.subflows[flow.id]:
            w.row[subflow.place + at.STATE] = at.CLOSED

    def demand(self, flow: Flow, rate_bps: int | None) -> None:
        """What the application hands over from now on [bit/s]; None: as much as goes, of UDP what the scenario says."""
        c, w = self.tables.connections[flow.id], self.w
        w.row[c + at.DEMAND_BPS] = at.UNLIMITED if rate_bps is None else rate_bps
        if w.row[c + at.CONN_STATE] != at.RUNNING:
            return
        if w.row[c + at.DEMAND_BPS] == at.UNLIMITED:
            w.row[c + at.WRITTEN], w.row[c + at.APP_EVENT_NS] = at.FOREVER, 0
            events.schedule(w.row, self.now_ns, at.PUSH, c)
            return
        w.row[c + at.WRITTEN] = min(
            int(w.row[c + at.WRITTEN]), int(w.row[c + at.DATA_SND_NXT]) + mptcp.UNSENT_SEGMENTS
        )
        due_ns = self.now_ns + 1  # a stale event of this very moment must not be taken for this one
        w.row[c + at.APP_EVENT_NS] = due_ns
        events.schedule(w.row, due_ns, at.APP_DUE, c)

    # --- subflows

    def subflow(self, key: SubflowKey) -> Subflow:
        """The subflow of a connection with this number, counted from 1."""
        return self.tables.subflows[key[0]][key[1] - 1]

    def alive(self, subflow: Subflow) -> bool:
        """Whether it is established, and its connection has more to do; a strategy has nothing to do with UDP."""
        f, w = subflow.place, self.w
        if w.row[w.row[f + at.CONNECTION] + at.DATAGRAMS]:
            return False
        return bool(
            w.row[f + at.STATE] == at.ESTABLISHED
            and w.row[w.row[f + at.CONNECTION] + at.DONE_NS] == 0
        )

    def route(self, subflow: Subflow, way: Path) -> None:
        """It takes this way from now on; packets under way end theirs on the old one."""
        subflow.asked = way
        self._lay(subflow)

    def expect(self, subflow: Subflow, rate_bps: int | None) -> None:
        """Its sender paces it to this rate of Ethernet frames; None: not any more."""
        f = subflow.place
        self.w.row[f + at.EXPECTED_BPS], self.w.row[f + at.PACED_UNTIL_NS] = rate_bps or 0, 0
        events.schedule(self.w.row, self.now_ns, at.PUSH, int(self.w.row[f + at.CONNECTION]))

    def set_backup(self, subflow: Subflow, backup: bool) -> None:
        """Its sender hears of it half a round trip later; what is decided at 0 holds from the first packet on."""
        f = subflow.place
        self.w.row[f + at.REQUESTED_BACKUP] = int(backup)
        if not self.now_ns:
            self.w.row[f + at.BACKUP] = int(backup)
            return
        due_ns = self.now_ns + int(self.w.row[f + at.SRTT_NS]) // 2
        events.schedule(self.w.row, due_ns, at.PRIORITY, f)

    def _lay(self, subflow: Subflow) -> int:
        """Find its way and write down the hops; the round trip that nobody else lengthens [ns]."""
        subflow.way = self.routes.way(subflow.ends, subflow.asked)
        hops = self.routes.hops(subflow.ends, subflow.way)
        data, back = hops[subflow.data], hops[UP if subflow.data == DOWN else DOWN]
        self.w.row[subflow.place + at.DATA_ROUTE] = self._written(data)
        self.w.row[subflow.place + at.ACK_ROUTE] = self._written(back)
        return max(1, self._crossing_ns(data, FRAME_BYTES) + self._crossing_ns(back, TCP_ACK_BYTES))

    def _written(self, hops: Hops) -> int:
        """Where these hops are written down; they stay, for packets under way read them."""
        if hops not in self._laid:
            self.w, begins = with_places(self.w, len(hops) + 1)
            for n, hop in enumerate((*hops, at.NOTHING)):
                self.w.row[begins + n] = hop
            self._laid[hops] = begins
        return self._laid[hops]

    def _crossing_ns(self, hops: Hops, size: int) -> int:
        """How long a packet takes over empty hops; of a bearer whole TTIs, the least that it can."""
        crossing_ns = 0
        for h in hops:
            rate_bps, step_ns = (
                self.hop(h, at.RATE_BPS),
                TTI_NS if self.hop(h, at.KIND) == at.BEARER else 1,
            )
            air_ns = size * 8 * at.NS_PER_S // rate_bps if rate_bps else 0
            crossing_ns += self.hop(h, at.DELAY_NS) + -(-air_ns // step_ns) * step_ns
        return crossing_ns

    # --- links and cells

    def set_link(self, change: LinkChange) -> None:
        """Change both directions of a link; loss acts in the directions of data."""
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
        """Return a link's own delay plus that of the cell at its end."""
        topology = self.tables.topology
        (changed,) = (
            replace(each, delay_ns=delay_ns) for each in topology.links if each.id == link
        )
        return link_delay_ns(changed, topology.cells)[0]

    def _set(self, hops: Iterable[int], field: int, value: int) -> None:
        for hop in hops:
            self.w.row[hop + field] = value

    def _reroute_around(self, link: str, up: bool) -> None:
        """Find new paths for all subflows after a link went up or down."""
        self.routes.set_link(link, up)
        for subflow in self.subflows():
            if subflow.way:
                self._lay(subflow)

    def set_station(self, ap: str, station: Station) -> None:
        """A station's rate when alone: the price of its packets on a WiFi cell, and what a bearer's blocks carry."""
        for direction in (DOWN, UP):
            hop = self.tables.stations[ap, station.user, direction]
            if self.hop(hop, at.KIND) == at.BEARER:
                for field, value in bearer(station).items():
                    self.w.row[hop + field] = value
            else:
                self.w.row[hop + at.BYTE_AIRTIME_PS], self.w.row[hop + at.FRAME_AIRTIME_NS] = (
                    wifi.byte_price_ps(station),
                    wifi.fixed_ns(station),
                )

    def set_collisions(
        self, ap: str, sent: float, users: Iterable[tuple[str, str]], loss: float
    ) -> None:
        """From now on every frame is sent so often on this air, and stations (access point, user) lose this fraction of them."""
        self.w.row[self.tables.airs[ap] + at.TRANSMISSIONS_PPM] = units.ppm_from_fraction(sent)
        for ap, user in users:
            for direction in (DOWN, UP):
                self.w.row[self.tables.stations[ap, user, direction] + at.LOSS_PPM] = (
                    units.ppm_from_fraction(loss)
                )

    def hand_over(self, user: str, old: str, new: str) -> None:
        """A user's radio goes from one WiFi cell to another with its address and meter; what is still wired to the old one is lost."""
        tables = self.tables
        interface = tables.wiring.at(user, old)
        moved = replace(interface, switch=new, port=f"{new}-wlan1", link=new)
        interfaces = tuple(
            moved if each is interface else each for each in tables.wiring.interfaces
        )
        tables.wiring = replace(tables.wiring, interfaces=interfaces)
        for direction in (DOWN, UP):
            before, after = (tables.stations[ap, user, direction] for ap in (old, new))
            self.w.row[before + at.UP], self.w.row[after + at.UP] = 0, 1
            meter = self.hop(before, at.METERED)
            set_there = (
                self.w.row[tables.cells[new] + (meter - 1) * at.METER_FIELDS + at.METER_BPS] > 0
            )
            self.w.row[after + at.METERED], self.w.row[before + at.METERED] = (
                meter if set_there else 0,
                0,
            )
        for subflow in self.subflows():
            if subflow.ends.user == interface:
                subflow.ends, subflow.asked = replace(subflow.ends, user=moved), ()
                if subflow.way:
                    self._lay(subflow)

    def set_meter(
        self, ap: str, users: Iterable[str], rate_bps: int | None, number: int = at.TIER_2_METER
    ) -> None:
        """The data of these users at this access point share one of its token buckets; None: it meters nothing."""
        metered = set(users) if rate_bps is not None else set()
        for (where, user, direction), hop in self.tables.stations.items():
            if where == ap and (user, direction) in self._directions:
                if user in metered:
                    self.w.row[hop + at.METERED] = number
                elif self.w.row[hop + at.METERED] == number:
                    self.w.row[hop + at.METERED] = 0
        if rate_bps is not None:
            c, row = self.tables.cells[ap] + (number - 1) * at.METER_FIELDS, self.w.row
            row[c + at.METER_BPS] = rate_bps
            row[c + at.METER_BURST_NS] = max(
                METER_BURST_PACKETS * FRAME_BYTES * 8 * at.NS_PER_S // rate_bps, METER_BURST_NS
            )

    # --- what can be read

    def hop(self, place: int, field: int) -> int:
        """A counter of a hop."""
        return int(self.w.row[place + field])

    def station(self, ap: str, user: str, direction: str, field: int) -> int:
        """A counter of a station's hop."""
        return self.hop(self.tables.stations[ap, user, direction], field)

    def backlog(self, ap: str) -> int:
        """Packets that wait for the air of a WiFi cell on the way down."""
        return int(self.w.row[self.tables.cells[ap] + at.BACKLOG])

    def sends_up(self, ap: str, user: str) -> bool:
        """Whether a station has something that waits for the air, or is on it."""
        return self.station(ap, user, UP, at.BUSY_UNTIL_NS) > self.now_ns

    def uploads(self, user: str) -> bool:
        """Whether some of its data go towards the servers."""
        return (user, UP) in self._directions

    def waits_up_ns(self, ap: str) -> int:
        """How long a frame would wait now for the air of a WiFi cell on the way up."""
        return max(0, int(self.w.row[self.tables.airs[ap] + at.UPLINK_BUSY_UNTIL_NS]) - self.now_ns)

    def queued(self, place: int) -> int:
        """Packets in the queue of a link's direction, the one being sent included."""
        return int(links.queue_length(self.w.row, place, self.now_ns))

    def subflows(self) -> Iterator[Subflow]:
        """All subflows of all connections, begun or not."""
        return (subflow for subflows in self.tables.subflows.values() for subflow in subflows)
