"""Associate the radio of a station with an access point, by nl80211 (linux/nl80211.h)."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass

from lab.engines.mininet.kernel.generic_netlink import Family
from lab.engines.mininet.kernel.netlink import Scheduler, attribute
from lab.errors import LabError

CONNECT, DISCONNECT = 46, 48
IFINDEX, MAC, FREQUENCY, SSID, STATUS = 3, 6, 38, 52, 72


@dataclass(frozen=True)
class Target:
    """Describe the access point with which a station associates: name, network, channel, MAC."""

    ap: str
    ssid: str
    mhz: int
    mac: str


class StationRadio:
    """Hold the nl80211 sockets of one station; they stay in the namespace where they were opened.

    Create this object inside the station's network namespace.
    """

    def __init__(self, interface: str) -> None:
        self.interface = interface
        scheduler = Scheduler()
        try:
            self._index = attribute(IFINDEX, struct.pack("=I", scheduler.index(interface)))
        finally:
            scheduler.close()
        self._family = Family("nl80211")
        self._events = self._family.listen("mlme")

    def fileno(self) -> int:
        return self._events.fileno()

    def leave(self) -> None:
        """Leave the present access point; do nothing if there is none."""
        with contextlib.suppress(LabError):  # it was not associated
            self._family.request(DISCONNECT, self._index)

    def associate(self, target: Target) -> None:
        """Begin to associate with `target`. `answer` returns the result.

        Raises `LabError` if the kernel cannot begin now.
        """
        body = self._index + attribute(SSID, target.ssid.encode())
        body += attribute(FREQUENCY, struct.pack("=I", target.mhz))
        body += attribute(MAC, bytes.fromhex(target.mac.replace(":", "")))
        self._family.request(CONNECT, body)

    def commands(self, target: Target) -> list[list[str]]:
        """Return the `iw` commands that do the same, for the journal of commands."""
        device = ["iw", "dev", self.interface]
        return [
            [*device, "disconnect"],
            [*device, "connect", target.ssid, str(target.mhz), target.mac],
        ]

    def answer(self) -> bool | None:
        """Return whether the latest attempt has succeeded; None while there is no answer."""
        found = None
        for command, fields in self._events.messages():
            if command == CONNECT:
                found = struct.unpack("=H", fields.get(STATUS, b"\1\0")[:2])[0] == 0
        return found

    def close(self) -> None:
        self._events.close()
        self._family.close()
