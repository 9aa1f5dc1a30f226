"""Compute MAC occupancy: how full the MAC buffer of an access point is, from 0 to 1.

Both engines use these functions. WiFi: downlink and uplink share the channel, and the longer one of
the two backlogs counts. LTE: each user has its own radio bearer (its own queue). The occupancy of a
base station is the mean over the bearers that carry Tier 1 traffic (`controller.tiers`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

MAC_SLOTS = 16  # packets in the MAC's own buffer, below the queue
FRAME_BITS = 8 * 1514  # a full Ethernet frame
PERIOD_S = 0.1  # between two measurements; a report gives the mean over its interval


def occupancy(backlog_packets: int) -> float:
    """Return the occupancy of a MAC buffer with 16 slots at one moment: min(1, backlog / 16)."""
    return min(1.0, backlog_packets / MAC_SLOTS)


def wifi_occupancy(downlink_packets: int, waiting_uploads: int) -> float:
    """Return the occupancy of a WiFi access point, from the longer of its two backlogs.

    `downlink_packets` is the number of packets that wait at the access point, `waiting_uploads` the
    number of upload frames that wait at its stations.
    """
    return occupancy(max(downlink_packets, waiting_uploads))


def waiting_uploads(wait_ns: int, rates_bps: Collection[int]) -> int:
    """Return how many upload frames wait at the stations of a WiFi cell.

    `wait_ns` is the time that a new frame would wait for the channel. `rates_bps` holds, for each
    uploading station, its rate when alone. The result is `wait_ns` divided by the mean airtime of a
    full frame at these rates.
    """
    if not rates_bps:
        return 0
    frame_ns = sum(1e9 * FRAME_BITS / rate for rate in rates_bps) / len(rates_bps)
    return round(wait_ns / frame_ns)


def bearer_occupancy(queued_packets: Iterable[int]) -> float:
    """Return the occupancy of one LTE bearer, from the longest of its queues.

    `queued_packets` holds the length of each queue in packets: the downlink queue and, if the user
    uploads data, the uplink queue. The uplink queue of a user that only downloads holds
    acknowledgements, so it must not be given.
    """
    return occupancy(max(queued_packets))
