"""Read the virtual clock of a running WiFi cell (see network/wifi_cell.bpf.c)."""

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
    """Hold the state of a cell's clock: when each direction is free, and its counters."""

    next_free_ns: int
    uplink_free_ns: int
    busy_ns: int
    drops: int
    sent: int


class CellClock:
    """Hold the map of the cell of an access point."""

    def __init__(self, ap: str) -> None:
        self._map = Map(PINS / ap / "cells", 4, LAYOUT.size)

    def start(self, limit_ns: int) -> None:
        """Set the clock to zero, with a limit for the backlog."""
        self._map.write(ZERO, LAYOUT.pack(0, 0, 0, limit_ns, 0, 0, 0, 0), locked=True)

    def read(self) -> Clock:
        """Return the current state of the clock."""
        raw = self._map.read(ZERO, locked=True)
        _lock, next_free_ns, uplink_free_ns, _limit, _airtime, *counters = LAYOUT.unpack(raw)
        return Clock(next_free_ns, uplink_free_ns, *counters)
