"""The WiFi cell: load its program, price its stations, read its clock. One virtual clock for a whole cell (see cell.bpf.c)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet import shell
from lab.engines.mininet.bpf import Map
from lab.engines.mininet.ledger import Ledger
from lab.engines.mininet.shaping import MTU_BYTES
from lab.topology import Cell

SOURCE = Path(__file__).with_name("cell.bpf.c")
LAYOUT = struct.Struct("=IxxxxQQQQQQQ")  # struct cell
ZERO = struct.pack("=I", 0)


@dataclass(frozen=True)
class Clock:
    """What the cell's clock says: time until the medium is free, and its counters."""

    next_free_ns: int
    busy_ns: int
    drops: int
    sent: int


def price_ps(rate_bps: int, contention: float = 1.0) -> int:
    """Picoseconds of air per byte of a station: k(n) x 8 bits / rate (MP-SDN eq (1)), k = mean transmissions per packet."""
    return round(contention * 8 * 10**12 / rate_bps)


def limit_ns(cell: Cell) -> int:
    """How long a backlog may grow: the cell's queue of full frames at its best rate."""
    return round(cell.queue_packets * MTU_BYTES * 8 * 1e9 / cell.capacity_bps)


def compile_program(folder: Path) -> Path:
    """Compile cell.bpf.c; returns the object file."""
    target = folder / "cell.bpf.o"
    argv = ["clang", "-O2", "-g", "-target", "bpf", *_include(), "-c", str(SOURCE), "-o", str(target)]
    shell.run(argv, "compile the cell's program")
    return target


def _include() -> list[str]:
    """Debian keeps asm/types.h under the machine's triplet, which clang's bpf target does not search."""
    return [f"-I{folder}" for folder in Path("/usr/include").glob("*-linux-gnu") if (folder / "asm/types.h").exists()]


class AirOf:
    """A running cell."""

    def __init__(self, cell: Cell, program: Path, pins: Path, ledger: Ledger) -> None:
        """Load the program under `pins/AP`, a folder in a bpf file system, and set the buffer's limit."""
        self.cell, self.pins = cell, pins / cell.ap
        ledger.record("pin", path=str(self.pins))
        shell.run(["bpftool", "prog", "loadall", str(program), str(self.pins), "type", "classifier", "pinmaps", str(self.pins)], f"load the cell of {cell.ap}")
        self._clock = Map(self.pins / "cells", 4, LAYOUT.size)
        self._prices = Map(self.pins / "prices", 4, 8)
        self._clock.write(ZERO, LAYOUT.pack(0, 0, 0, limit_ns(cell), 0, 0, 0, 0), locked=True)

    def set_rate(self, address: str, rate_bps: int) -> None:
        """Price a station's packets, both ways."""
        self._prices.write(socket.inet_aton(address), struct.pack("=Q", price_ps(rate_bps)))

    def read(self) -> Clock:
        """The clock now."""
        _lock, next_free_ns, _uplink, _limit, _airtime, busy_ns, drops, sent = LAYOUT.unpack(self._clock.read(ZERO, locked=True))
        return Clock(next_free_ns, busy_ns, drops, sent)
