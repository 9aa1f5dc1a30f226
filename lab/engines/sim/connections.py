"""The connections that were started in a run, and their counters, which are read from the tables of
the simulated network (`core.layout`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.engines.sim.core import dispatch
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import Subflow
from lab.scenario.flows import Flow


@dataclass
class SubflowCounters:
    """A subflow, and its counters when it was last sampled.

    `received_bytes` counts bytes in order, `segments` all segments that arrived, and `out_of_order`
    those of them that were out of order. `rtt_sum_ms` is the sum of the RTTs of all samples,
    `samples` their number. `backup_ns` is the time that the subflow was a backup.
    """

    subflow: Subflow
    received_bytes: int = 0
    segments: int = 0
    out_of_order: int = 0
    rtt_sum_ms: float = 0.0
    samples: int = 0
    backup_ns: int = 0
    tier: int = 1

    @property
    def place(self) -> int:
        """The index of the subflow's first field in the integer table (`core.layout`)."""
        return self.subflow.place

    @property
    def link(self) -> str:
        """The id of the link or access point at the user's end of the subflow."""
        return self.subflow.ends.user.link


@dataclass
class Connection:
    """A connection that was started.

    `place` is the index of its first field in the integer table (`core.layout`). `cc` is its
    congestion control, None for UDP. `read_bytes` is what the receiving application had read at the
    last sample; `is_complete` says whether its whole file was transferred by then.
    """

    flow: Flow
    place: int
    cc: str | None
    subflows: list[SubflowCounters] = field(default_factory=list)
    read_bytes: int = 0
    is_complete: bool = False


class Connections(dict[str, Connection]):
    """Started connections by flow id, and access to their counters in the integer table
    (`core.layout`)."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    def add(self, flow: Flow, cc: str) -> None:
        tables = self._network.tables
        self[flow.id] = Connection(
            flow,
            tables.connections[flow.id],
            None if flow.protocol == "udp" else cc,
            [SubflowCounters(each) for each in tables.subflows[flow.id]],
        )

    def set_cc(self, cc: str) -> None:
        """Change the congestion control of all open TCP connections.

        As in Linux, subflows keep their windows, and the new congestion control starts without any
        state.
        """
        for connection in self.values():
            is_running = self.count(connection.place, at.CONN_STATE) == at.RUNNING
            if connection.cc is None or not is_running or self.count(connection.place, at.DONE_NS):
                continue
            connection.cc, w = cc, self._network.w
            for each in connection.subflows:
                w.row[each.place + at.LAW] = dispatch.number(cc)
                w.row[each.place + at.EPOCH_NS] = 0
                for own in range(at.LAW_1, at.LAW_6 + 1):
                    w.window[each.place + own] = 0.0

    def count(self, place: int, counter: int) -> int:
        """Return one counter of the connection or subflow at index `place` of the integer table.
        `counter` is a constant of `core.layout`, such as SEGMENTS_SENT."""
        return int(self._network.w.row[place + counter])

    def is_established(self, subflow: SubflowCounters) -> bool:
        """Return True if the subflow is established or was closed, False if it is idle or in its
        handshake."""
        return self.count(subflow.place, at.STATE) in (at.ESTABLISHED, at.CLOSED)

    def read_bytes(self, connection: Connection) -> int:
        """Return how many bytes the receiving application of a connection has read in order since
        the start."""
        c = connection.place
        segments, size = self.count(c, at.DATA_RCV_NXT), self.count(c, at.SEGMENT_BYTES)
        return min(segments * size, self.count(c, at.VOLUME_BYTES))

    def take_held_back_bytes(self, connection: Connection) -> int:
        """Return the largest size in bytes that the connection's reorder buffer had since the last
        call."""
        c, row = connection.place, self._network.w.row
        segments, size = self.count(c, at.REORDER_BUFFERED_RECENT), self.count(c, at.SEGMENT_BYTES)
        row[c + at.REORDER_BUFFERED_RECENT] = row[c + at.REORDER_BUFFERED]
        return segments * size

    def received_bytes(self, connection: Connection, subflow: SubflowCounters) -> int:
        """Return the payload in bytes that a subflow has received in order since the start.
        `connection` must be the connection of the subflow."""
        segments = self.count(subflow.place, at.RCV_NXT)
        return segments * self.count(connection.place, at.SEGMENT_BYTES)


def rate_mbps(byte_count: int, elapsed_ns: int) -> float:
    """Return the mean rate in Mb/s; 0 if no time has passed or the count is negative."""
    return max(0, byte_count) * 8000 / elapsed_ns if elapsed_ns else 0.0
