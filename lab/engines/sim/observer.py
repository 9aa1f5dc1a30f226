"""Make the controller's input, an `Observation`, from the counters of a simulated network.

An observation has the access points, stations, subflows and arcs, with their mean rates since the
last observation. An arc is one direction of a link or of a radio channel. In the emulation, the
controller makes the observation from the counters of the switches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from controller.observation import (
    AccessPoint,
    Arc,
    Association,
    Observation,
    Subflow,
    SubflowKey,
    Tiers,
)
from controller.topology import Topology as ControllerTopology
from lab.engines.sim import routes
from lab.engines.sim.cells import Cells
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.tables import FRAME_BYTES
from lab.topologies.topology import Topology, as_json


@dataclass(frozen=True)
class CountedArc:
    """An arc (one direction of a link or radio channel), and the places where its traffic is
    counted.

    For radio channels, `stations` has the users of these channels. For a wired link, `stations` is
    empty.
    """

    arc: Arc
    hops: list[at.Hop]
    stations: list[str] = field(default_factory=list)


class Observer:
    def __init__(
        self, topology: Topology, network: Network, cells: Cells, rate_scale: float
    ) -> None:
        """`rate_scale` is the factor by which all rates of the scenario file are multiplied in this
        network."""
        self._topology, self._network, self._cells = topology, network, cells
        self._rate_scale = rate_scale
        self._receive_buffer_kb = network.tables.multipath.receive_buffer_kb
        self._users = frozenset(topology.users)
        self.update_arcs()
        self._occupancies: dict[str, list[float]] = {}
        self._counted: dict[Hashable, int] = {}
        self._observed_ns = 0

    def update_arcs(self) -> None:
        """Build the list of arcs (directions of links and radio channels) again. Each user is a
        station of the access point that the user is connected to now."""
        cells = tuple(
            replace(cell, stations=tuple(self._cells.stations_at(cell.ap)))
            for cell in self._topology.cells
        )
        network = ControllerTopology.model_validate(
            as_json(
                replace(self._topology, cells=cells),
                self._network.tables.wiring,
                self._receive_buffer_kb,
                self._rate_scale,
            )
        )
        self._user_addresses = {
            user: tuple(address for each in network.hosts[user] for address in each.addresses)
            for user in network.multipath
        }
        self._owner = {
            address: host
            for host, ports in network.hosts.items()
            for each in ports
            for address in each.addresses
        }
        self._arcs = [
            self._counted_arc(arc) for arc in network.arcs() if not self._ends_at_a_relay(arc)
        ]

    def _ends_at_a_relay(self, arc: Arc) -> bool:
        """Return True if an arc leads from a WiFi cell to a relay (a switch that is a WiFi
        station). Such an arc carries only acknowledgements."""
        return arc.head in self._topology.relays and arc.tail in self._network.tables.cells

    def add_occupancies(self, occupancies: Mapping[str, float]) -> None:
        """Add one measurement of the MAC occupancy (0 to 1) of each access point. The next
        observation has the mean of all measurements since the last observation."""
        for ap, value in occupancies.items():
            self._occupancies.setdefault(ap, []).append(value)

    def active_subflows(self) -> dict[SubflowKey, routes.Subflow]:
        """Return the established TCP subflows of connections that are not complete. A key is a flow
        id and the number of the subflow in its connection, from 1."""
        tables = self._network.tables
        open_ones = (each for each in tables.present if is_open(tables.connections[each]))
        return {
            (connection, number): subflow
            for connection in open_ones
            for number, subflow in enumerate(tables.present[connection], 1)
            if subflow.record.state == at.ESTABLISHED
        }

    def observe(
        self, now_ns: int, tiers: Tiers, limits_bps: Mapping[str, int | None]
    ) -> Observation:
        """Return an observation with the mean rates since the last call.

        `tiers` maps (user, access point) to 1 (primary) or 2 (secondary), as chosen in the last
        control step. `limits_bps` maps each access point to the limit of its secondary (Tier 2)
        traffic in bit/s, or to None.
        """
        elapsed_ns, self._observed_ns = now_ns - self._observed_ns, now_ns
        return Observation(
            now_ns,
            self._access_points(tiers, limits_bps, elapsed_ns),
            tuple(self._associations()),
            frozenset(self._topology.multipath),
            tuple(
                self._counted_subflow(key, each, tiers, elapsed_ns)
                for key, each in self.active_subflows().items()
            ),
            tiers,
            tuple(self._arc(each, elapsed_ns) for each in self._arcs if self._is_up(each)),
            self._receive_buffer_kb * 1000,
            self._rate_scale,
            self._user_addresses,
        )

    # --- access points

    def _access_points(
        self, tiers: Tiers, limits_bps: Mapping[str, int | None], elapsed_ns: int
    ) -> tuple[AccessPoint, ...]:
        occupancies, self._occupancies = self._occupancies, {}
        tier2_bps = self._tier2_bps(tiers, elapsed_ns)
        return tuple(
            AccessPoint(
                cell.ap,
                cell.kind,
                cell.capacity_bps,
                mac_occupancy=_mean(occupancies.get(cell.ap, [])),
                tier2_bps=tier2_bps.get(cell.ap),
                meter_bps=limits_bps[cell.ap],
            )
            for cell in self._topology.cells
        )

    def _associations(self) -> Iterator[Association]:
        for (ap, user), station in self._cells.stations.items():
            if user in self._users:
                interface = self._network.tables.wiring.at(user, ap)
                addresses = (interface.address, *interface.further)
                yield Association(
                    user, ap, station.rate_bps, station.weight, addresses, station.rssi_dbm
                )

    def _growth(self, counter: Hashable, count: int) -> int:
        """Return how much a counter has grown since the last call for this counter. `counter` is
        any key that identifies the counter, and `count` is the present value."""
        before, self._counted[counter] = self._counted.get(counter, 0), count
        return count - before

    def _tier2_bps(self, tiers: Tiers, elapsed_ns: int) -> dict[str, int]:
        """Return for each access point the mean rate of secondary (Tier 2) data that its meter has
        let pass since the last call, in bit/s of Ethernet frames.

        `elapsed_ns` is the time since the last call. If it is 0, the result is empty. `tiers` maps
        (user, access point) to 1 (primary) or 2 (secondary).
        """
        sums = dict.fromkeys(self._network.tables.cells, 0)
        for (ap, user, direction), hop in self._network.tables.stations.items():
            growth = self._growth(("meter", ap, user, direction), hop.meter_passed_bytes)
            data_direction = UP if self._network.has_data(user, UP) else DOWN
            if direction == data_direction and tiers.get((user, ap), 1) == 2:
                sums[ap] += growth
        return {ap: _bps(growth, elapsed_ns) for ap, growth in sums.items()} if elapsed_ns else {}

    # --- subflows

    def subflow(self, key: SubflowKey, tiers: Tiers) -> Subflow:
        """Return what the controller knows of a subflow, except its counters. `tiers` maps (user,
        access point) to 1 (primary) or 2 (secondary)."""
        subflow = self._network.subflow(key)
        s = subflow.record
        flow, user, ap = subflow.ends.flow, subflow.ends.user.node, subflow.ends.user.switch
        ends = f"{flow.source}:{flow.source_port}", f"{flow.destination}:{flow.destination_port}"
        return Subflow(
            *key,
            user,
            ap,
            *ends,
            tiers.get((user, ap), 1),
            subflow.path,
            backup=bool(s.backup),
            expected_bps=s.expected_bps or None,
        )

    def _counted_subflow(
        self, key: SubflowKey, subflow: routes.Subflow, tiers: Tiers, elapsed_ns: int
    ) -> Subflow:
        """Return what the controller knows of a subflow, including the sender's counters of data
        packets.

        Packets that the sender's own link drops count neither as sent nor as lost.
        """
        s = subflow.record
        dropped_first = s.segments_dropped_first
        sent = s.segments_sent - dropped_first
        sent_bytes = self._growth(key, sent) * FRAME_BYTES
        return replace(
            self.subflow(key, tiers),
            rate_bps=_bps(sent_bytes, elapsed_ns) if elapsed_ns else None,
            sent_packets=sent,
            lost_packets=s.segments_dropped - dropped_first,
            retransmitted_packets=s.segments_retransmitted,
            device_loss=self._device_loss(subflow),
        )

    def _device_loss(self, subflow: routes.Subflow) -> float:
        """Return the probability that a data packet is lost at random on the path of `subflow`.
        Packets dropped by full queues do not count."""
        hops = self._network.routes.hops(subflow.ends, subflow.path)[subflow.data_direction]
        return 1.0 - prod(1.0 - h.loss_ppm / at.MILLION for h in hops)

    # --- arcs

    def _counted_arc(self, arc: Arc) -> CountedArc:
        """Return the arc together with the hops where its traffic is counted. The arc is one
        direction of a link, of one station's radio channel, or of the radio channels of all
        stations of an access point."""
        tables, user = self._network.tables, self._owner.get(arc.head) or self._owner.get(arc.tail)
        if arc.link not in tables.cells:
            return CountedArc(arc, [tables.links[arc.link, self._owner.get(arc.head, arc.head)]])
        direction = DOWN if arc.tail == arc.link or arc.head in self._owner else UP
        if user:
            return CountedArc(arc, [tables.stations[arc.link, user, direction]], [user])
        hops = [
            hop
            for (ap, _, each), hop in tables.stations.items()
            if (ap, each) == (arc.link, direction)
        ]
        return CountedArc(arc, hops, [each.user for each in self._cells.stations_at(arc.link)])

    def _is_up(self, counted: CountedArc) -> bool:
        return any(h.is_up for h in counted.hops)

    def _arc(self, counted: CountedArc, elapsed_ns: int) -> Arc:
        """Return the arc with its present capacity and its mean rate over the last `elapsed_ns`.
        The capacity of a radio channel is the rate of its fastest station. For a wired link, the
        present delay and loss are set too."""
        arc, hops = counted.arc, counted.hops
        out_bytes = sum(h.out_bytes for h in hops)
        growth = self._growth((arc.link, arc.tail, arc.head), out_bytes)
        used_bps = _bps(growth, elapsed_ns) if elapsed_ns else 0
        if counted.stations:
            stations = (self._cells.stations[arc.link, user] for user in counted.stations)
            fastest_bps = max(each.rate_bps for each in stations)
            return replace(arc, used_bps=used_bps, capacity_bps=fastest_bps)
        hop = hops[0]
        return Arc(  # `replace` takes three times as long, and a large tree has hundreds of arcs
            arc.link,
            arc.tail,
            arc.head,
            capacity_bps=hop.rate_bps or arc.capacity_bps,
            used_bps=used_bps,
            delay_s=hop.delay_ns / at.NS_PER_S,
            jitter_s=arc.jitter_s,
            loss=hop.loss_ppm / at.MILLION,
        )


def is_open(c: at.Connection) -> bool:
    """Return True if this is a TCP connection that has not transferred its whole file yet."""
    return not c.is_datagrams and c.done_ns == 0


def _bps(byte_count: int, elapsed_ns: int) -> int:
    return byte_count * 8 * at.NS_PER_S // elapsed_ns


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
