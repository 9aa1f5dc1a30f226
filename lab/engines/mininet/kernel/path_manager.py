"""The kernel's Multipath TCP path manager, asked over netlink: what `ip mptcp` does, without a process (linux/mptcp_pm.h)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.engines.mininet.kernel.generic_netlink import Family, Listener
from lab.engines.mininet.kernel.netlink import attribute

ADD_ADDRESS, SET_LIMITS, SET_FLAGS, CREATE_SUBFLOW = 1, 5, 7, 10
ADDRESS, ADD_ADDRESSES, SUBFLOWS, TOKEN, REMOTE = 1, 2, 3, 4, 6
EVENTS, ESTABLISHED = "mptcp_pm_events", 2  # linux/mptcp.h
EVENT_TOKEN, EVENT_SERVER, EVENT_PORT = 1, 7, 10
FAMILY, ADDRESS_ID, IPV4, PORT, FLAGS, INTERFACE = 1, 2, 3, 5, 6, 7
SUBFLOW, BACKUP = 1 << 1, 1 << 2
NESTED = 0x8000


Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Established:
    """A connection to a server has been established; its token is that of this end."""

    token: int
    server: Endpoint


class PathManager:
    """The path manager of the namespace where this is created.

    With the kernel's own, addresses are endpoints of all connections. With one in user space (net.mptcp.pm_type=1) each subflow
    is opened and changed by itself, and there may be any number; the kernel accepts them as long as somebody listens.
    """

    def __init__(self) -> None:
        self._family = Family("mptcp_pm")

    def limit(self, subflows: int, add_addresses: int = 0) -> None:
        """At most so many subflows beyond the first, and so many announced addresses accepted, per connection."""
        numbers = ((SUBFLOWS, subflows), (ADD_ADDRESSES, add_addresses))
        self._family.ask(
            SET_LIMITS,
            b"".join(attribute(kind, struct.pack("=I", number)) for kind, number in numbers),
        )

    def add(self, address: str, interface: int) -> None:
        """Open a subflow from this address of interface number `interface` in every connection."""
        place = attribute(FLAGS, struct.pack("=I", SUBFLOW)) + attribute(
            INTERFACE, struct.pack("=i", interface)
        )
        self._family.ask(ADD_ADDRESS, attribute(NESTED | ADDRESS, _address(address) + place))

    def set_backup(self, address: str, backup: bool) -> None:
        """Make all subflows from this endpoint backup or not, and tell their other ends (MP_PRIO)."""
        flags = attribute(FLAGS, struct.pack("=I", BACKUP if backup else 0))
        self._family.ask(SET_FLAGS, attribute(NESTED | ADDRESS, _address(address) + flags))

    def create(self, token: int, local: str, ident: int, server: Endpoint) -> None:
        """Open a subflow of a connection from another address of this host, which gets this number."""
        own = _address(local) + attribute(ADDRESS_ID, bytes([ident]))
        self._family.ask(CREATE_SUBFLOW, _ends(token, own, server))

    def set_subflow_backup(self, token: int, local: str, remote: Endpoint, backup: bool) -> None:
        """Make one subflow of one connection backup or not, and tell its other end (MP_PRIO)."""
        own = _address(local) + attribute(FLAGS, struct.pack("=I", BACKUP if backup else 0))
        self._family.ask(SET_FLAGS, _ends(token, own, remote))

    def listen(self) -> Listener:
        """Hear of connections; `established` says which."""
        return self._family.listen(EVENTS)

    def close(self) -> None:
        self._family.close()


def established(news: Iterable[tuple[int, dict[int, bytes]]]) -> Iterator[Established]:
    """The connections among what the kernel has said."""
    for command, about in news:
        if command == ESTABLISHED and {EVENT_TOKEN, EVENT_SERVER, EVENT_PORT} <= set(about):
            server = (
                socket.inet_ntoa(about[EVENT_SERVER]),
                struct.unpack("!H", about[EVENT_PORT])[0],
            )
            yield Established(struct.unpack("=I", about[EVENT_TOKEN])[0], server)


def _ends(token: int, own: bytes, remote: Endpoint) -> bytes:
    other = _address(remote[0]) + attribute(PORT, struct.pack("=H", remote[1]))
    return (
        attribute(TOKEN, struct.pack("=I", token))
        + attribute(NESTED | ADDRESS, own)
        + attribute(NESTED | REMOTE, other)
    )


def _address(address: str) -> bytes:
    return attribute(FAMILY, struct.pack("=H", socket.AF_INET)) + attribute(
        IPV4, socket.inet_aton(address)
    )
