"""Read and write the stations of a running WiFi cell, and the effect of its collisions.

Both are pinned eBPF maps of the cell's program (see network/wifi_cell.bpf.c).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from controller.units import ppm_from_fraction
from lab.engines.mininet.kernel.bpf import Map
from lab.engines.mininet.kernel.cell_clock import PINS, ZERO
from lab.radio.cell import Station
from lab.radio.wifi import byte_price_ps, fixed_ns

STATION = struct.Struct("=QQQQ")  # struct station
COLLISIONS = struct.Struct("=II")  # struct collisions
MAX_STATIONS = 256  # entries of the map


@dataclass(frozen=True)
class Activity:
    """Hold what the program has recorded of a station; times are in ns of CLOCK_MONOTONIC.

    `busy_until_ns` is the end of the station's latest uplink packet. `first_ns` is the end of the
    first packet in either direction since the station came into the cell, 0 before it.
    """

    busy_until_ns: int
    first_ns: int


class CellMembers:
    """Hold the stations of the cell of an access point, by IPv4 address."""

    def __init__(self, ap: str, pins: Path | None = None) -> None:
        folder = pins or PINS / ap
        self._stations = Map(folder / "stations", 4, STATION.size)
        self._air = Map(folder / "air", 4, COLLISIONS.size)

    def set(self, address: str, station: Station) -> None:
        """Set the airtime of a station's packets from its rate; add the station if it is new."""
        key = socket.inet_aton(address)
        before = dict(self._stations.items(MAX_STATIONS)).get(key, bytes(STATION.size))
        _byte, _frame, busy_until_ns, first_ns = STATION.unpack(before)
        prices = byte_price_ps(station), fixed_ns(station)
        self._stations.write(key, STATION.pack(*prices, busy_until_ns, first_ns))

    def remove(self, address: str) -> None:
        """Remove a station: its packets no longer occupy the channel of this cell."""
        self._stations.delete(socket.inet_aton(address))

    def activity(self) -> dict[str, Activity]:
        """Return the activity of every station by address, read with one system call."""
        return {
            socket.inet_ntoa(key): Activity(*STATION.unpack(value)[2:])
            for key, value in self._stations.items(MAX_STATIONS)
        }

    def set_collisions(self, transmissions: float, loss: float) -> None:
        """Set the mean number of transmissions of a frame, and the fraction of frames lost."""
        ppm = ppm_from_fraction(transmissions), ppm_from_fraction(loss)
        self._air.write(ZERO, COLLISIONS.pack(*ppm))
