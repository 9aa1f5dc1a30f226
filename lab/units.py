"""Between people's units and the integers inside; nothing else converts."""

from __future__ import annotations


def bps(mbps: float) -> int:
    """Mb/s to bit/s."""
    return round(mbps * 1_000_000)


def mbps(bits_per_second: float) -> float:
    """bit/s to Mb/s."""
    return bits_per_second / 1_000_000


def ns(milliseconds: float) -> int:
    """ms to ns."""
    return round(milliseconds * 1_000_000)


def ms(nanoseconds: float) -> float:
    """ns to ms."""
    return nanoseconds / 1_000_000


def ppm(fraction: float) -> int:
    """A fraction from 0 to 1 to parts per million."""
    return round(fraction * 1_000_000)


def fraction(parts_per_million: int) -> float:
    """Parts per million to a fraction from 0 to 1."""
    return parts_per_million / 1_000_000
