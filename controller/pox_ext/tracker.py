"""Track TCP connections and MPTCP subflows, mainly by their SYN and SYN/ACK packets.

1) A SYN with MP_JOIN contains the token of its connection: store it until the SYN/ACK comes.
2) A SYN/ACK with MP_CAPABLE contains the server's key. The token of this key names the connection,
   and this handshake creates its first subflow.
3) After a SYN/ACK with MP_JOIN the subflow belongs to the connection whose token the SYN contained.
4) If a SYN had MP_CAPABLE and the SYN/ACK has no MPTCP option, the connection fell back to TCP
   (RFC 8684, section 3.7).
5) A connection without MPTCP, also one that fell back, has one subflow. It has no token, so its
   name is made from its 5-tuple.
6) The number of a removed subflow is not reused while its connection exists.

The SYN of a subflow that the server opens contains the client's token. In v1 no SYN shows the
client's key, so such subflows are listed under the client's token, as if this were another
connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controller.paths import Flow, digest
from controller.pox_ext.frames import ACK, Capable, Ip, Join, mptcp_option

MOST_CONNECTIONS, MOST_REQUESTS = 4096, 1024
PLAIN = "tcp-"  # begins the name of a connection without MPTCP


@dataclass(frozen=True)
class Joined:
    """A subflow whose handshake is complete.

    `connection` is the MPTCP token of the connection, or `plain_name` for a connection without
    MPTCP. `number` counts the subflows of the connection from 1. `flow` is the 5-tuple of the SYN.
    """

    connection: str
    number: int
    flow: Flow
    backup: bool = False


@dataclass(frozen=True)
class Fallback:
    """A connection that requested MPTCP and fell back to plain TCP.

    `joined` is its only subflow.
    """

    joined: Joined


def plain_name(flow: Flow) -> str:
    """Name a connection without MPTCP; `flow` is the 5-tuple of its SYN."""
    return f"{PLAIN}{digest(flow) >> 32:08x}"


class Tracker:
    """Tracks the open subflows of each connection.

    A connection is known by its MPTCP token, or by its `plain_name` without MPTCP. At most
    `MOST_CONNECTIONS` connections are stored; the oldest are forgotten first.
    """

    def __init__(self) -> None:
        self._requests: dict[Flow, object] = {}
        self._subflows: dict[str, list[Joined]] = {}
        self._numbers: dict[str, int] = {}

    def handle_syn(self, packet: Ip) -> Joined | Fallback | None:
        """Handle a SYN or SYN/ACK; ignore all other packets.

        Return the new subflow if the packet completes its handshake. Return a `Fallback` if the
        packet shows that MPTCP fell back to plain TCP. Otherwise return None.
        """
        if not packet.is_syn:
            return None
        option = mptcp_option(packet.options)
        if packet.flags & ACK:
            return self._answered(packet.flow.back(), option)
        _remember(self._requests, packet.flow, option, MOST_REQUESTS)  # 1
        return None

    def restore(self, joined: Joined) -> None:
        """Add a subflow that the controller tracked before a restart."""
        self._add(joined)

    def adopt(self, token: str | None, flow: Flow) -> Joined:
        """Add a subflow that a host reports, but whose handshake was not observed.

        `token` is the MPTCP token of the connection, or None without MPTCP. `flow` is the 5-tuple
        of the subflow in the direction of its SYN.
        """
        name = token or plain_name(flow)
        return self._add(Joined(name, self._numbers.get(name, 0) + 1, flow))

    def subflows(self) -> list[Joined]:
        return [subflow for subflows in self._subflows.values() for subflow in subflows]

    def find(self, connection: str, number: int) -> Joined | None:
        return next(
            (each for each in self._subflows.get(connection, ()) if each.number == number), None
        )

    def remove(self, joined: Joined) -> None:
        """Remove an ended subflow. With the last subflow, the connection is removed too."""  # 6
        left = [each for each in self._subflows.get(joined.connection, ()) if each != joined]
        if left:
            self._subflows[joined.connection] = left
        else:
            self._subflows.pop(joined.connection, None)
            self._numbers.pop(joined.connection, None)

    def _answered(self, flow: Flow, option: object) -> Joined | Fallback | None:
        observed = flow in self._requests
        request = self._requests.pop(flow, None)
        if isinstance(option, Capable) and (token := option.token()) is not None:  # 2
            self._subflows.setdefault(token, [])
            return self._join(token, flow, backup=False)
        if (
            isinstance(option, Join) and isinstance(request, Join) and request.token is not None
        ):  # 3
            return self._join(request.token, flow, request.backup or option.backup)
        if not observed or isinstance(request, Join):
            return None  # a retransmitted SYN/ACK, or a refused subflow
        plain = self._join(plain_name(flow), flow, backup=False)  # 5
        return Fallback(plain) if plain and isinstance(request, Capable) else plain  # 4

    def _join(self, token: str, flow: Flow, backup: bool) -> Joined | None:
        known = self._subflows.get(token, [])
        if any(each.flow == flow for each in known):
            return None  # a retransmitted handshake
        return self._add(Joined(token, self._numbers.get(token, 0) + 1, flow, backup))

    def _add(self, joined: Joined) -> Joined:
        subflows = self._subflows.get(joined.connection, [])
        latest = max(joined.number, self._numbers.get(joined.connection, 0))
        _remember(self._numbers, joined.connection, latest, MOST_CONNECTIONS)
        _remember(self._subflows, joined.connection, [*subflows, joined], MOST_CONNECTIONS)
        return joined


def _remember(table: dict[Any, Any], key: object, value: object, most: int) -> None:
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]
