"""Send generic netlink commands, and receive generic netlink messages (linux/genetlink.h).

A family is one kernel interface with a name, such as `mptcp_pm` or `nl80211`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from lab.engines.mininet.kernel.netlink import (
    ACK,
    REQUEST,
    attribute,
    attributes,
    open_socket,
    request,
)
from lab.errors import LabError

NETLINK_GENERIC = 16
CONTROLLER, GET_FAMILY, FAMILY_ID, FAMILY_NAME, GROUPS = 16, 3, 1, 2, 7
GROUP_NAME, GROUP_ID = 1, 2
SOL_NETLINK, ADD_MEMBERSHIP = 270, 1
HEADER_BYTES, NETLINK_HEADER_BYTES = 4, 16


class Family:
    """Send the commands of the generic netlink family `name`.

    The commands act in the network namespace in which this object was created. Creating it raises
    `LabError` if the kernel has no such family.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = open_socket(NETLINK_GENERIC)
        try:
            query = _message(GET_FAMILY, attribute(FAMILY_NAME, name.encode() + b"\0"))
            reply = next(request(self._socket, CONTROLLER, REQUEST, query))
        except LabError as problem:
            self._socket.close()
            raise LabError(
                f"find the netlink family '{name}': {problem}. Its module is missing or not loaded"
            ) from problem
        described = dict(attributes(reply[1][HEADER_BYTES:]))
        self._id = struct.unpack("=H", described[FAMILY_ID])[0]
        self._groups = dict(
            _group(each) for _number, each in attributes(described.get(GROUPS, b""))
        )

    def request(self, command: int, body: bytes, flags: int = ACK) -> list[bytes]:
        """Send a command, and return the payload of each answer: encoded netlink attributes.

        `command` is the number of the command in the family, `body` has its encoded attributes,
        `flags` are the netlink flags besides REQUEST. Raises `LabError` with the kernel's reason if
        the kernel refuses the command.
        """
        answers = request(self._socket, self._id, REQUEST | flags, _message(command, body))
        return [payload[HEADER_BYTES:] for _kind, payload in answers]

    def listen(self, group: str) -> Listener:
        """Return a listener to a multicast group of the family.

        The listener receives the messages of the network namespace of the calling thread.
        """
        return Listener(self._groups[group])

    def close(self) -> None:
        self._socket.close()


class Listener:
    """Receive the messages that the kernel sends to a generic netlink multicast group."""

    def __init__(self, group: int) -> None:
        self._socket = open_socket(NETLINK_GENERIC)
        self._socket.setblocking(False)
        self._socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, group)

    def fileno(self) -> int:
        return self._socket.fileno()

    def messages(self) -> Iterator[tuple[int, dict[int, bytes]]]:
        """Yield the command number and the attributes of each message received since the last call.

        The attributes are a dictionary from number to encoded body. This does not wait for
        messages. Messages that did not fit into the buffer of the socket are lost.
        """
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:  # ENOBUFS: messages were lost
                continue
            payload = data[NETLINK_HEADER_BYTES:]
            yield payload[0], dict(attributes(payload[HEADER_BYTES:]))

    def close(self) -> None:
        self._socket.close()


def _group(described: bytes) -> tuple[str, int]:
    found = dict(attributes(described))
    return found[GROUP_NAME].rstrip(b"\0").decode(), struct.unpack("=I", found[GROUP_ID])[0]


def _message(command: int, body: bytes) -> bytes:
    return struct.pack("=BBH", command, 1, 0) + body
