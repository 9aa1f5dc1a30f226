"""Read and write the pinned eBPF maps of a running WiFi cell: its clock, stations and collisions.

The eBPF program of a cell imitates a shared radio channel. It is network/wifi_cell.bpf.c, or
network/dcf_cell.bpf.c with `air: dcf`. Its clock is the time at which the channel becomes free,
after all packets that the program has accepted.
"""

from __future__ import annotations

import socket
import struct
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from controller.units import ppm_from_fraction
from lab.engines.mininet.kernel.bpf import Map
from lab.radio import contention, dcf
from lab.radio.cell import Cell, Station
from lab.radio.wifi import byte_price_ps, fixed_ns

PINS = Path("/run/multipath-lab/bpf")  # where programs and maps are pinned, a folder per cell
LAYOUT = struct.Struct("=IxxxxQQQQQQQ")  # struct cell
ZERO = struct.pack("=I", 0)  # the only key of the map


@dataclass(frozen=True)
class Clock:
    """A copy of the state of a WiFi cell's virtual clock.

    The virtual clock says until when the radio channel is busy. Each packet advances the clock by
    the airtime of the packet.

    - `next_free_ns`: when the next downlink packet can start [ns of CLOCK_MONOTONIC]
    - `uplink_free_ns`: when the next uplink packet can start [ns of CLOCK_MONOTONIC]
    - `busy_ns`: airtime of all packets accepted since the start of the clock
    - `drops`, `sent`: number of packets dropped and accepted since the start of the clock
    """

    next_free_ns: int
    uplink_free_ns: int
    busy_ns: int
    drops: int
    sent: int


class CellClock:
    """The virtual clock of the WiFi cell of the access point `ap`, in a pinned eBPF map."""

    def __init__(self, ap: str) -> None:
        self._map = Map(PINS / ap / "cells", 4, LAYOUT.size)

    def start(self, limit_ns: int) -> None:
        """Set the clock and its counters to zero.

        `limit_ns` is the longest time that a packet may wait for the channel. The cell drops a
        packet that would have to wait longer.
        """
        self._map.write(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0), locked=True)

    def start_command(self, limit_ns: int) -> list[str]:
        """Return the bpftool command that does the same as `start`, for the script commands.sh."""
        return self._map.update_command(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0))

    def read(self) -> Clock:
        raw = self._map.read(ZERO, locked=True)
        _lock, next_free_ns, uplink_free_ns, _limit, _airtime, *counters = LAYOUT.unpack(raw)
        return Clock(next_free_ns, uplink_free_ns, *counters)


STATION = struct.Struct("=QQQQQQ")  # struct station
COLLISIONS = struct.Struct("=II")  # struct collisions
MAX_STATIONS = 256  # entries of the map


@dataclass(frozen=True)
class Activity:
    """When a station used the channel of its WiFi cell [ns of CLOCK_MONOTONIC].

    - `busy_until_ns`: end of the latest uplink packet
    - `first_ns`: end of the first packet in either direction since the station joined the cell; 0
      if there was none
    """

    busy_until_ns: int
    first_ns: int


class CellMembers:
    """The stations of the WiFi cell of the access point `ap`, in pinned eBPF maps.

    A station is identified by its IPv4 address. `pins` is the folder where the maps are pinned; the
    default is `PINS`/AP.
    """

    def __init__(self, ap: str, pins: Path | None = None) -> None:
        folder = pins or PINS / ap
        self._stations = Map(folder / "stations", 4, STATION.size)
        self._air = Map(folder / "air", 4, COLLISIONS.size)

    def set(self, address: str, station: Station) -> None:
        """Write the airtime of a station's packets, computed from its rate. A new station is added.

        `address` is the IPv4 address of the station.
        """
        key = socket.inet_aton(address)
        before = self._stations.find(key) or bytes(STATION.size)
        *_, busy_until_ns, first_ns = STATION.unpack(before)
        ways = [station.way(each) for each in ("down", "up")]
        prices = [price for each in ways for price in (byte_price_ps(each), fixed_ns(each))]
        self._stations.write(key, STATION.pack(*prices, busy_until_ns, first_ns))

    def remove(self, address: str) -> None:
        """Remove a station by its IPv4 address. Its packets no longer occupy the channel."""
        self._stations.delete(socket.inet_aton(address))

    def activity(self) -> dict[str, Activity]:
        """Return the activity of every station, by IPv4 address."""
        return {
            socket.inet_ntoa(key): Activity(*STATION.unpack(value)[4:])
            for key, value in self._stations.items(MAX_STATIONS)
        }

    def commands(self) -> list[list[str]]:
        """Return bpftool commands that write the stations and the collisions, for commands.sh."""
        return [
            self._air.update_command(ZERO, self._air.read(ZERO)),
            *(
                self._stations.update_command(key, STATION.pack(*STATION.unpack(value)[:4], 0, 0))
                for key, value in self._stations.items(MAX_STATIONS)
            ),
        ]

    def sharing(self, cell: Cell) -> CellMembers:
        """Return the stations of the access point of `cell`, which sends on the same channel."""
        return self

    def set_collisions(self, transmissions: float, loss: float) -> None:
        """Set the effect of collisions on all packets of this cell.

        `transmissions` is the mean number of times that a frame is transmitted. `loss` is the
        fraction of frames that are lost, from 0 to 1.
        """
        ppm = ppm_from_fraction(transmissions), ppm_from_fraction(loss)
        self._air.write(ZERO, COLLISIONS.pack(*ppm))


