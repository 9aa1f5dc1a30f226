"""The kernel's Multipath TCP path manager, asked over netlink: what `ip mptcp` does, without a process (linux/mptcp_pm.h)."""

from __future__ import annotations

import socket
import struct

from lab.engines.mininet.generic_netlink import Family
from lab.engines.mininet.netlink import attribute

ADD_ADDRESS, SET_LIMITS, SET_FLAGS = 1, 5, 7
ADDRESS, ADD_ADDRESSES, SUBFLOWS = 1, 2, 3
FAMILY, ADDRESS_ID, IPV4, PORT, FLAGS, INTERFACE = 1, 2, 3, 5, 6, 7
SUBFLOW, BACKUP = 1 << 1, 1 << 2
NESTED = 0x8000


class PathManager:
    """The path manager of the namespace where this is created."""

    def __init__(self) -> None:
        self._family = Family("mptcp_pm")

    def limit(self, subflows: int, add_addresses: int = 0) -> None:
        """At most so many subflows beyond the first, and so many announced addresses accepted, per connection."""
        numbers = ((SUBFLOWS, subflows), (ADD_ADDRESSES, add_addresses))
        self._family.ask(SET_LIMITS, b"".join(attribute(kind, struct.pack("=I", number)) for kind, number in numbers))

    def add(self, address: str, interface: int) -> None:
        """Open a subflow from this address of interface number `interface` in every connection."""
        place = attribute(FLAGS, struct.pack("=I", SUBFLOW)) + attribute(INTERFACE, struct.pack("=i", interface))
        self._family.ask(ADD_ADDRESS, attribute(NESTED | ADDRESS, _address(address) + place))

    def close(self) -> None:
        self._family.close()


def _address(address: str) -> bytes:
    return attribute(FAMILY, struct.pack("=H", socket.AF_INET)) + attribute(IPV4, socket.inet_aton(address))
