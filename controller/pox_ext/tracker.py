"""The table of Multipath TCP connections and subflows, built from SYN and SYN/ACK alone.

1) an MP_JOIN SYN names the token of the connection it joins: remember it until it is answered
2) a SYN/ACK with MP_CAPABLE carries the server's key: the connection is known by its token, the subflow is its first
3) a SYN/ACK with MP_JOIN: the subflow joins the connection its SYN has named
4) a SYN/ACK without an option after a SYN with one: the connection fell back to TCP (RFC 8684, section 3.7)
5) a subflow is over when somebody who knows says so: its number is not given again while its connection lives
Subflows that the server opens towards a client name the client's token, whose key v1 shows in no SYN: they stand under that token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controller.paths import Flow
from controller.pox_ext.frames import ACK, Ip
from controller.pox_ext.mptcp import Capable, Join, parse

MOST_CONNECTIONS, MOST_REQUESTS = 4096, 1024


@dataclass(frozen=True)
class Joined:
    """A subflow was answered; `flow` is the direction of its SYN."""

    connection: str
    number: int
    flow: Flow
    backup: bool = False


@dataclass(frozen=True)
class Fallback:
    """A SYN request for Multipath TCP and the answer did not."""

    flow: Flow


class Tracker:
    """Connections by token, and subflows in the order in which they were answered; both bounded, the oldest forgotten first."""

    def __init__(self) -> None:
        self._requests: dict[Flow, Capable | Join] = {}
        self._subflows: dict[str, list[Joined]] = {}
        self._numbers: dict[str, int] = {}

    def handle_syn(self, packet: Ip) -> Joined | Fallback | None:
        """Take a SYN or SYN/ACK into account; the answer is what is new."""
        if not packet.is_syn:
            return None
        option = parse(packet.options)
        if packet.flags & ACK:
            return self._answered(packet.flow.back(), option)
        if isinstance(option, Capable | Join):
            _remember(self._requests, packet.flow, option, MOST_REQUESTS)  # 1
        return None

    def restore(self, joined: Joined) -> None:
        """Take over a subflow that an earlier controller has seen."""
        self._add(joined)

    def adopt(self, token: str, flow: Flow) -> Joined:
        """Take over a subflow that its host knows and nobody here has seen."""
        return self._add(Joined(token, self._numbers.get(token, 0) + 1, flow))

    def subflows(self) -> list[Joined]:
        """All subflows known."""
        return [subflow for subflows in self._subflows.values() for subflow in subflows]

    def find(self, connection: str, number: int) -> Joined | None:
        """The subflow of a connection with this number, if it lives."""
        return next(
            (each for each in self._subflows.get(connection, ()) if each.number == number), None
        )

    def remove(self, joined: Joined) -> None:
        """Forget a subflow, and with its last one the connection."""  # 5
        left = [each for each in self._subflows.get(joined.connection, ()) if each != joined]
        if left:
            self._subflows[joined.connection] = left
        else:
            self._subflows.pop(joined.connection, None)
            self._numbers.pop(joined.connection, None)

    def _answered(self, flow: Flow, option: object) -> Joined | Fallback | None:
        request = self._requests.pop(flow, None)
        if isinstance(option, Capable) and (token := option.token()) is not None:  # 2
            self._subflows.setdefault(token, [])
            return self._join(token, flow, backup=False)
        if (
            isinstance(option, Join) and isinstance(request, Join) and request.token is not None
        ):  # 3
            return self._join(request.token, flow, request.backup or option.backup)
        return Fallback(flow) if isinstance(request, Capable) else None  # 4

    def _join(self, token: str, flow: Flow, backup: bool) -> Joined | None:
        known = self._subflows.get(token, [])
        if any(each.flow == flow for each in known):
            return None  # the answer was sent again
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
