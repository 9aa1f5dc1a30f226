"""Compute samples of users and subflows from the counters of the kernel's sockets.

Rates are differences of counters between two samples. Throughput is the rate of payload at the
receiver. For a user, it counts the bytes that the application has read; for a subflow, the bytes
that the socket has received. Congestion window and round-trip time are those of the sender. A
connection has the ID of its flow, such as `ue2-1`. The controller numbers the subflows of a
connection from 1, in the order in which they joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controller import paths, units
from lab.engines.mininet.kernel.subflow_rates import UNLIMITED, pacing_rate_bps
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.frame import SubflowSample, UserSample
from lab.run.report import ConnectionReport, SubflowReport
from lab.scenario.clients import Done, Quality
from lab.scenario.flows import Flow
from lab.topologies.topology import Interface, Wiring

Endpoint = tuple[str, int]
SERVER_PORT = 5001
UDP = 17


@dataclass(frozen=True)
class OpenedFlow:
    """A flow of a user that has an open connection.

    - `endpoint`: address and port of the user
    - `direction`: direction of the data, "down" or "up"
    - `receiver`: host that receives the data
    - `path`: switches from the server to the user; empty if the controller chooses the path later
    - `is_one_of_many`: once complete, it is in no further sample
    """

    id: str
    user: str
    endpoint: Endpoint
    direction: str
    multipath: bool
    receiver: str = ""
    path: tuple[str, ...] = ()
    protocol: str = "tcp"
    is_one_of_many: bool = False


@dataclass
class Connection:
    """The connection of a flow, with its subflows. The key of a subflow is the user's endpoint.

    `token` is the server's MPTCP token. It is None until it is known, and always for plain TCP.
    """

    opened: OpenedFlow
    token: int | None = None
    subflows: dict[Endpoint, Subflow] = field(default_factory=dict)
    received: int = 0
    completion_s: float | None = None
    receive_buffer_max_bytes: int | None = None
    done: list[Done] = field(default_factory=list)  # exchanges
    told: int = 0  # how many of these `take_exchanges` has returned
    waiting: list[tuple[float, int]] = field(default_factory=list)
    quality: Quality | None = None  # of a video
    delays_ms: dict[int, float] = field(default_factory=dict)  # of a call, by the datagram's number


@dataclass(frozen=True)
class HostSamples:
    """Samples of all users, by name, and of all subflows, by ID such as `ue2-1/1`.

    `tier_mbps[link][tier]` is the throughput [Mb/s] of one tier on a link or at an access point.
    Tier 1 are the primary subflows, tier 2 the secondary subflows. If a subflow passes a relay (a
    switch with a radio), it counts at every access point on its path.
    """

    tier_mbps: Mapping[str, Mapping[int, float]]
    users: Mapping[str, UserSample]
    subflows: Mapping[str, SubflowSample]


class Sampler:
    """Computes the throughput of subflows, users and tiers from the sockets of all hosts.

    Tier 1 are the primary subflows, tier 2 the secondary subflows.
    """

    def __init__(self, wiring: Wiring, expected_bps: ExpectedBps = pacing_rate_bps) -> None:
        """`expected_bps` returns the rate limit [bit/s] of a subflow, given its sending socket."""
        self._expected_bps = expected_bps
        self.interface = {
            address: each for each in wiring.interfaces for address in (each.address, *each.further)
        }
        self._relayed = {each.link for each in wiring.relays}
        self._routed: dict[Endpoint, tuple[int, tuple[str, ...]]] = {}
        self.connections: dict[str, Connection] = {}
        self._complete: set[str] = set()

    def open(self, opened: OpenedFlow) -> None:
        """Include the connection of this flow in all following samples."""
        connection = self.connections[opened.id] = Connection(opened)
        if opened.protocol == "udp":  # it has no TCP socket from which it would become known
            interface = self.interface[opened.endpoint[0]]
            connection.subflows[opened.endpoint] = Subflow(1, interface, path=opened.path)

    def routed(self, endpoint: Endpoint, number: int, path: tuple[str, ...]) -> None:
        """Set the number and the path that the controller has chosen for a subflow.

        `endpoint` is the address and port of the subflow at the user.
        """
        self._routed[endpoint] = (number, path)

    def handed_over(self, interface: Interface) -> None:
        """After a user has moved to a new access point, count the user's subflows at the new one.

        `interface` is the user's interface with its new access point.
        """
        for address in (interface.address, *interface.further):
            self.interface[address] = interface
        for connection in self.connections.values():
            for (address, _port), subflow in connection.subflows.items():
                subflow.interface = self.interface[address]

    def take(self, server: Iterable[TcpSocket], users: Iterable[TcpSocket]) -> None:
        at_user = {each.source: each for each in users if each.destination[1] == SERVER_PORT}
        at_server = [each for each in server if each.source[1] == SERVER_PORT]
        by_endpoint = {
            connection.opened.endpoint: connection for connection in self.connections.values()
        }
        by_token = {
            connection.token: connection
            for connection in self.connections.values()
            if connection.token is not None
        }
        joined = []
        for each in at_server:
            connection = by_endpoint.get(each.destination)
            if connection is None:
                joined.append(each)
                continue
            if each.token is not None:
                connection.token = each.token
                by_token[each.token] = connection
            self._place(connection, each, at_user.get(each.destination))
        for each in sorted(joined, key=lambda one: one.destination):
            if each.token in by_token:
                self._place(by_token[each.token], each, at_user.get(each.destination))

    def _place(self, connection: Connection, server: TcpSocket, user: TcpSocket | None) -> None:
        endpoint = server.destination
        subflow = connection.subflows.get(endpoint)
        if subflow is None:
            number, _ = self._routed.get(endpoint, (len(connection.subflows) + 1, ()))
            interface, path = self.interface[endpoint[0]], connection.opened.path
            subflow = connection.subflows[endpoint] = Subflow(number, interface, path=path)
        _, subflow.path = self._routed.get(endpoint, (0, subflow.path))
        down = connection.opened.direction == "down"
        subflow.sender, subflow.receiver = (server, user) if down else (user, server)

    def sample(
        self,
        elapsed_s: float,
        status: Mapping[str, Mapping[str, Any]],
        tiers: Mapping[str, Mapping[str, int]],
    ) -> HostSamples:
        """Return the samples of the time since the last call, which was `elapsed_s` ago.

        `status` has, by flow ID, what the receiver reports about the flow. `tiers[user][ap]` is the
        tier of a user at an access point; the default is 1.
        """
        tier_mbps: dict[str, dict[int, float]] = {}
        users: dict[str, UserSample] = {}
        subflows: dict[str, SubflowSample] = {}
        for name, connection in self.connections.items():
            got = status.get(name, {})
            if "datagrams" in got:
                (subflow,) = connection.subflows.values()
                subflow.sender, subflow.receiver = datagram_ends(got)
            rate = rate_mbps(int(got.get("bytes", 0)) - connection.received, elapsed_s)
            connection.received = int(got.get("bytes", connection.received))
            connection.receive_buffer_max_bytes = got.get("receive_buffer_max_bytes")
            user = connection.opened.user
            is_over = connection.opened.is_one_of_many and connection.completion_s is not None
            connection.completion_s = got.get("done_s")
            users[user] = _added(users.get(user), rate, got.get("held_back_bytes"))
            for subflow in () if is_over else connection.subflows.values():
                link = subflow.interface.link
                tier = subflow.tier = tiers.get(user, {}).get(link, 1)
                row = subflow_sample(subflow, elapsed_s, user, self._expected_bps)
                subflows[f"{name}/{subflow.number}"] = row
                for ap in {link, *self._relayed.intersection(subflow.path)}:
                    sums = tier_mbps.setdefault(ap, {1: 0.0, 2: 0.0})
                    sums[tier] = round(sums[tier] + row.mbps, 4)
        return HostSamples(tier_mbps, users, subflows)

    def collect(self, status: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep the exchanges, and the datagrams of calls, that receivers have reported; `status` is
        as in `sample`. A receiver reports each only once."""
        for name, got in status.items():
            for number, delay_s in got.get("arrived", ()):
                if name in self.connections:
                    self.connections[name].delays_ms.setdefault(number, delay_s * 1000)
            if name in self.connections and "exchanges" in got:
                self.connections[name].done += [Done(*each) for each in got["exchanges"]]
                self.connections[name].waiting = got["waiting"]
                self.connections[name].quality = got["quality"] and Quality(*got["quality"])

    def heard_ms(self, flow: Flow, numbers: range) -> list[float]:
        """Return the delays of those datagrams of a call that have arrived."""
        connection = self.connections.get(flow.id)
        delays_ms = connection.delays_ms if connection else {}
        return [delays_ms[n] for n in numbers if n in delays_ms]

    def take_exchanges(self) -> list[tuple[str, Done]]:
        """Return the exchanges that were complete since the last call, with the IDs of their
        flows."""
        found = []
        for name, each in self.connections.items():
            found += [(name, done) for done in each.done[each.told :]]
            each.told = len(each.done)
        return found

    def newly_complete(self) -> dict[str, float]:
        """Return the flows that were completed since the last call, with their durations [s].

        A flow is complete when its receiver has all of its data.
        """
        complete = {
            name: each.completion_s
            for name, each in sorted(self.connections.items())
            if each.completion_s is not None
        }
        new = {name: complete[name] for name in complete if name not in self._complete}
        self._complete.update(new)
        return new

    def report(self, duration_s: float, queued: Mapping[str, int]) -> tuple[ConnectionReport, ...]:
        """Return a report on every connection, for the result of the run.

        `queued` is the number of segments that each host has put into MPTCP's out-of-order queue.
        """
        return tuple(
            ConnectionReport(
                id=name,
                user=each.opened.user,
                throughput_mbps=round(rate_mbps(each.received, duration_s), 4),
                completion_s=each.completion_s,
                out_of_order_fraction=self._out_of_order(each, queued),
                receive_buffer_max_bytes=each.receive_buffer_max_bytes,
                subflows=tuple(
                    _certain(each, subflow_report(name, subflow, duration_s))
                    for subflow in each.subflows.values()
                ),
            )
            for name, each in self.connections.items()
        )

    def _out_of_order(self, connection: Connection, queued: Mapping[str, int]) -> float | None:
        """Return the fraction of a connection's data segments that arrived out of order.

        TCP and UDP have counters for each connection. For MPTCP the kernel has only a counter per
        host, which is in `queued`. So all MPTCP connections with the same receiver get the same
        fraction. It is None if the receiver does not have this counter.
        """
        opened = connection.opened
        if not opened.multipath:
            late = sum(subflow.out_of_order for subflow in connection.subflows.values())
            return fraction(late, connection.subflows.values())
        subflows = [
            subflow
            for each in self.connections.values()
            if each.opened.multipath and each.opened.receiver == opened.receiver
            for subflow in each.subflows.values()
        ]
        return fraction(queued[opened.receiver], subflows) if opened.receiver in queued else None


