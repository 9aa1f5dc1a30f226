"""From the counters of the simulated network to one `Observation`, as the controller of the emulation makes it from its switches."""

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
from controller.plan import Plan
from lab.engines.sim import routes
from lab.engines.sim.cells import Cells
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.tables import FRAME_BYTES
from lab.topologies.topology import Topology
from lab.topologies.topology_file import describe

MILLION = 1_000_000


@dataclass(frozen=True)
class CountedArc:
    """An arc, the hops that count what passes it, and the users whose stations these are."""

    arc: Arc
    hops: list[int]
    stations: list[str] = field(default_factory=list)


class Observer:
    """Collects between two steps of control."""

    def __init__(
        self, topology: Topology, network: Network, cells: Cells, rate_scale: float
    ) -> None:
        """`rate_scale` is the scenario's; the rates of an observation are wire rates."""
        self._topology, self._network, self._cells = topology, network, cells
        self._rate_scale = rate_scale
        self._receive_buffer_kb = network.tables.multipath.receive_buffer_kb
        self._users = frozenset(topology.users)
        self.redraw()
        self._occupancies: dict[str, list[float]] = {}
        self._counted: dict[Hashable, int] = {}
        self._observed_ns = 0

    def redraw(self) -> None:
        """The network, with every station where it is now."""
        cells = tuple(
            replace(cell, stations=tuple(self._cells.at(cell.ap))) for cell in self._topology.cells
        )
        plan = Plan.model_validate(
            describe(
                replace(self._topology, cells=cells),
                self._network.tables.wiring,
                self._receive_buffer_kb,
                self._rate_scale,
            )
        )
        self._owner = {
            address: host
            for host, ports in plan.hosts.items()
            for each in ports
            for address in each.addresses
        }
        self._arcs = [
            self._counted_arc(arc) for arc in plan.arcs() if not self._ends_at_a_relay(arc)
        ]

    def _ends_at_a_relay(self, arc: Arc) -> bool:
        """Nobody's way leads through another sender's radios: from the air to a relay there are acknowledgements only."""
        return arc.head in self._topology.relays and arc.tail in self._network.tables.cells

    def see(self, occupancies: Mapping[str, float]) -> None:
        """One look at the access points; a step takes the mean of all since the last one."""
        for ap, value in occupancies.items():
            self._occupancies.setdefault(ap, []).append(value)

    def alive(self) -> dict[SubflowKey, routes.Subflow]:
        """The subflows that are established and have something to do."""
        return {
            (connection, number): subflow
            for connection, subflows in self._network.tables.subflows.items()
            for number, subflow in enumerate(subflows, 1)
            if self._network.alive(subflow)
        }

    def observe(
        self, now_ns: int, tiers: Tiers, limits_bps: Mapping[str, int | None]
    ) -> Observation:
        """Everything since the last call."""
        elapsed_ns, self._observed_ns = now_ns - self._observed_ns, now_ns
        occupancies, self._occupancies = self._occupancies, {}
        carried_bps = self._tier2_bps(tiers, elapsed_ns)
        aps = tuple(
            AccessPoint(
                cell.ap,
                cell.kind,
                cell.capacity_bps,
                mac_occupancy=_mean(occupancies.get(cell.ap, [])),
                tier2_bps=carried_bps.get(cell.ap),
                meter_bps=limits_bps[cell.ap],
            )
            for cell in self._topology.cells
        )
        return Observation(
            now_ns,
            aps,
            tuple(self._associations()),
            frozenset(self._topology.multipath),
            tuple(
                self._counted_subflow(key, each, tiers, elapsed_ns)
                for key, each in self.alive().items()
            ),
            tiers,
            tuple(self._arc(each, elapsed_ns) for each in self._arcs if self._is_up(each)),
            self._receive_buffer_kb * 1000,
            self._rate_scale,
        )

    def _associations(self) -> Iterator[Association]:
        for (ap, user), station in self._cells.stations.items():
            if user in self._users:
                interface = self._network.tables.wiring.at(user, ap)
                addresses = (interface.address, *interface.further)
                yield Association(
                    user, ap, station.rate_bps, station.weight, addresses, station.rssi_dbm
                )

    def _grown(self, what: Hashable, count: int) -> int:
        """By how much a counter has grown since the last step."""
        before, self._counted[what] = self._counted.get(what, 0), count
        return count - before

    def _tier2_bps(self, tiers: Tiers, elapsed_ns: int) -> dict[str, int]:
        """What passed the place of the meter for Tier 2 since the last step, in bit/s of Ethernet frames."""
        sums = dict.fromkeys(self._network.tables.cells, 0)
        for ap, user, direction in self._network.tables.stations:
            passed = self._network.station(ap, user, direction, at.METER_PASSED_BYTES)
            grown = self._grown(("meter", ap, user, direction), passed)
            if (
                direction == (UP if self._network.uploads(user) else DOWN)
                and tiers.get((user, ap), 1) == 2
            ):
                sums[ap] += grown
        return {ap: _bps(grown, elapsed_ns) for ap, grown in sums.items()} if elapsed_ns else {}

    def subflow(self, key: SubflowKey, tiers: Tiers) -> Subflow:
        """What is known of a subflow when it begins."""
        subflow = self._network.subflow(key)
        flow, user, ap = subflow.ends.flow, subflow.ends.user.node, subflow.ends.user.switch
        ends = f"{flow.source}:{flow.source_port}", f"{flow.destination}:{flow.destination_port}"
        return Subflow(*key, user, ap, *ends, tiers.get((user, ap), 1), subflow.way)

    def _counted_subflow(
        self, key: SubflowKey, subflow: routes.Subflow, tiers: Tiers, elapsed_ns: int
    ) -> Subflow:
        """Packets are those that carry data, whichever way they go."""
        row, f = self._network.w.row, subflow.place
        sent = int(row[f + at.SEGMENTS_SENT])
        return replace(
            self.subflow(key, tiers),
            backup=bool(row[f + at.BACKUP]),
            expected_bps=int(row[f + at.EXPECTED_BPS]) or None,
            rate_bps=_bps(self._grown(key, sent) * FRAME_BYTES, elapsed_ns) if elapsed_ns else None,
            sent_packets=sent,
            lost_packets=int(row[f + at.SEGMENTS_DROPPED]),
            retransmitted_packets=int(row[f + at.SEGMENTS_RETRANSMITTED]),
            device_loss=self._device_loss(subflow),
        )

    def _device_loss(self, subflow: routes.Subflow) -> float:
        """What the links of its way lose by chance: packets that a full queue drops are not among them."""
        hops = self._network.routes.hops(subflow.ends, subflow.way)[subflow.data]
        return 1.0 - prod(1.0 - self._network.hop(h, at.LOSS_PPM) / MILLION for h in hops)

    # --- arcs

    def _counted_arc(self, arc: Arc) -> CountedArc:
        """Where an arc is counted: a direction of a link, a station, or all stations of an access point."""
        tables, user = self._network.tables, self._owner.get(arc.head) or self._owner.get(arc.tail)
        if arc.link not in tables.cells:
            return CountedArc(arc, [tables.links[arc.link, self._owner.get(arc.head, arc.head)]])
        direction = DOWN if arc.tail == arc.link or arc.head in self._owner else UP
        if user:
            return CountedArc(arc, [tables.stations[arc.link, user, direction]], [user])
        hops = [
            hop
            for (ap, _, way), hop in tables.stations.items()
            if (ap, way) == (arc.link, direction)
        ]
        return CountedArc(arc, hops, [each.user for each in self._cells.at(arc.link)])

    def _is_up(self, counted: CountedArc) -> bool:
        return any(self._network.hop(h, at.UP) for h in counted.hops)

    def _arc(self, counted: CountedArc, elapsed_ns: int) -> Arc:
        """As it is now, with what passed since the last step."""
        arc, hops = counted.arc, counted.hops
        grown = self._grown(
            (arc.link, arc.tail, arc.head), sum(self._network.hop(h, at.OUT_BYTES) for h in hops)
        )
        arc = replace(arc, used_bps=_bps(grown, elapsed_ns) if elapsed_ns else 0)
        if counted.stations:
            return replace(
                arc,
                capacity_bps=max(
                    self._cells.stations[arc.link, user].rate_bps for user in counted.stations
                ),
            )
        rate_bps, delay_ns, loss_ppm = (
            self._network.hop(hops[0], each) for each in (at.RATE_BPS, at.DELAY_NS, at.LOSS_PPM)
        )
        delay_s, loss = delay_ns / at.NS_PER_S, loss_ppm / MILLION
        return replace(arc, capacity_bps=rate_bps or arc.capacity_bps, delay_s=delay_s, loss=loss)


def _bps(byte_count: int, elapsed_ns: int) -> int:
    return byte_count * 8 * at.NS_PER_S // elapsed_ns


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
