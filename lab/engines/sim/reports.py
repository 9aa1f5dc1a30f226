"""Report a simulated run when it ends: its connections, their subflows, and whether the connections
were Multipath TCP."""

from __future__ import annotations

from lab.engines.sim.connections import Connection, Connections, SubflowCounters, rate_mbps
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.run.report import (
    ConnectionReport,
    MptcpCheck,
    MptcpVerdict,
    Report,
    SubflowReport,
    mptcp_verdict,
)


def report(network: Network, connections: Connections) -> Report:
    """Return the report of a run that has ended: its connections and subflows, the Multipath TCP
    verdict, and the names of the congestion controls that were used, joined by "+"."""
    elapsed_ns = max(1, network.now_ns)
    laws = {each.cc for each in connections.values() if each.cc}
    return Report(
        tuple(_connection(connections, each, elapsed_ns) for each in connections.values()),
        _verdict(network, connections),
        "+".join(sorted(laws)) or None,
    )


def _connection(
    connections: Connections, connection: Connection, elapsed_ns: int
) -> ConnectionReport:
    def count(field: int) -> int:
        return connections.count(connection.place, field)

    done_ns, started_ns, subflows = count(at.DONE_NS), count(at.STARTED_NS), connection.subflows
    segments = sum(connections.count(each.place, at.SEGMENTS_RECEIVED) for each in subflows)
    return ConnectionReport(
        id=connection.flow.id,
        user=connection.flow.user,
        throughput_mbps=round(rate_mbps(connections.read_bytes(connection), elapsed_ns), 4),
        completion_s=round((done_ns - started_ns) / at.NS_PER_S, 6) if done_ns else None,
        out_of_order_fraction=round(count(at.DATA_OUT_OF_ORDER) / segments, 5) if segments else 0.0,
        receive_buffer_max_bytes=count(at.REORDER_BUFFERED_MAX) * count(at.SEGMENT_BYTES),
        subflows=tuple(
            _subflow(connections, connection, number, elapsed_ns)
            for number, each in enumerate(subflows, 1)
            if connections.is_established(each)
        ),
    )


def _subflow(
    connections: Connections, connection: Connection, number: int, elapsed_ns: int
) -> SubflowReport:
    subflow: SubflowCounters = connection.subflows[number - 1]
    received_bytes = connections.received_bytes(connection, subflow)

    def count(field: int) -> int:
        return connections.count(subflow.place, field)

    return SubflowReport(
        id=f"{connection.flow.id}/{number}",
        path=tuple(subflow.subflow.path),
        tier=subflow.tier,
        throughput_mbps=round(rate_mbps(received_bytes, elapsed_ns), 4),
        rtt_ms_mean=round(subflow.rtt_sum_ms / subflow.samples, 3) if subflow.samples else None,
        segments=count(at.SEGMENTS_SENT),
        out_of_order_segments=count(at.SEGMENTS_OUT_OF_ORDER),
        lost_segments=count(at.SEGMENTS_DROPPED),
        retransmitted_segments=count(at.SEGMENTS_RETRANSMITTED),
        backup_s=round(subflow.backup_ns / at.NS_PER_S, 3),
        cc=connection.cc,
    )


def _verdict(network: Network, connections: Connections) -> MptcpVerdict:
    """Return the verdict on the TCP connections of users with Multipath TCP: whether each used
    Multipath TCP, and how many of its subflows were established."""
    multipath = network.tables.topology.multipath
    meant = [each for each in connections.values() if each.cc and each.flow.user in multipath]
    is_mptcp = network.tables.multipath.server_enabled
    checks = [
        MptcpCheck(
            each.flow.id,
            is_mptcp,
            sum(map(connections.is_established, each.subflows)),
            len(each.subflows),
        )
        for each in meant
    ]
    joins = sum(max(0, each.subflows - 1) for each in checks)
    return mptcp_verdict(checks, joins, 0 if is_mptcp else len(meant))
