"""Throughput of a saturated 802.11a cell in Bianchi's model (JSAC 18(3), 2000).

This is the whole model: an idle slot, a success and a collision have lengths of their own, and
frames that collide use the air at the same time. It shares no code with the lab's cell.
"""

from __future__ import annotations

from math import ceil

WINDOW, STAGES = 16, 6
SLOT_US, SIFS_US, DIFS_US, PREAMBLE_US = 9.0, 16.0, 34.0, 20.0


def attempt_probability(nodes: int) -> float:
    """Probability that a node sends in a slot, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        tau = (low + high) / 2
        p = 1 - (1 - tau) ** (nodes - 1)
        backoff = 1 + WINDOW + p * WINDOW * sum((2 * p) ** stage for stage in range(STAGES))
        low, high = (low, tau) if 2 / backoff < tau else (tau, high)
    return (low + high) / 2


def _symbols_us(bits: float, mbps: float) -> float:
    return PREAMBLE_US + 4 * ceil((22 + bits) / (4 * mbps))


def data_us(mbps: float, ip_bytes: int) -> float:
    """Length of a frame with an IP packet of this size."""
    return _symbols_us(8 * (24 + 8 + ip_bytes + 4), mbps)


def ack_us(mbps: float) -> float:
    """Length of the acknowledgement of a frame sent at this rate."""
    return _symbols_us(8 * 14, max(each for each in (6, 12, 24) if each <= mbps))


def frames_per_s(nodes: list[list[float]], ip_bytes: int) -> float:
    """Frames per second that each node of a saturated cell delivers.

    Each node is a list of rates in Mb/s, at which it sends its frames in turn.
    """
    tau = attempt_probability(len(nodes))
    success = tau * (1 - tau) ** (len(nodes) - 1)
    data = sorted(sum(data_us(mbps, ip_bytes) for mbps in each) / len(each) for each in nodes)
    acks = [sum(map(ack_us, each)) / len(each) for each in nodes]
    slot_us = SLOT_US * (1 - tau) ** len(nodes)
    slot_us += success * (sum(data) + sum(acks) + len(nodes) * (SIFS_US + DIFS_US))
    for shorter, longest_us in enumerate(data):  # the longest of the frames that collide
        longer = len(nodes) - 1 - shorter
        collides = tau * (1 - tau) ** longer * (1 - (1 - tau) ** shorter)
        slot_us += collides * (longest_us + DIFS_US)
    return 1e6 * success / slot_us
