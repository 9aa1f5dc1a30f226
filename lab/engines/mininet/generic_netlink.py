"""Generic netlink: families of kernel commands that are asked for by name (linux/genetlink.h)."""

from __future__ import annotations

import struct

from lab.engines.mininet.netlink import ACK, REQUEST, ask, attribute, attributes, open_socket
from lab.errors import LabError

NETLINK_GENERIC = 16
CONTROLLER, GET_FAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2
HEADER_BYTES = 4


class Family:
    """One family, in the network namespace where it was opened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = open_socket(NETLINK_GENERIC)
        try:
            reply = next(
                ask(self._socket, CONTROLLER, REQUEST, _message(GET_FAMILY, attribute(FAMILY_NAME, name.encode() + b"\0")))
            )
        except LabError as problem:
            self._socket.close()
            raise LabError(f"ask the kernel for '{name}': {problem}. Its module is missing or not loaded") from problem
        self._id = struct.unpack("=H", dict(attributes(reply[1][HEADER_BYTES:]))[FAMILY_ID])[0]

    def ask(self, command: int, body: bytes, flags: int = ACK) -> list[bytes]:
        """Send a command with its attributes; the attributes of each answer, or `LabError` with the kernel's reason."""
        return [
            payload[HEADER_BYTES:] for _kind, payload in ask(self._socket, self._id, REQUEST | flags, _message(command, body))
        ]

    def close(self) -> None:
        self._socket.close()


def _message(command: int, body: bytes) -> bytes:
    return struct.pack("=BBH", command, 1, 0) + body
