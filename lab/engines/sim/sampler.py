"""Frames and the report of a simulated network: counters, differenced, with the fields of the emulation.

Throughput is payload counted at the receiver: of a user what its application has read, in order; of a subflow what it
has received in order. Window and round trip are the sender's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controller import units
from lab.engines.sim.cells import Cells
from lab.engines.sim.core import layout as at
from lab.engines.sim.movement import Movement
from lab.engines.sim.network import Network
from lab.engines.sim.routes import Subflow
from lab.run.frame import (
    ApSample,
    Direction,
    Frame,
    LinkSample,
    SubflowSample,
    UserSample,
)
from lab.run.report import (
    ConnectionReport,
    MptcpCheck,
    MptcpVerdict,
    Report,
    SubflowReport,
    mptcp_verdict,
)
from lab.scenario.flows import Flow
from lab.topologies.topology import Link, Topology


@dataclass
class Seen:
    """A subflow's counters at the last sample, and its sums."""

    of: Subflow
    received: int = 0
    segments: int = 0
    late: int = 0
    rtt_sum_ms: float = 0.0
    looks: int = 0
    backup_ns: int = 0
    tier: int = 1

    @property
    def place(self) -> int:
        return self.of.place

    @property
    def link(self) -> str:
        """The link or access point of its user's end."""
        return self.of.ends.user.link


@dataclass
class Connection:
    """A connection that was started."""

    flow: Flow
    place: int
    cc: str | None  # of UDP
    subflows: list[Seen] = field(default_factory=list)
    read: int = 0
    is_complete: bool = False


