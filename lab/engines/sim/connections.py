"""The connections that were started in a simulation, and their counters. The counters are read from
the records of the simulated network (`core.state`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.congestion import NEEDS_ECN
from lab.engines.sim.core import congestion, dispatch
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import Subflow
from lab.frame import SubflowSample
from lab.scenario.flows import Flow


@dataclass(slots=True)
class SubflowCounters:
    """A subflow, and its counters at the time of the last sample.

    `received_bytes` counts payload that arrived in order. `segments` counts all segments that
    arrived, `out_of_order` only those that arrived out of order. `samples` is the number of samples
    so far, and `rtt_sum_ms` is the sum of the RTTs in these samples. `backup_ns` is the time for
    which the subflow was a backup. `tier` is 1 at the user's primary access point, and 2 at another
    one. `last` is the last sample of a subflow that has been forgotten, whose next one is equal if
    nothing changes.
    """

    subflow: Subflow
    received_bytes: int = 0
    segments: int = 0
    out_of_order: int = 0
    rtt_sum_ms: float = 0.0
    samples: int = 0
    backup_ns: int = 0
    tier: int = 1
    last: SubflowSample | None = None

    @property
    def record(self) -> at.Subflow:
        return self.subflow.record

    @property
    def link(self) -> str:
        """The id of the wired link or access point to which the user's end of the subflow is
        connected."""
        return self.subflow.ends.user.link


@dataclass(slots=True)
class Connection:
    """A connection that was started.

    `record` is its state in the packet core (`core.state`). `cc` is its congestion control, or None
    for UDP. `read_bytes` is how many bytes the receiving application had read at the last sample.
    `is_complete` is True if its whole file had been transferred by then. `is_left_out` is True if
    its subflows are in no further sample.
    """

    flow: Flow
    record: at.Connection
    cc: str | None
    subflows: list[SubflowCounters] = field(default_factory=list)
    read_bytes: int = 0
    is_complete: bool = False
    is_left_out: bool = False


class Connections(dict[str, Connection]):
    """The connections that were started, by flow id. Their counters are read from their records."""

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

    def joined(self, flow: Flow, subflow: Subflow) -> None:
        """Count one more subflow of a connection. It may not have started yet."""
        if flow.id in self:
            self[flow.id].subflows.append(SubflowCounters(subflow))

    def forget(self, flow_id: str) -> None:
        """Read the counters of a connection from a copy from now on (`Tables.forget`)."""
        if flow_id in self:
            self[flow_id].record = self._network.tables.connections[flow_id]

    def set_cc(self, cc: str) -> None:
        """Change the congestion control of all open TCP connections.

        As in Linux, subflows keep their congestion windows. The state of the old congestion control
        is discarded. A connection that has begun without ECN does not get it.
        """
        for connection in self.values():
            is_over = connection.record.state == at.CLOSED or connection.record.done_ns
            if connection.cc is None or is_over:
                continue
            connection.cc = cc
            connection.record.is_dctcp = int(cc in NEEDS_ECN and connection.record.is_ecn == 1)
            for each in connection.subflows:
                s = each.record
                s.law_number, s.epoch_ns = dispatch.number(cc), 0
                for name in at.LawState.__annotations__:
                    setattr(s.law, name, 0.0)
                congestion.begin(s, self._network.now_ns)

    def is_established(self, subflow: SubflowCounters) -> bool:
        """Return True if the server has accepted the subflow, which may be closed by now."""
        return subflow.record.server == at.ACCEPTED

    def is_missing(self, subflow: SubflowCounters) -> bool:
        """Return True if the user has repeated its request to open the subflow, in vain."""
        s = subflow.record
        return not self.is_established(subflow) and s.client_tries > 1

    def read_bytes(self, connection: Connection) -> int:
        """Return how many bytes the receiving application of a connection has read since the
        start."""
        c = connection.record
        return min(c.data_rcv_nxt * c.segment_bytes, c.volume_bytes)

    def take_held_back_bytes(self, connection: Connection) -> int:
        """Return the largest size in bytes that the reorder buffer of a connection has had since
        the last call for this connection."""
        c = connection.record
        segments, c.reorder_buffered_recent = c.reorder_buffered_recent, c.reorder_buffered
        return segments * c.segment_bytes

    def received_bytes(self, connection: Connection, subflow: SubflowCounters) -> int:
        """Return the payload in bytes that a subflow has received in order since the start.
        `connection` must be the connection of the subflow."""
        return subflow.record.rcv_nxt * connection.record.segment_bytes


def rate_mbps(byte_count: int, elapsed_ns: int) -> float:
    """Return the mean rate in Mb/s; 0 if no time has passed or the count is negative."""
    return max(0, byte_count) * 8000 / elapsed_ns if elapsed_ns else 0.0
