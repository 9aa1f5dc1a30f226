"""Compute samples of users and subflows from counters of the kernel's sockets.

Rates are differences of counters between two samples. Throughput is the rate of payload at the
receiver: for a user, the bytes that its application has read; for a subflow, the bytes that its
socket has received. Congestion window and round-trip time are read at the sender. A connection is
named after its flow (`ue2-1`). Its subflows have the numbers that the controller gives them: from
1, in the order in which they joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.engines.mininet.datagram_end import ends
from lab.engines.mininet.kernel.subflow_rates import pacing_rate_bps
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.subflow_figures import (
    ExpectedBps,
    Subflow,
    fraction,
    rate_mbps,
    subflow_report,
    subflow_sample,
)
from lab.run.frame import SubflowSample, UserSample
from lab.run.report import ConnectionReport
from lab.topologies.topology import Interface, Wiring

Endpoint = tuple[str, int]
SERVER_PORT = 5001


@dataclass(frozen=True)
class OpenedFlow:
    """Describe a flow of a user, for which a connection is open.

    `endpoint` is the user's address and port. `direction` is the direction of the data, "down" or
    "up", and `receiver` the host that gets the data. `path` has the switches from the server to the
    user; it is empty if the controller will choose the path and report it.
    """

    id: str
    user: str
    endpoint: Endpoint
    direction: str
    multipath: bool
    receiver: str = ""
    path: tuple[str, ...] = ()
    protocol: str = "tcp"


@dataclass
class Connection:
    """Hold the connection of a flow, and its subflows by the user's address and port.

    `token` is the server's MPTCP token of the connection. It is None until it is known, and always
    for plain TCP.
    """

    opened: OpenedFlow
    token: int | None = None
    subflows: dict[Endpoint, Subflow] = field(default_factory=dict)
    received: int = 0
    completion_s: float | None = None
    receive_buffer_max_bytes: int | None = None


@dataclass(frozen=True)
class HostSamples:
    """Hold one sample of all hosts: users by name, subflows by ID.

    `tier_mbps[link][tier]` is the throughput [Mb/s] of a tier at an access point or on a link. A
    subflow over a relay (a switch that is a station of a cell) counts at each access point on its
    path.
    """

    tier_mbps: Mapping[str, Mapping[int, float]]
    users: Mapping[str, UserSample]
    subflows: Mapping[str, SubflowSample]


class Sampler:
    """Compute the throughput of subflows, users and tiers from the sockets of all hosts."""

    def __init__(self, wiring: Wiring, expected_bps: ExpectedBps = pacing_rate_bps) -> None:
        """Store `wiring`, which has the interfaces of all hosts.

        `expected_bps` returns the rate to which the sending socket of a subflow is limited.
        """
        self._expected_bps = expected_bps
        self.interface = {
            address: each for each in wiring.interfaces for address in (each.address, *each.further)
        }
        self._relayed = {each.link for each in wiring.relays}
        self._routed: dict[Endpoint, tuple[int, tuple[str, ...]]] = {}
        self.connections: dict[str, Connection] = {}
        self._complete: set[str] = set()

    def open(self, opened: OpenedFlow) -> None:
        """Include the connection of this flow in the samples from now on."""
        connection = self.connections[opened.id] = Connection(opened)
        if opened.protocol == "udp":  # it has no TCP socket from which it would become known
            interface = self.interface[opened.endpoint[0]]
            connection.subflows[opened.endpoint] = Subflow(1, interface, path=opened.path)

    def routed(self, endpoint: Endpoint, number: int, path: tuple[str, ...]) -> None:
        """Set the number and the path that the controller has chosen for a subflow.

        `endpoint` is the user's address and port of the subflow.
        """
        self._routed[endpoint] = (number, path)

    def handed_over(self, interface: Interface) -> None:
        """Credit the throughput of subflows on `interface` to its new access point.

        `interface` has moved there.
        """
        for address in (interface.address, *interface.further):
            self.interface[address] = interface
        for connection in self.connections.values():
            for (address, _port), subflow in connection.subflows.items():
                subflow.interface = self.interface[address]

    def take(self, server: Iterable[TcpSocket], users: Iterable[TcpSocket]) -> None:
        """Assign the current sockets of all servers and users to connections and subflows."""
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
        """Return the sample of the interval since the last call, which lasted `elapsed_s`.

        `status` is the state of each flow at its receiver, by the flow's ID. `tiers[user][ap]` is
        the tier of a user at an access point.
        """
        tier_mbps: dict[str, dict[int, float]] = {}
        users: dict[str, UserSample] = {}
        subflows: dict[str, SubflowSample] = {}
        for name, connection in self.connections.items():
            got = status.get(name, {})
            if "datagrams" in got:
                (subflow,) = connection.subflows.values()
                subflow.sender, subflow.receiver = ends(got)
            rate = rate_mbps(int(got.get("bytes", 0)) - connection.received, elapsed_s)
            connection.received = int(got.get("bytes", connection.received))
            connection.completion_s = got.get("done_s")
            connection.receive_buffer_max_bytes = got.get("receive_buffer_max_bytes")
            user = connection.opened.user
            users[user] = _added(users.get(user), rate, got.get("held_back_bytes"))
            for subflow in connection.subflows.values():
                link = subflow.interface.link
                tier = subflow.tier = tiers.get(user, {}).get(link, 1)
                row = subflow_sample(subflow, elapsed_s, user, self._expected_bps)
                subflows[f"{name}/{subflow.number}"] = row
                for ap in {link, *self._relayed.intersection(subflow.path)}:
                    sums = tier_mbps.setdefault(ap, {1: 0.0, 2: 0.0})
                    sums[tier] = round(sums[tier] + row.mbps, 4)
        return HostSamples(tier_mbps, users, subflows)

    def newly_complete(self) -> dict[str, float]:
        """Return the flows whose file has arrived completely since the last call: by the flow's ID
        the time in s that the transfer took."""
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

        `queued` is the number of MPTCP segments that the kernel of each host has put into its queue
        of out-of-order data, because earlier data was missing.
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
                    subflow_report(name, subflow, duration_s) for subflow in each.subflows.values()
                ),
            )
            for name, each in self.connections.items()
        )

    def _out_of_order(self, connection: Connection, queued: Mapping[str, int]) -> float | None:
        """Return the fraction of a connection's data segments that arrived out of order.

        `queued` is as in `report`. The kernel counts the out-of-order segments of MPTCP per host,
        so all MPTCP connections with the same receiver get the same fraction. Return None if the
        receiver has no such counter. For plain TCP and UDP, the fraction is that of the only
        subflow.
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


def _added(user: UserSample | None, mbps: float, held_bytes: int | None) -> UserSample:
    """Return the sample of a user with the figures of one more connection; `user` is the sample of
    its other connections, or None."""
    held_kb = user.held_back_kb if user else None
    if held_bytes is not None:
        held_kb = round((held_kb or 0.0) + held_bytes / 1000, 3)
    return UserSample(round((user.mbps if user else 0.0) + mbps, 4), held_back_kb=held_kb)
