"""Associate the radio of a station with an access point, by nl80211 (linux/nl80211.h)."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass

from lab.engines.mininet.kernel.netlink import Family, Scheduler, attribute
from lab.errors import LabError

CONNECT, DISCONNECT = 46, 48
IFINDEX, MAC, FREQUENCY, SSID, STATUS = 3, 6, 38, 52, 72


@dataclass(frozen=True)
class Target:
    """Describe the access point with which a station associates.

    `ap` is its name in the topology, `ssid` the name of its WiFi network, `mhz` the frequency of
    its channel, `mac` the MAC address of its radio.
    """

    ap: str
    ssid: str
    mhz: int
    mac: str


class StationRadio:
    """Associate the radio of one station, by nl80211 sockets.

    Create this object inside the station's network namespace: the sockets stay in the namespace in
    which they were opened. `interface` is the name of the radio's interface.
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
        """Leave the present access point; do nothing if the station is not associated."""
        with contextlib.suppress(LabError):  # it was not associated
            self._family.request(DISCONNECT, self._index)

    def associate(self, target: Target) -> None:
        """Begin to associate with the access point `target`; `answer` returns the result later.

        Raises `LabError` if the kernel cannot begin now.
        """
        body = self._index + attribute(SSID, target.ssid.encode())
        body += attribute(FREQUENCY, struct.pack("=I", target.mhz))
        body += attribute(MAC, bytes.fromhex(target.mac.replace(":", "")))
        self._family.request(CONNECT, body)

    def commands(self, target: Target) -> list[list[str]]:
        """Return the `iw` commands that do the same as `leave` and `associate`, for the journal.

        The journal records the commands of a run.
        """
        device = ["iw", "dev", self.interface]
        return [
            [*device, "disconnect"],
            [*device, "connect", target.ssid, str(target.mhz), target.mac],
        ]

    def answer(self) -> bool | None:
        """Return whether the attempt to associate has succeeded; None if no result has come yet.

        A result is returned only once: by the first call after it has come.
        """
        found = None
        for command, fields in self._events.messages():
            if command == CONNECT:
                found = struct.unpack("=H", fields.get(STATUS, b"\1\0")[:2])[0] == 0
        return found

    def close(self) -> None:
        self._events.close()
        self._family.close()
