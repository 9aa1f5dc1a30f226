"""Convert between the units people write (Mb/s, ms, fractions) and the integers used inside.

No other module converts units. Rates inside are bit/s, times ns, loss parts per million.
"""

from __future__ import annotations

NS_PER_S = 1_000_000_000


def bps_from_mbps(mbps: float) -> int:
    """Convert Mb/s to bit/s."""
    return round(mbps * 1_000_000)


def mbps_from_bps(bits_per_second: float) -> float:
    """Convert bit/s to Mb/s."""
    return bits_per_second / 1_000_000


def ns_from_s(seconds: float) -> int:
    """Convert s to ns."""
    return round(seconds * NS_PER_S)


def ns_from_ms(milliseconds: float) -> int:
    """Convert ms to ns."""
    return round(milliseconds * 1_000_000)


def ms_from_ns(nanoseconds: float) -> float:
    """Convert ns to ms."""
    return nanoseconds / 1_000_000


def ppm_from_fraction(fraction: float) -> int:
    """Convert a fraction from 0 to 1 to parts per million."""
    return round(fraction * 1_000_000)


def fraction_from_ppm(parts_per_million: int) -> float:
    """Convert parts per million to a fraction from 0 to 1."""
    return parts_per_million / 1_000_000