def _certain(connection: Connection, report: SubflowReport) -> SubflowReport:
    """Return the report on a subflow, without a congestion control if the socket was last seen
    before it sent: a server chooses that of a new connection when it has read the request."""
    is_new = connection.opened.is_one_of_many and not report.segments
    return replace(report, cc=None) if is_new else report


def _added(user: UserSample | None, mbps: float, held_bytes: int | None) -> UserSample:
    """Add one connection to the sample of a user. `user` is None for the first connection.

    `mbps` is the throughput of the connection. `held_bytes` is the number of bytes that have
    arrived on it but waited for earlier bytes.
    """
    held_kb = user.held_back_kb if user else None
    if held_bytes is not None:
        held_kb = round((held_kb or 0.0) + held_bytes / 1000, 3)
    return UserSample(round((user.mbps if user else 0.0) + mbps, 4), held_back_kb=held_kb)


ExpectedBps = Callable[[TcpSocket], int | None]  # rate limit of a sending socket; None without one


@dataclass
class Subflow:
    """The latest sockets at both ends of a subflow, and the counters at the last sample."""

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
    """Return `late` as a fraction of the data segments received on `subflows`.

    `late` is the number of segments that arrived out of order. The result is 0 if no segment was
    received.
    """
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
    """Return how many data segments were lost: sent, minus arrived, minus in flight.

    None if the socket of one end is not known.
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


@dataclass(frozen=True)
class DatagramEnd:
    """One end of a UDP flow, with the fields of `TcpSocket`. A datagram counts as a segment.

    Fields that make no sense for UDP are None or 0: congestion window, round-trip time, congestion
    control and retransmissions.
    """

    bytes_received: int = 0
    data_segments_out: int = 0
    data_segments_in: int = 0
    in_flight: int = 0
    out_of_order: int = 0
    retransmitted: int = 0
    pacing_limit: int = UNLIMITED
    rtt_ms: float | None = None
    cwnd: int | None = None
    cc: str | None = None
    backup: bool = False


def datagram_ends(status: Mapping[str, Any]) -> tuple[DatagramEnd, DatagramEnd]:
    """Return the sending end and the receiving end of a UDP flow.

    `status` is the flow's entry in the result of `receivers`. Datagrams that were sent after the
    latest one that has arrived count as in flight.
    """
    sent = max(status.get("sent", 0), status["next"])
    return (
        DatagramEnd(data_segments_out=sent, in_flight=sent - status["next"]),
        DatagramEnd(
            bytes_received=status["bytes"],
            data_segments_in=status["datagrams"],
            out_of_order=status["out_of_order"],
        ),
    )


def receivers(answers: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the receiver of every flow reports about the flow, by flow ID.

    `answers` are the answers of all traffic programs to the command "status". In the status of a
    UDP flow, the key `sent` is added: the number of datagrams that the other end has sent.
    """
    found = [each for answer in answers for each in answer["flows"].items()]
    sent = {
        name: flow["datagrams"] for name, flow in found if flow["sends"] and "datagrams" in flow
    }
    return {
        name: flow | ({"sent": sent[name]} if name in sent else {})
        for name, flow in found
        if not flow["sends"]
    }


def single_path(
    wiring: Wiring, server: Interface, user: Interface, ports: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Return the switches on the path of a flow from `server` to `user`, if all links are up.

    `ports` are the TCP ports of server and user; None means UDP. The controller chooses the path by
    the same rule (controller/pox_ext/router.py).
    """
    neighbours: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        neighbours[trunk.a].add(trunk.b)
        neighbours[trunk.b].add(trunk.a)
    candidates = paths.between(neighbours, server.switch, user.switch)
    protocol = UDP if ports is None else paths.TCP
    flow = paths.Flow(server.address, user.address, protocol, *(ports or ()))
    return tuple(paths.choose(candidates, flow))
