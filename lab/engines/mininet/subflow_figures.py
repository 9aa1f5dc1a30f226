"""Compute the sample and the report of one subflow from the sockets at its two ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller import units
from lab.engines.mininet.datagram_end import DatagramEnd
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.run.frame import SubflowSample
from lab.run.report import SubflowReport
from lab.topologies.topology import Interface

ExpectedBps = Callable[[TcpSocket], int | None]  # rate limit of a sending socket; None without one


@dataclass
class Subflow:
    """Hold the latest sockets at both ends of a subflow, and the counters of the last sample."""

    number: int
    interface: Interface
    sender: TcpSocket | DatagramEnd | None = None
    receiver: TcpSocket | DatagramEnd | None = None
    received: int = 0
    segments: int = 0
    out_of_order: int = 0
    rtt_sum_ms: float = 0.0
    rtt_samples: int = 0
    backup_s: float = 0.0
    path: tuple[str, ...] = ()
    tier: int = 1


def fraction(late: int, subflows: Iterable[Subflow]) -> float:
    """Return `late` divided by the number of data segments that `subflows` have received."""
    segments = sum(subflow.segments for subflow in subflows)
    return round(late / segments, 5) if segments else 0.0


def rate_mbps(byte_count: int, elapsed_s: float) -> float:
    return max(0, byte_count) * 8 / elapsed_s / 1e6


def subflow_sample(
    subflow: Subflow, elapsed_s: float, user: str, expected_bps: ExpectedBps
) -> SubflowSample:
    sender, receiver = subflow.sender, subflow.receiver
    received = receiver.bytes_received if receiver else subflow.received
    segments = receiver.data_segments_in if receiver else subflow.segments
    late = receiver.out_of_order if receiver else subflow.out_of_order
    rate, arrived, late_now = (
        rate_mbps(received - subflow.received, elapsed_s),
        segments - subflow.segments,
        late - subflow.out_of_order,
    )
    subflow.received, subflow.segments, subflow.out_of_order = received, segments, late
    backup = bool(sender and sender.backup)
    rtt_ms = sender.rtt_ms if sender else None
    if rtt_ms is not None:
        subflow.rtt_sum_ms += rtt_ms
        subflow.rtt_samples += 1
    subflow.backup_s += elapsed_s if backup else 0.0
    return SubflowSample(
        mbps=round(rate, 4),
        cwnd=sender.cwnd if sender else None,
        rtt_ms=None if rtt_ms is None else round(rtt_ms, 3),
        tier=subflow.tier,
        backup=backup,
        expected_mbps=_mbps(expected_bps(sender)) if isinstance(sender, TcpSocket) else None,
        out_of_order=round(late_now / arrived, 5) if arrived > 0 else 0.0,
        user=user,
        ap=subflow.interface.link,
    )


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else round(units.mbps_from_bps(rate_bps), 4)


def _lost_segments(subflow: Subflow) -> int | None:
    """Return the number of lost data segments of a subflow: sent, minus arrived, minus in flight.

    Return None if the socket of either end is not known.
    """
    sender, receiver = subflow.sender, subflow.receiver
    if sender is None or receiver is None:
        return None
    arrived = receiver.data_segments_in
    return max(0, sender.data_segments_out - arrived - sender.in_flight)


def subflow_report(connection: str, subflow: Subflow, duration_s: float) -> SubflowReport:
    sender = subflow.sender
    return SubflowReport(
        id=f"{connection}/{subflow.number}",
        path=subflow.path or (subflow.interface.switch,),
        tier=subflow.tier,
        throughput_mbps=round(rate_mbps(subflow.received, duration_s), 4),
        rtt_ms_mean=round(subflow.rtt_sum_ms / subflow.rtt_samples, 3)
        if subflow.rtt_samples
        else None,
        segments=sender.data_segments_out if sender else None,
        out_of_order_segments=subflow.out_of_order,
        lost_segments=_lost_segments(subflow),
        retransmitted_segments=sender.retransmitted if sender else None,
        backup_s=round(subflow.backup_s, 3),
        cc=sender.cc if sender else None,
    )
