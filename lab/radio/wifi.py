"""The air of a WiFi cell in numbers: what a byte costs, and how long a backlog may grow. Pure.

Both engines run the same virtual clock on them (`lab/engines/mininet/network/wifi_cell.bpf.c` describes it).
"""

from __future__ import annotations

from lab.topologies.topology import Cell, Station

FRAME_BYTES = 1514  # a full Ethernet frame


def price_ps(rate_bps: int, contention: float = 1.0) -> int:
    """Picoseconds of air per byte of a station: k(n) x 8 bits / rate (MP-SDN eq (1)), k = mean transmissions per packet."""
    return round(contention * 8 * 10**12 / rate_bps)


def fixed_ns(station: Station) -> int:
    """What every frame of a station takes of the air, whatever its length."""
    return round(station.overhead * FRAME_BYTES * 8 * 1e9 / station.rate_bps)


def byte_price_ps(station: Station) -> int:
    """Picoseconds of air per byte beyond that, so that a full frame goes at the station's rate."""
    return round((1 - station.overhead) * 8 * 10**12 / station.rate_bps)


def limit_ns(cell: Cell) -> int:
    """How long a backlog may grow: the cell's queue of full frames at its best rate."""
    return round(cell.queue_packets * FRAME_BYTES * 8 * 1e9 / cell.capacity_bps)
