"""Between Mb/s, as people write them, and the integers inside."""

from __future__ import annotations

NS_PER_S = 1_000_000_000


def bps(mbps: float) -> int:
    """Mb/s to bit/s."""
    return round(mbps * 1_000_000)


def mbps(bits_per_second: float) -> float:
    """bit/s to Mb/s."""
    return bits_per_second / 1_000_000


def ns(seconds: float) -> int:
    """s to ns."""
    return round(seconds * NS_PER_S)
