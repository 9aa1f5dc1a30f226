"""Compute MAC occupancy: how full the buffer of an access point's MAC is, from 0 to 1. Pure.

Both engines use these functions. WiFi: uplink and downlink share the air, and the longer backlog
counts. LTE: each user has a bearer of its own; a base station's occupancy is the mean over the
bearers that carry Tier 1 (`controller.tiers.tier1_mean`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

MAC_SLOTS = 16  # packets in the MAC's own ring, below the queue
FRAME_BITS = 8 * 1514  # a full Ethernet frame
PERIOD_S = 0.1  # between two measurements; a report gives the mean over its interval


def occupancy(backlog_packets: int) -> float:
    """Return the occupancy of one moment: min(1, backlog / 16)."""
    return min(1.0, backlog_packets / MAC_SLOTS)


def wifi_occupancy(downlink_packets: int, waiting_uploads: int) -> float:
    """Return the occupancy of a WiFi access point: that of the longer backlog.

    `downlink_packets` wait at the access point, `waiting_uploads` at its stations.
    """
    return occupancy(max(downlink_packets, waiting_uploads))


def waiting_uploads(wait_ns: int, rates_bps: Collection[int]) -> int:
    """Return how many frames of uploads wait for the air of a WiFi cell.

    `wait_ns` is how long a frame that joins them now would wait; `rates_bps` are the rates, when
    alone, of the stations that are uploading. A frame takes the mean of these stations' times for a
    full frame.
    """
    if not rates_bps:
        return 0
    frame_ns = sum(1e9 * FRAME_BITS / rate for rate in rates_bps) / len(rates_bps)
    return round(wait_ns / frame_ns)


def bearer_occupancy(queued_packets: Iterable[int]) -> float:
    """Return the occupancy of one LTE bearer: that of its longest queue.

    `queued_packets` has the downlink queue, and for a user that uploads the uplink queue as well.
    The uplink queue of a user that only downloads holds acknowledgements, and is left out.
    """
    return occupancy(max(queued_packets))
