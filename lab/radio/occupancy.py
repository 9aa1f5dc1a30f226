"""MAC occupancy: how full the MAC buffer of an access point is, from 0 to 1.

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
    """Return the occupancy of a MAC buffer with 16 slots now: min(1, backlog / 16)."""
    return min(1.0, backlog_packets / MAC_SLOTS)


def wifi_occupancy(downlink_packets: int, waiting_uploads: int) -> float:
    """Return the occupancy of a WiFi access point, from the longer of two backlogs: the packets
    that wait at the access point, and the upload frames that wait at its stations."""
    return occupancy(max(downlink_packets, waiting_uploads))


def waiting_uploads(wait_ns: int, rates_bps: Collection[int]) -> int:
    """Estimate how many upload frames wait at the stations of a WiFi cell: `wait_ns` divided by the
    mean airtime of a full frame.

    `wait_ns` is the time that a new frame would wait for the channel. `rates_bps` has the rate when
    alone of each station that uploads; without any, the result is 0.
    """
    if not rates_bps:
        return 0
    frame_ns = sum(1e9 * FRAME_BITS / rate for rate in rates_bps) / len(rates_bps)
    return round(wait_ns / frame_ns)


def bearer_occupancy(queued_packets: Iterable[int]) -> float:
    """Return the occupancy of one LTE bearer, from the longest of its queues.

    `queued_packets` has the length of the downlink queue and, if the user uploads data, of the
    uplink queue. Leave out the uplink queue of a user that only downloads: it holds
    acknowledgements.
    """
    return occupancy(max(queued_packets))
