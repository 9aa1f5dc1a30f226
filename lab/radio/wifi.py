"""Compute airtimes and the longest backlog of a WiFi cell for the clock that delays its frames.

Both engines run the same clock; `lab/engines/mininet/network/wifi_cell.bpf.c` describes it.
"""

from __future__ import annotations

from lab.radio.cell import Cell, Station

FRAME_BYTES = 1514  # a full Ethernet frame


def price_ps(rate_bps: int, contention: float = 1.0) -> int:
    """Return a station's airtime in ps per byte: k(n) x 8 bits / rate (MP-SDN, eq (1)).

    `contention` is k, the mean number of transmissions of each packet; n is the number of
    contenders.
    """
    return round(contention * 8 * 10**12 / rate_bps)


def fixed_ns(station: Station) -> int:
    """Return the airtime in ns that every frame of a station takes, whatever its length."""
    return round(station.overhead * FRAME_BYTES * 8 * 1e9 / station.rate_bps)


def byte_price_ps(station: Station) -> int:
    """Return a station's airtime in ps per byte, without the fixed part of each frame."""
    return round((1 - station.overhead) * 8 * 10**12 / station.rate_bps)


def limit_ns(cell: Cell) -> int:
    """Return the longest possible backlog of a cell in ns of airtime.

    It is the time that the cell's queue, full of full-size frames, takes at the best rate of the
    cell.
    """
    return round(cell.queue_packets * FRAME_BYTES * 8 * 1e9 / cell.capacity_bps)