MOST_CONTENDERS = 264
WAY = struct.Struct("=8Q")  # struct way
DCF_STATION = struct.Struct("=64s64sQQII")  # struct station in dcf_cell.bpf.c
CHANNEL = struct.Struct(f"=11Q{3 * (MOST_CONTENDERS + 1)}Q{3 * MOST_CONTENDERS}Q4Q")
GROUPS = 1000  # at most; a queue has 1024 entries
ACCESS_POINTS = 8  # the first contenders of a channel


class DcfMembers:
    """The channel of the WiFi cell `cell` with `air: dcf`, and its stations, in pinned eBPF maps.

    A station is identified by its IPv4 address. `pins` is the folder where the maps are pinned.
    """

    def __init__(self, pins: Path, cell: Cell) -> None:
        self._stations = Map(pins / "stations", 4, DCF_STATION.size)
        self._channel = Map(pins / "channels", 4, CHANNEL.size)
        self._written = b""
        self._cell, self._aps = cell, [cell.ap]  # the access points are contenders 0, 1, ...

    def sharing(self, cell: Cell) -> DcfMembers:
        """Return the stations of another access point that sends on the same channel."""
        self._aps.append(cell.ap)
        other = copy(self)
        other._cell = cell
        return other

    def start(self) -> None:
        """Write the times of the channel. Nobody has sent yet."""
        cell = self._cell
        own = dcf.times(cell.standard, cell.rate_scale)
        group = -(-cell.queue_packets // GROUPS)
        table = [0, 0, 0]
        for contenders in range(1, MOST_CONTENDERS + 1):
            means = contention.means(contenders)
            table += map(ppm_from_fraction, (means.idle_slots, means.collisions, means.abandoned))
        times = own.slot_ns, own.access_ns, own.preamble_ns, own.symbol_ns, own.longest_ns
        sizes = own.mac_bytes, own.aggregated, cell.loss_ppm
        limits = group, cell.queue_packets // group, 0
        state = [0] * (3 * MOST_CONTENDERS + 4)
        self._written = CHANNEL.pack(*times, *sizes, *limits, *table, *state)
        self._channel.write(ZERO, self._written)

    def set(self, address: str, station: Station) -> None:
        """Write how long a station's frames take. A new station becomes a contender.

        `address` is the IPv4 address of the station.
        """
        key = socket.inet_aton(address)
        before = self._stations.find(key)
        busy_until_ns = first_ns = 0
        if before:
            *_, busy_until_ns, first_ns, _, own = DCF_STATION.unpack(before)
        else:
            known = self._stations.items(MAX_STATIONS)
            taken = {DCF_STATION.unpack(value)[-1] for _, value in known}
            own = min(set(range(ACCESS_POINTS, MOST_CONTENDERS)) - taken)
        ways = [
            WAY.pack(*dcf.frames(self._cell, station.way(each)).values(), 0, 0, 0, 0, 0)
            for each in ("down", "up")
        ]
        ap = self._aps.index(self._cell.ap)
        self._stations.write(key, DCF_STATION.pack(*ways, busy_until_ns, first_ns, ap, own))

    def remove(self, address: str) -> None:
        """Remove a station by its IPv4 address. Its packets no longer occupy the channel."""
        self._stations.delete(socket.inet_aton(address))

    def activity(self) -> dict[str, Activity]:
        """Return the activity of every station, by IPv4 address."""
        return {
            socket.inet_ntoa(key): Activity(*DCF_STATION.unpack(value)[2:4])
            for key, value in self._stations.items(MAX_STATIONS)
        }

    def commands(self) -> list[list[str]]:
        """Return bpftool commands that write the channel and the stations, for commands.sh."""
        return [
            self._channel.update_command(ZERO, self._written),
            *(
                self._stations.update_command(key, value)
                for key, value in self._stations.items(MAX_STATIONS)
            ),
        ]