class Sampler:
    """Turns tables into rates."""

    def __init__(
        self, topology: Topology, network: Network, cells: Cells, movement: Movement
    ) -> None:
        self.topology, self.network, self.cells, self.movement = topology, network, cells, movement
        self.connections: dict[str, Connection] = {}
        self._trunks = [link for link in topology.links if self._is_trunk(link)]
        self._sampled_ns = 0
        self._links: dict[int, list[int]] = {}

    def opened(self, flow: Flow, cc: str) -> None:
        """Know a connection from now on."""
        subflows = [Seen(each) for each in self.network.tables.subflows[flow.id]]
        law = None if flow.protocol == "udp" else cc
        self.connections[flow.id] = Connection(
            flow, self.network.tables.connections[flow.id], law, subflows
        )

    def frame(
        self,
        tiers: Mapping[tuple[str, str], int],
        occupancies: Mapping[str, float | None],
        limits_bps: Mapping[str, int | None],
    ) -> Frame:
        """Return one sample: the means since the last one."""
        now_ns = self.network.now_ns
        elapsed_ns, self._sampled_ns = now_ns - self._sampled_ns, now_ns
        users: dict[str, float] = {}
        subflows: dict[str, SubflowSample] = {}
        carried = {cell.ap: {1: 0.0, 2: 0.0} for cell in self.topology.cells}
        for name, connection in self.connections.items():
            user = connection.flow.user
            users[user] = round(users.get(user, 0.0) + self._read_mbps(connection, elapsed_ns), 4)
            for n, seen in enumerate(connection.subflows, 1):
                if not self._established(seen):
                    continue
                seen.tier = tiers.get((user, seen.link), 1)
                row = self._subflow_sample(connection, seen, elapsed_ns)
                subflows[f"{name}/{n}"] = row
                for ap in carried.keys() & {seen.link, *seen.of.way}:
                    carried[ap][seen.tier] += row.mbps
        return Frame(
            round(now_ns / at.NS_PER_S, 3),
            {
                cell.ap: ApSample(
                    round(carried[cell.ap][1], 4),
                    round(carried[cell.ap][2], 4),
                    _rounded(occupancies.get(cell.ap)),
                    _mbps(limits_bps.get(cell.ap)),
                    len(self.cells.at(cell.ap)),
                )
                for cell in self.topology.cells
            },
            {link.id: self._link_sample(link, elapsed_ns) for link in self._trunks},
            {user: self._user_sample(user, mbps) for user, mbps in users.items()},
            subflows,
        )

    def _user_sample(self, user: str, mbps: float) -> UserSample:
        """Return a user's rate with its position, where it has one."""
        if user not in self.movement.places:
            return UserSample(mbps)
        x_m, y_m = self.movement.places[user]
        return UserSample(mbps, round(x_m, 2), round(y_m, 2))

    def completed(self) -> Iterator[Flow]:
        """Yield each connection whose file is complete, once."""
        for connection in self.connections.values():
            done = self.network.w.row[connection.place + at.DONE_NS] > 0
            if done and not connection.is_complete:
                connection.is_complete = True
                yield connection.flow

    def _is_trunk(self, link: Link) -> bool:
        """Between two switches, by cable."""
        ends = (*self.topology.ids("user", "server"), *self.topology.relays)
        return link.a not in ends and link.b not in ends

    def _established(self, seen: Seen) -> bool:
        return int(self.network.w.row[seen.place + at.STATE]) in (at.ESTABLISHED, at.CLOSED)

    def _read_bytes(self, connection: Connection) -> int:
        row, c = self.network.w.row, connection.place
        return min(
            int(row[c + at.DATA_RCV_NXT]) * int(row[c + at.SEGMENT_BYTES]),
            int(row[c + at.VOLUME_BYTES]),
        )

    def _read_mbps(self, connection: Connection, elapsed_ns: int) -> float:
        before, connection.read = connection.read, self._read_bytes(connection)
        return _rate_mbps(connection.read - before, elapsed_ns)

    def _subflow_sample(self, connection: Connection, seen: Seen, elapsed_ns: int) -> SubflowSample:
        w, f = self.network.w, seen.place
        received = int(w.row[f + at.RCV_NXT]) * int(w.row[connection.place + at.SEGMENT_BYTES])
        segments, late = (
            int(w.row[f + at.SEGMENTS_RECEIVED]),
            int(w.row[f + at.SEGMENTS_OUT_OF_ORDER]),
        )
        rate = _rate_mbps(received - seen.received, elapsed_ns)
        arrived, late_now = segments - seen.segments, late - seen.late
        seen.received, seen.segments, seen.late = received, segments, late
        rtt_ms = units.ms_from_ns(int(w.row[f + at.SRTT_NS]))
        seen.rtt_sum_ms, seen.looks = seen.rtt_sum_ms + rtt_ms, seen.looks + 1
        backup, expected_bps = bool(w.row[f + at.BACKUP]), int(w.row[f + at.EXPECTED_BPS])
        seen.backup_ns += elapsed_ns if backup else 0
        moves = bool(self.movement.walkers)
        return SubflowSample(
            round(rate, 4),
            int(w.window[f + at.CWND]),
            round(rtt_ms, 3),
            seen.tier,
            backup,
            _mbps(expected_bps or None),
            round(late_now / arrived, 5) if arrived else 0.0,
            connection.flow.user if moves else None,
            seen.link if moves else None,
        )

    def _link_sample(self, link: Link, elapsed_ns: int) -> LinkSample:
        """Return what a shaped link carried; an unshaped one has no queue to read."""
        toward_b, toward_a = (self.network.tables.links[link.id, end] for end in (link.b, link.a))
        shape = (at.RATE_BPS, at.DELAY_NS, at.JITTER_NS, at.LOSS_PPM)
        if not any(self.network.hop(hop, each) for hop in (toward_b, toward_a) for each in shape):
            return LinkSample()
        return LinkSample.of(
            self._direction(toward_b, elapsed_ns), self._direction(toward_a, elapsed_ns)
        )

    def _direction(self, hop: int, elapsed_ns: int) -> Direction:
        """Return what one direction of a link carried since the last sample."""
        counters = (at.OUT_BYTES, at.OUT_PACKETS, at.DROPS)
        now = [self.network.hop(hop, each) for each in counters]
        before = self._links.get(hop, [0, 0, 0])
        self._links[hop] = now
        sent_bytes, sent, dropped = (a - b for a, b in zip(now, before, strict=True))
        backlog = self.network.queued(hop)
        return Direction.of(sent_bytes, sent, dropped, backlog, elapsed_ns / at.NS_PER_S)

    def report(self) -> Report:
        """Return what the run's result needs beside its samples."""
        elapsed_ns = max(1, self.network.now_ns)
        laws = {each.cc for each in self.connections.values() if each.cc}
        return Report(
            tuple(self._report(name, each, elapsed_ns) for name, each in self.connections.items()),
            self._verdict(),
            "+".join(sorted(laws)) or None,
        )

    def _report(self, name: str, connection: Connection, elapsed_ns: int) -> ConnectionReport:
        row, c = self.network.w.row, connection.place
        done_ns, started_ns = int(row[c + at.DONE_NS]), int(row[c + at.STARTED_NS])
        segments = sum(int(row[each.place + at.SEGMENTS_RECEIVED]) for each in connection.subflows)
        joined = [
            (n, each) for n, each in enumerate(connection.subflows, 1) if self._established(each)
        ]
        return ConnectionReport(
            id=name,
            user=connection.flow.user,
            throughput_mbps=round(_rate_mbps(self._read_bytes(connection), elapsed_ns), 4),
            completion_s=round((done_ns - started_ns) / at.NS_PER_S, 6) if done_ns else None,
            out_of_order_fraction=round(int(row[c + at.DATA_OUT_OF_ORDER]) / segments, 5)
            if segments
            else 0.0,
            receive_buffer_max_bytes=int(row[c + at.REORDER_BUFFERED_MAX])
            * int(row[c + at.SEGMENT_BYTES]),
            subflows=tuple(
                self._subflow_report(f"{name}/{n}", connection, each, elapsed_ns)
                for n, each in joined
            ),
        )

    def _subflow_report(
        self, name: str, connection: Connection, seen: Seen, elapsed_ns: int
    ) -> SubflowReport:
        row, f = self.network.w.row, seen.place
        received = int(row[f + at.RCV_NXT]) * int(row[connection.place + at.SEGMENT_BYTES])
        return SubflowReport(
            id=name,
            path=tuple(seen.of.way),
            tier=seen.tier,
            throughput_mbps=round(_rate_mbps(received, elapsed_ns), 4),
            rtt_ms_mean=round(seen.rtt_sum_ms / seen.looks, 3) if seen.looks else None,
            segments=int(row[f + at.SEGMENTS_SENT]),
            out_of_order_segments=int(row[f + at.SEGMENTS_OUT_OF_ORDER]),
            lost_segments=int(row[f + at.SEGMENTS_DROPPED]),
            retransmitted_segments=int(row[f + at.SEGMENTS_RETRANSMITTED]),
            backup_s=round(seen.backup_ns / at.NS_PER_S, 3),
            cc=connection.cc,
        )

    def _verdict(self) -> MptcpVerdict:
        """Judge every connection of a multipath user."""
        meant = [
            each
            for each in self.connections.values()
            if each.cc and each.flow.user in self.topology.multipath
        ]
        granted = self.network.tables.multipath.server_enabled
        up = {each.flow.id: sum(map(self._established, each.subflows)) for each in meant}
        checks = [
            MptcpCheck(each.flow.id, granted, up[each.flow.id], len(each.subflows))
            for each in meant
        ]
        joins = sum(max(0, count - 1) for count in up.values())
        return mptcp_verdict(checks, joins, 0 if granted else len(meant))


def _rate_mbps(byte_count: int, elapsed_ns: int) -> float:
    return max(0, byte_count) * 8000 / elapsed_ns if elapsed_ns else 0.0


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else units.mbps_from_bps(rate_bps)
