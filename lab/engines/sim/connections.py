"""Hold the connections that were started in a run, and read their counters from the tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import Subflow
from lab.scenario.flows import Flow


@dataclass
class SubflowCounters:
    """Hold the counters of a subflow at the last sample, and sums over all samples.

    `rtt_sum_ms` is the sum of the RTTs in `samples` samples, `backup_ns` the time for which it was
    a backup.
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
        """Return the place of the subflow's row in the integer table (`core.layout`)."""
        return self.subflow.place

    @property
    def link(self) -> str:
        """Return the link or access point to which the user's end of the subflow is attached."""
        return self.subflow.ends.user.link


@dataclass
class Connection:
    """Hold a connection that was started.

    `place` is the place of its row in the integer table, `cc` its congestion control (None for
    UDP), `read_bytes` the bytes that the receiving application had read at the last sample.
    """

    flow: Flow
    place: int
    cc: str | None
    subflows: list[SubflowCounters] = field(default_factory=list)
    read_bytes: int = 0
    is_complete: bool = False


class Connections(dict[str, Connection]):
    """Map flow IDs to the connections that were started, and read their
    counters from the tables."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    def add(self, flow: Flow, cc: str) -> None:
        """Add the connection of a flow that has just started; `cc` is its congestion control."""
        tables = self._network.tables
        self[flow.id] = Connection(
            flow,
            tables.connections[flow.id],
            None if flow.protocol == "udp" else cc,
            [SubflowCounters(each) for each in tables.subflows[flow.id]],
        )

    def count(self, place: int, counter: int) -> int:
        """Return the field `counter` (a constant of `core.layout`) of the row at `place` in the
        integer table."""
        return int(self._network.w.row[place + counter])

    def is_established(self, subflow: SubflowCounters) -> bool:
        """Return whether a subflow is established or has been closed. A subflow in its handshake is
        not."""
        return self.count(subflow.place, at.STATE) in (at.ESTABLISHED, at.CLOSED)

    def read_bytes(self, connection: Connection) -> int:
        """Return how many bytes the application at the receiver has read in
        order since the start."""
        c = connection.place
        segments, size = self.count(c, at.DATA_RCV_NXT), self.count(c, at.SEGMENT_BYTES)
        return min(segments * size, self.count(c, at.VOLUME_BYTES))

    def received_bytes(self, connection: Connection, subflow: SubflowCounters) -> int:
        """Return how many bytes a subflow has received in order since the start."""
        segments = self.count(subflow.place, at.RCV_NXT)
        return segments * self.count(connection.place, at.SEGMENT_BYTES)


def rate_mbps(byte_count: int, elapsed_ns: int) -> float:
    """Return the mean rate of `byte_count` bytes in `elapsed_ns`, in Mb/s; 0 if no time has passed
    or the count is negative."""
    return max(0, byte_count) * 8000 / elapsed_ns if elapsed_ns else 0.0
