"""Take samples of a simulated network from the growth of its counters. A sample (`Frame`) has
values of all users, subflows, access points and links, with the same fields as in the emulation.

Throughput is payload counted at the receiver. For a user, it is the data that the applications have
read. For a subflow, it is the data that has arrived in order. Congestion window and RTT are read at
the sender.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controller import units
from lab.engines.sim.cells import Cells
from lab.engines.sim.connections import Connection, Connections, SubflowCounters, rate_mbps
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.frame import (
    ApSample,
    Direction,
    Frame,
    LinkSample,
    SubflowSample,
    UserSample,
)
from lab.scenario.flows import Flow
from lab.scenario.movement import Movement
from lab.topologies.topology import Link, Topology


class Sampler:
    def __init__(
        self,
        topology: Topology,
        network: Network,
        connections: Connections,
        cells: Cells,
        movement: Movement,
    ) -> None:
        self.topology, self.network, self.connections = topology, network, connections
        self.cells, self.movement = cells, movement
        self._sampled_ns = 0
        self._links: dict[at.Hop, list[int]] = {}

    def frame(
        self,
        tiers: Mapping[tuple[str, str], int],
        occupancies: Mapping[str, float | None],
        limits_bps: Mapping[str, int | None],
    ) -> Frame:
        """Return a sample of the network with the mean rates since the last call.

        `tiers` maps (user, access point) to 1 (primary) or 2 (secondary). `occupancies` maps each
        access point to its MAC occupancy, from 0 to 1. `limits_bps` maps each access point to the
        limit of its secondary (Tier 2) traffic in bit/s, or to None.
        """
        now_ns = self.network.now_ns
        elapsed_ns, self._sampled_ns = now_ns - self._sampled_ns, now_ns
        users = self._user_samples(elapsed_ns)
        subflows, tier_mbps = self._subflow_samples(tiers, elapsed_ns)
        aps = {
            ap: ApSample(
                round(mbps[1], 4),
                round(mbps[2], 4),
                _rounded(occupancies.get(ap)),
                _mbps(limits_bps.get(ap)),
                len(self.cells.stations_at(ap)),
            )
            for ap, mbps in tier_mbps.items()
        }
        links = {
            link.id: self._link_sample(link, elapsed_ns) for link in self.topology.sampled_links
        }
        return Frame(round(now_ns / at.NS_PER_S, 3), aps, links, users, subflows)

    def completed(self) -> Iterator[Flow]:
        """Yield each flow whose file transfer was completed since the last call."""
        for connection in self.connections.values():
            done = connection.record.done_ns > 0
            if done and not connection.is_complete:
                connection.is_complete = True
                yield connection.flow

    def _established(self) -> Iterator[tuple[str, Connection, SubflowCounters]]:
        """Yield the name, connection and counters of each subflow that is established or closed. A
        name such as "ue1-1/2" is the flow id and the number of the subflow, from 1.

        A workload has many connections: each that is complete is left out from the next call on.
        """
        for name, connection in self.connections.items():
            if connection.is_left_out:
                continue
            connection.is_left_out = connection.is_complete and connection.flow.kind == "workload"
            for number, counters in enumerate(connection.subflows, 1):
                if self.connections.is_established(counters):
                    yield f"{name}/{number}", connection, counters

    # --- users

    def _user_samples(self, elapsed_ns: int) -> dict[str, UserSample]:
        rates: dict[str, float] = {}
        held_bytes: Counter[str] = Counter()
        for connection in self.connections.values():
            user = connection.flow.user
            rate = self._read_mbps(connection, elapsed_ns)
            rates[user] = round(rates.get(user, 0.0) + rate, 4)
            held_bytes[user] += self.connections.take_held_back_bytes(connection)
        return {
            user: self._user_sample(user, mbps, held_bytes[user]) for user, mbps in rates.items()
        }

    def _read_mbps(self, connection: Connection, elapsed_ns: int) -> float:
        before, connection.read_bytes = (
            connection.read_bytes,
            self.connections.read_bytes(connection),
        )
        return rate_mbps(connection.read_bytes - before, elapsed_ns)

    def _user_sample(self, user: str, mbps: float, held_bytes: int) -> UserSample:
        """Return the sample of a user, with the user's position if it is known. `held_bytes` is the
        largest amount of data that waited in the reorder buffers of the user's connections."""
        held_kb = held_bytes / 1000
        if user not in self.movement.places:
            return UserSample(mbps, held_back_kb=held_kb)
        x_m, y_m = self.movement.places[user]
        return UserSample(mbps, round(x_m, 2), round(y_m, 2), held_kb)

    # --- subflows

    def _subflow_samples(
        self, tiers: Mapping[tuple[str, str], int], elapsed_ns: int
    ) -> tuple[dict[str, SubflowSample], dict[str, dict[int, float]]]:
        """Return the sample of each subflow by its name. Also return, by access point and tier (1
        is primary, 2 secondary), the sum of the subflows' rates in Mb/s."""
        samples: dict[str, SubflowSample] = {}
        tier_mbps = {cell.ap: {1: 0.0, 2: 0.0} for cell in self.topology.cells}
        for name, connection, counters in self._established():
            counters.tier = tiers.get((connection.flow.user, counters.link), 1)
            samples[name] = sample = self._subflow_sample(connection, counters, elapsed_ns)
            for ap in tier_mbps.keys() & {counters.link, *counters.subflow.path}:
                tier_mbps[ap][counters.tier] += sample.mbps
        return samples, tier_mbps

    def _subflow_sample(
        self, connection: Connection, counters: SubflowCounters, elapsed_ns: int
    ) -> SubflowSample:
        s = counters.record
        rtt_ms = units.ms_from_ns(s.srtt_ns)
        counters.rtt_sum_ms, counters.samples = (
            counters.rtt_sum_ms + rtt_ms,
            counters.samples + 1,
        )
        backup = bool(s.backup)
        counters.backup_ns += elapsed_ns if backup else 0
        moves = self.movement.moves
        place = (connection.flow.user, counters.link) if moves else (None, None)
        last = counters.last
        if last and (last.tier, last.user, last.ap) == (counters.tier, *place):
            return last
        is_still = counters.subflow.is_forgotten and s.segments_received == counters.segments
        rate, out_of_order = self._receiver(connection, counters, elapsed_ns)
        sample = SubflowSample(
            round(rate, 4),
            int(s.cwnd),
            round(rtt_ms, 3),
            counters.tier,
            backup,
            _mbps(s.expected_bps or None),
            out_of_order,
            *place,
        )
        if is_still:
            counters.last = sample
        return sample

    def _receiver(
        self, connection: Connection, counters: SubflowCounters, elapsed_ns: int
    ) -> tuple[float, float]:
        """Return a subflow's rate at its receiver in Mb/s, and the fraction of segments that
        arrived out of order, both since the last sample."""
        received_bytes = self.connections.received_bytes(connection, counters)
        segments = counters.record.segments_received
        out_of_order = counters.record.segments_out_of_order
        rate = rate_mbps(received_bytes - counters.received_bytes, elapsed_ns)
        new, late = segments - counters.segments, out_of_order - counters.out_of_order
        counters.received_bytes = received_bytes
        counters.segments, counters.out_of_order = segments, out_of_order
        return rate, round(late / new, 5) if new else 0.0

    # --- links

    def _link_sample(self, link: Link, elapsed_ns: int) -> LinkSample:
        """Return what a link carried in both directions since the last sample. A link without rate,
        delay, jitter and loss has no queue, so all values of its sample are None."""
        toward_b, toward_a = (self.network.tables.links[link.id, end] for end in (link.b, link.a))
        if not any(
            hop.rate_bps or hop.delay_ns or hop.jitter_ns or hop.loss_ppm or hop.duplicate_ppm
            for hop in (toward_b, toward_a)
        ):
            return LinkSample()
        return LinkSample.of(
            self._direction(toward_b, elapsed_ns), self._direction(toward_a, elapsed_ns)
        )

    def _direction(self, hop: at.Hop, elapsed_ns: int) -> Direction:
        """Return what one direction of a link carried since the last sample."""
        backlog = self.network.queued(hop)
        now = [*self.network.sent(hop), hop.drops]
        before = self._links.get(hop, [0, 0, 0])
        self._links[hop] = now
        sent_bytes, sent, dropped = (a - b for a, b in zip(now, before, strict=True))
        return Direction.of(sent_bytes, sent, dropped, backlog, elapsed_ns / at.NS_PER_S)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else units.mbps_from_bps(rate_bps)
