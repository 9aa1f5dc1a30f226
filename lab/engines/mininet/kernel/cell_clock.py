"""Start and read the virtual clock of a running WiFi cell.

The clock says until when the packets accepted so far occupy the radio channel. The cell's eBPF
program (network/wifi_cell.bpf.c) advances it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet.kernel.bpf import Map

PINS = Path("/run/multipath-lab/bpf")  # where programs and maps are pinned, a folder per cell
LAYOUT = struct.Struct("=IxxxxQQQQQQQ")  # struct cell
ZERO = struct.pack("=I", 0)  # the only key of the map


@dataclass(frozen=True)
class Clock:
    """Hold the state of a cell's clock at one moment; times are in ns of CLOCK_MONOTONIC.

    The next downlink packet can start at `next_free_ns`, the next uplink packet at
    `uplink_free_ns`. Three counters begin with the start of the clock: `busy_ns` is the airtime of
    all accepted packets, `sent` is the number of these packets, and `drops` is the number of
    dropped packets.
    """

    next_free_ns: int
    uplink_free_ns: int
    busy_ns: int
    drops: int
    sent: int


class CellClock:
    """Start and read the virtual clock of the WiFi cell of access point `ap`.

    The clock is the only entry of a pinned eBPF map.
    """

    def __init__(self, ap: str) -> None:
        self._map = Map(PINS / ap / "cells", 4, LAYOUT.size)

    def start(self, limit_ns: int) -> None:
        """Reset the clock and its counters to zero, and set the longest wait of a packet.

        The cell drops a packet that would have to wait longer than `limit_ns`.
        """
        self._map.write(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0), locked=True)

    def start_command(self, limit_ns: int) -> list[str]:
        """Return the command of bpftool that does the same as `start`."""
        return self._map.update_command(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0))

    def read(self) -> Clock:
        """Return the current state of the clock."""
        raw = self._map.read(ZERO, locked=True)
        _lock, next_free_ns, uplink_free_ns, _limit, _airtime, *counters = LAYOUT.unpack(raw)
        return Clock(next_free_ns, uplink_free_ns, *counters)
