"""Control the kernel's Multipath TCP path manager over netlink (linux/mptcp_pm.h)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.engines.mininet.kernel.netlink import Family, Listener, attribute

ADD_ADDRESS, SET_LIMITS, SET_FLAGS, CREATE_SUBFLOW = 1, 5, 7, 10
ADDRESS, ADD_ADDRESSES, SUBFLOWS, TOKEN, REMOTE = 1, 2, 3, 4, 6
EVENTS, ESTABLISHED = "mptcp_pm_events", 2  # linux/mptcp.h
EVENT_TOKEN, EVENT_SERVER, EVENT_PORT = 1, 7, 10
FAMILY, ADDRESS_ID, IPV4, PORT, FLAGS, INTERFACE = 1, 2, 3, 5, 6, 7
BACKUP = 1 << 2
FLAG_BITS = {"signal": 1 << 0, "subflow": 1 << 1, "backup": BACKUP, "fullmesh": 1 << 3}
ENDPOINT_FLAGS = {  # of `ip mptcp endpoint`
    "subflow": "subflow",
    "backup": "subflow backup",
    "signal": "signal",
    "signal_backup": "signal backup",
}
NESTED = 0x8000


Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Established:
    """An MPTCP connection that has just been established.

    `token` is the MPTCP token that this host has chosen for the connection. `server` is the address
    and port of the server.
    """

    token: int
    server: Endpoint


class PathManager:
    """The MPTCP path manager of the network namespace in which this object is created.

    There are two modes:

    - The kernel opens subflows: each connection gets one subflow from every MPTCP endpoint, which
      is a local address, or announces it. Use `limit`, `add` and `set_backup`.
    - A program opens each subflow by itself (net.mptcp.pm_type=1). Use `create` and
      `set_subflow_backup`. In this mode the kernel accepts subflows of a peer only while a listener
      is open (`listen`).
    """

    def __init__(self) -> None:
        self._family = Family("mptcp_pm")

    def limit(self, subflows: int, add_addresses: int = 0) -> None:
        """Limit the number of subflows that each connection can open in addition to its first.

        The peer can announce further addresses of its own (ADD_ADDR). A connection opens subflows
        to at most `add_addresses` of them.
        """
        numbers = ((SUBFLOWS, subflows), (ADD_ADDRESSES, add_addresses))
        self._family.request(
            SET_LIMITS,
            b"".join(attribute(kind, struct.pack("=I", number)) for kind, number in numbers),
        )

    def add(self, address: str, ident: int, interface: int, words: str) -> None:
        """Add an MPTCP endpoint with the flags in `words`, such as "subflow backup".

        `ident` is the MPTCP address ID of `address`, and `interface` the number of the interface
        that has it.
        """
        flags = sum(FLAG_BITS[word] for word in words.split())
        place = (
            attribute(ADDRESS_ID, bytes([ident]))
            + attribute(FLAGS, struct.pack("=I", flags))
            + attribute(INTERFACE, struct.pack("=i", interface))
        )
        self._family.request(ADD_ADDRESS, attribute(NESTED | ADDRESS, _address(address) + place))

    def set_backup(self, address: str, backup: bool) -> None:
        """Set or clear the backup flag of all subflows from `address`, at both ends (MP_PRIO)."""
        flags = attribute(FLAGS, struct.pack("=I", BACKUP if backup else 0))
        self._family.request(SET_FLAGS, attribute(NESTED | ADDRESS, _address(address) + flags))

    def create(
        self, token: int, local: str, ident: int, server: Endpoint, is_backup: bool = False
    ) -> None:
        """Open a further subflow of a connection, from the local address `local` to `server`.

        `token` is the token of the MPTCP connection. `ident` is the MPTCP address ID of `local`; it
        is 0 for the address with which the connection was opened (since Linux 6.10).
        Raises `LabError` if the kernel refuses.
        """
        own = _address(local) + attribute(ADDRESS_ID, bytes([ident]))
        if is_backup:
            own += attribute(FLAGS, struct.pack("=I", BACKUP))
        self._family.request(CREATE_SUBFLOW, _ends(token, own, server))

    def set_subflow_backup(self, token: int, local: str, remote: Endpoint, backup: bool) -> None:
        """Set or clear the backup flag of one subflow, at both ends (MP_PRIO).

        `token` is the token of the MPTCP connection. The subflow is the one from the address
        `local` to `remote`.
        """
        own = _address(local) + attribute(FLAGS, struct.pack("=I", BACKUP if backup else 0))
        self._family.request(SET_FLAGS, _ends(token, own, remote))

    def listen(self) -> Listener:
        """Listen to the kernel's events of MPTCP connections. `established` decodes the events."""
        return self._family.listen(EVENTS)

    def close(self) -> None:
        self._family.close()


def established(messages: Iterable[tuple[int, dict[int, bytes]]]) -> Iterator[Established]:
    """Yield each connection that has been newly established, according to a listener's messages."""
    for command, event in messages:
        if command == ESTABLISHED and {EVENT_TOKEN, EVENT_SERVER, EVENT_PORT} <= set(event):
            port = struct.unpack("!H", event[EVENT_PORT])[0]
            server = (socket.inet_ntoa(event[EVENT_SERVER]), port)
            yield Established(struct.unpack("=I", event[EVENT_TOKEN])[0], server)


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
