"""Read and write the pinned maps of a running WiFi cell: its clock, stations and collisions.

The clock says until when the packets accepted so far occupy the radio channel. The cell's eBPF
program (network/wifi_cell.bpf.c) advances it.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from controller.units import ppm_from_fraction
from lab.engines.mininet.kernel.bpf import Map
from lab.radio.cell import Station
from lab.radio.wifi import byte_price_ps, fixed_ns

PINS = Path("/run/multipath-lab/bpf")  # where programs and maps are pinned, a folder per cell
LAYOUT = struct.Struct("=IxxxxQQQQQQQ")  # struct cell
ZERO = struct.pack("=I", 0)  # the only key of the map


@dataclass(frozen=True)
class Clock:
    """The state of a cell's clock at one moment; times are in ns of CLOCK_MONOTONIC.

    The next downlink packet can start at `next_free_ns`, the next uplink packet at
    `uplink_free_ns`. Since the start of the clock, `sent` packets were accepted, with an airtime of
    `busy_ns`, and `drops` packets were dropped.
    """

    next_free_ns: int
    uplink_free_ns: int
    busy_ns: int
    drops: int
    sent: int


class CellClock:
    """The virtual clock of the WiFi cell of access point `ap`.

    It is the only entry of a pinned eBPF map.
    """

    def __init__(self, ap: str) -> None:
        self._map = Map(PINS / ap / "cells", 4, LAYOUT.size)

    def start(self, limit_ns: int) -> None:
        """Reset the clock and its counters to zero.

        From now on, the cell drops a packet that would have to wait longer than `limit_ns`.
        """
        self._map.write(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0), locked=True)

    def start_command(self, limit_ns: int) -> list[str]:
        """Return the bpftool command equivalent to `start`."""
        return self._map.update_command(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0))

    def read(self) -> Clock:
        raw = self._map.read(ZERO, locked=True)
        _lock, next_free_ns, uplink_free_ns, _limit, _airtime, *counters = LAYOUT.unpack(raw)
        return Clock(next_free_ns, uplink_free_ns, *counters)


STATION = struct.Struct("=QQQQ")  # struct station
COLLISIONS = struct.Struct("=II")  # struct collisions
MAX_STATIONS = 256  # entries of the map


@dataclass(frozen=True)
class Activity:
    """Two times that the cell's program has recorded for a station [ns of CLOCK_MONOTONIC].

    `busy_until_ns` is the end of the station's latest uplink packet. `first_ns` is the end of the
    first packet in either direction since the station came into the cell; it is 0 until then.
    """

    busy_until_ns: int
    first_ns: int


class CellMembers:
    """The stations of the WiFi cell of access point `ap`, by their IPv4 addresses.

    `pins` is the folder where the maps of the cell are pinned, by default `PINS`/AP.
    """

    def __init__(self, ap: str, pins: Path | None = None) -> None:
        folder = pins or PINS / ap
        self._stations = Map(folder / "stations", 4, STATION.size)
        self._air = Map(folder / "air", 4, COLLISIONS.size)

    def set(self, address: str, station: Station) -> None:
        """Set the airtime of a station's packets from its rate; add the station if it is new.

        `address` is the station's IPv4 address.
        """
        key = socket.inet_aton(address)
        before = self._stations.find(key) or bytes(STATION.size)
        _byte, _frame, busy_until_ns, first_ns = STATION.unpack(before)
        prices = byte_price_ps(station), fixed_ns(station)
        self._stations.write(key, STATION.pack(*prices, busy_until_ns, first_ns))

    def remove(self, address: str) -> None:
        """Remove the station with this IPv4 address: its packets no longer occupy the channel."""
        self._stations.delete(socket.inet_aton(address))

    def activity(self) -> dict[str, Activity]:
        """Return the activity of every station by its IPv4 address, read by one system call."""
        return {
            socket.inet_ntoa(key): Activity(*STATION.unpack(value)[2:])
            for key, value in self._stations.items(MAX_STATIONS)
        }

    def commands(self) -> list[list[str]]:
        """Return the bpftool commands that write the stations and the effect of collisions."""
        return [
            self._air.update_command(ZERO, self._air.read(ZERO)),
            *(
                self._stations.update_command(key, STATION.pack(*STATION.unpack(value)[:2], 0, 0))
                for key, value in self._stations.items(MAX_STATIONS)
            ),
        ]

    def set_collisions(self, transmissions: float, loss: float) -> None:
        """Set the effect of collisions on the packets of this cell.

        `transmissions` is the mean number of transmissions of a frame, `loss` the fraction of
        frames that are lost, from 0 to 1.
        """
        ppm = ppm_from_fraction(transmissions), ppm_from_fraction(loss)
        self._air.write(ZERO, COLLISIONS.pack(*ppm))
