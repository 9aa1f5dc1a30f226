"""Frames and the report of a simulated network: counters, differenced, with the fields of the emulation.

Throughput is payload counted at the receiver: of a user what its application has read, in order; of a subflow what it
has received in order. Window and round trip are the sender's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

from controller import units
from lab.engines.sim.cells import Cells
from lab.engines.sim.core import layout as at
from lab.engines.sim.movement import Movement
from lab.engines.sim.network import Network
from lab.engines.sim.routes import Subflow
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


class Sampler:
    """Turns tables into rates."""

    def __init__(
        self, topology: Topology, network: Network, cells: Cells, movement: Movement
    ) -> None:
        self.topology, self.network, self.cells, self.movement = topology, network, cells, movement
        self.connections: dict[str, Connection] = {}
        self._trunks = [link for link in topology.links if self._is_trunk(link)]
        self._sampled_ns = 0
        self._links: dict[str, tuple[int, int, int]] = {}

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
    ) -> dict[str, Any]:
        """One sample: the means since the last."""
        now_ns = self.network.now_ns
        elapsed_ns, self._sampled_ns = now_ns - self._sampled_ns, now_ns
        users: dict[str, dict[str, float]] = {}
        subflows: dict[str, dict[str, Any]] = {}
        carried = {cell.ap: {1: 0.0, 2: 0.0} for cell in self.topology.cells}
        for name, connection in self.connections.items():
            user = users.setdefault(connection.flow.user, {"mbps": 0.0})
            user["mbps"] = round(user["mbps"] + self._read_mbps(connection, elapsed_ns), 4)
            for n, seen in enumerate(connection.subflows, 1):
                if not self._established(seen):
                    continue
                seen.tier = tiers.get((connection.flow.user, seen.link), 1)
                row = subflows[f"{name}/{n}"] = self._subflow_row(connection, seen, elapsed_ns)
                for ap in carried.keys() & {seen.link, *seen.of.way}:
                    carried[ap][seen.tier] += row["mbps"]
                if self.movement.walkers:
                    row |= {"user": connection.flow.user, "ap": seen.link}
        for name, (x_m, y_m) in self.movement.places.items():
            if name in users:
                users[name] |= {"x_m": round(x_m, 2), "y_m": round(y_m, 2)}
        return {
            "t": round(now_ns / at.NS_PER_S, 3),
            "ap": {
                cell.ap: _ap_row(
                    self.cells.at(cell.ap),
                    carried[cell.ap],
                    occupancies.get(cell.ap),
                    limits_bps.get(cell.ap),
                )
                for cell in self.topology.cells
            },
            "link": {link.id: self._link_row(link.id, link.b, elapsed_ns) for link in self._trunks},
            "user": users,
            "sf": subflows,
        }

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

    def _subflow_row(self, connection: Connection, seen: Seen, elapsed_ns: int) -> dict[str, Any]:
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
        return {
            "mbps": round(rate, 4),
            "cwnd": int(w.window[f + at.CWND]),
            "rtt_ms": round(rtt_ms, 3),
            "tier": seen.tier,
            "backup": backup,
            "expected_mbps": _mbps(expected_bps or None),
            "out_of_order": round(late_now / arrived, 5) if arrived else 0.0,
        }

    def _link_row(self, link: str, towards: str, elapsed_ns: int) -> dict[str, Any]:
        """What left a shaped link towards the users; an unshaped one has no queue to read."""
        place = self.network.tables.links[link, towards]
        read = (at.RATE_BPS, at.DELAY_NS, at.JITTER_NS, at.LOSS_PPM)
        if not any(self.network.hop(place, each) for each in read):
            return {"mbps": None, "backlog": None, "loss": None}
        now = tuple(
            self.network.hop(place, each) for each in (at.OUT_BYTES, at.OUT_PACKETS, at.DROPS)
        )
        before = self._links.get(link, (0, 0, 0))
        self._links[link] = (now[0], now[1], now[2])
        sent, dropped = now[1] - before[1], now[2] - before[2]
        return {
            "mbps": round(_rate_mbps(now[0] - before[0], elapsed_ns), 4),
            "backlog": self.network.queued(place),
            "loss": round(dropped / (sent + dropped), 5) if sent + dropped else 0.0,
        }

    def report(self) -> dict[str, Any]:
        """What the run's result needs beside its samples."""
        elapsed_ns = max(1, self.network.now_ns)
        laws = {each.cc for each in self.connections.values() if each.cc}
        return {
            "connections": [
                self._connection(name, each, elapsed_ns) for name, each in self.connections.items()
            ],
            "mptcp": self._verdict(),
            "cc": "+".join(sorted(laws)) or None,
            "overload": {"overloaded": False, "reasons": []},
        }

    def _connection(self, name: str, connection: Connection, elapsed_ns: int) -> dict[str, Any]:
        row, c = self.network.w.row, connection.place
        done_ns, started_ns = int(row[c + at.DONE_NS]), int(row[c + at.STARTED_NS])
        segments = sum(
            int(self.network.w.row[each.place + at.SEGMENTS_RECEIVED])
            for each in connection.subflows
        )
        joined = [
            (n, each) for n, each in enumerate(connection.subflows, 1) if self._established(each)
        ]
        return {
            "id": name,
            "user": connection.flow.user,
            "throughput_mbps": round(_rate_mbps(self._read_bytes(connection), elapsed_ns), 4),
            "completion_s": round((done_ns - started_ns) / at.NS_PER_S, 6) if done_ns else None,
            "out_of_order_fraction": round(int(row[c + at.DATA_OUT_OF_ORDER]) / segments, 5)
            if segments
            else 0.0,
            "receive_buffer_max_bytes": int(row[c + at.REORDER_BUFFERED_MAX])
            * int(row[c + at.SEGMENT_BYTES]),
            "subflows": [
                self._subflow(f"{name}/{n}", connection, each, elapsed_ns) for n, each in joined
            ],
        }

    def _subflow(
        self, name: str, connection: Connection, seen: Seen, elapsed_ns: int
    ) -> dict[str, Any]:
        row, f = self.network.w.row, seen.place
        received = int(row[f + at.RCV_NXT]) * int(
            self.network.w.row[connection.place + at.SEGMENT_BYTES]
        )
        return {
            "id": name,
            "path": list(seen.of.way),
            "tier": seen.tier,
            "throughput_mbps": round(_rate_mbps(received, elapsed_ns), 4),
            "rtt_ms_mean": round(seen.rtt_sum_ms / seen.looks, 3) if seen.looks else None,
            "segments": int(row[f + at.SEGMENTS_SENT]),
            "out_of_order_segments": int(row[f + at.SEGMENTS_OUT_OF_ORDER]),
            "lost_segments": int(row[f + at.SEGMENTS_DROPPED]),
            "retransmitted_segments": int(row[f + at.SEGMENTS_RETRANSMITTED]),
            "backup_s": round(seen.backup_ns / at.NS_PER_S, 3),
            "cc": connection.cc,
        }

    def _verdict(self) -> dict[str, Any]:
        """Every connection of a multipath user must be Multipath TCP, with a subflow on each address."""
        meant = [
            each
            for each in self.connections.values()
            if each.cc and each.flow.user in self.topology.multipath
        ]
        joins = sum(max(0, sum(map(self._established, each.subflows)) - 1) for each in meant)
        granted = self.network.tables.multipath.server_enabled
        why = [] if granted else [f"{each.flow.id} is plain TCP" for each in meant]
        for each in meant:
            up = sum(map(self._established, each.subflows))
            if granted and up < len(each.subflows):
                why.append(f"{each.flow.id} has {up} of {len(each.subflows)} subflows")
        fallbacks = 0 if granted else len(meant)
        return {
            "verified": not why if meant else None,
            "joins": joins,
            "fallbacks": fallbacks,
            "why": "; ".join(why) or None,
        }


def _ap_row(
    stations: Sized, carried: Mapping[int, float], occupancy: float | None, limit_bps: int | None
) -> dict[str, Any]:
    return {
        "tier1_mbps": round(carried[1], 4),
        "tier2_mbps": round(carried[2], 4),
        "mac_occupancy": _rounded(occupancy),
        "meter_mbps": _mbps(limit_bps),
        "stations": len(stations),
    }


def _rate_mbps(byte_count: int, elapsed_ns: int) -> float:
    return max(0, byte_count) * 8000 / elapsed_ns if elapsed_ns else 0.0


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else units.mbps_from_bps(rate_bps)
