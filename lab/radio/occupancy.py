"""MAC occupancy: how full the MAC buffer of an access point is, from 0 to 1.

In WiFi, downlink and uplink share the channel. The longer of the two backlogs decides the
occupancy. In LTE, each user has a radio bearer, which is a queue of its own. The occupancy of a
base station is the mean over the bearers that carry primary subflows (Tier 1; see
`controller.tiers`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

MAC_SLOTS = 16  # packets in the MAC's own buffer, below the queue
FRAME_BITS = 8 * 1514  # a full Ethernet frame
PERIOD_S = 0.1  # between two measurements; a report gives the mean over its interval


def occupancy(backlog_packets: int) -> float:
    """Return how full a MAC buffer with 16 slots is: min(1, backlog / 16)."""
    return min(1.0, backlog_packets / MAC_SLOTS)


def wifi_occupancy(downlink_packets: int, waiting_uploads: int) -> float:
    """Return the occupancy of a WiFi access point, from the larger of two numbers.

    These are the packets that wait at the access point, and the upload frames that wait at its
    stations.
    """
    return occupancy(max(downlink_packets, waiting_uploads))


def waiting_uploads(wait_ns: int, rates_bps: Collection[int]) -> int:
    """Estimate how many upload frames wait at the stations of a WiFi cell.

    This is `wait_ns`, the time that a new frame would wait for the channel, divided by the mean
    airtime of a full frame. `rates_bps` has a rate for each station that uploads: its rate when no
    other station sends. If `rates_bps` is empty, the result is 0.
    """
    if not rates_bps:
        return 0
    frame_ns = sum(1e9 * FRAME_BITS / rate for rate in rates_bps) / len(rates_bps)
    return round(wait_ns / frame_ns)


def bearer_occupancy(queued_packets: Iterable[int]) -> float:
    """Return the occupancy of one LTE bearer, from the longest of its queues.

    `queued_packets` has the lengths of the downlink queue and of the uplink queue. The uplink queue
    of a user that only downloads must be left out, because it contains only ACKs.
    """
    return occupancy(max(queued_packets))
