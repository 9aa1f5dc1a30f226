"""Compute the airtimes and the queue limit of a WiFi cell.

Each cell has a virtual clock: it says until when the channel is busy, and every frame advances it
by the frame's airtime. Both engines run this clock with the values computed here;
`lab/engines/mininet/network/wifi_cell.bpf.c` describes it.
"""

from __future__ import annotations

from lab.radio.cell import Cell, Station

FRAME_BYTES = 1514  # a full Ethernet frame


def price_ps(rate_bps: int, contention: float = 1.0) -> int:
    """Return the airtime in ps per byte at this rate: k 8 bits / rate (MP-SDN, eq (1)).

    k is `contention`, the mean number of transmissions of each packet.
    """
    return round(contention * 8 * 10**12 / rate_bps)


def fixed_ns(station: Station) -> int:
    """Return the airtime in ns that every frame of a station takes, whatever its length.

    The airtime of the frame's bytes comes in addition (`byte_price_ps`).
    """
    return round(station.overhead * FRAME_BYTES * 8 * 1e9 / station.rate_bps)


def byte_price_ps(station: Station) -> int:
    """Return a station's airtime in ps per byte, without the fixed part of each frame."""
    return round((1 - station.overhead) * 8 * 10**12 / station.rate_bps)


def limit_ns(cell: Cell) -> int:
    """Return the longest time in ns that a packet may wait for the channel of a cell.

    It is the airtime of a full queue of full-size frames at the best rate of the cell. A packet
    that would wait longer is dropped. It is 0 for a cell without stations.
    """
    if not cell.capacity_bps:
        return 0
    return round(cell.queue_packets * FRAME_BYTES * 8 * 1e9 / cell.capacity_bps)
