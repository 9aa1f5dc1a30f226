"""MAC occupancy, one definition for both engines: how full the MAC's own ring is. Pure."""

from __future__ import annotations

MAC_SLOTS = 16  # the MAC's own ring below the queue
PERIOD_S = 0.1  # between two looks; what is reported is the mean over an interval


def occupancy(backlog_packets: int) -> float:
    """MAC queue occupancy of one moment: min(1, backlog / 16)."""
    return min(1.0, backlog_packets / MAC_SLOTS)
