"""Convert between the units people write (Mb/s, ms, fractions) and the integers used inside.

No other module converts units. Rates inside are bit/s, times ns, loss parts per million.
People write and read rates in scenario units. The network carries every rate multiplied by
`rate_scale`: that product is the wire rate.
"""

from __future__ import annotations

NS_PER_S = 1_000_000_000


def bps_from_mbps(mbps: float) -> int:
    """Convert Mb/s to bit/s."""
    return round(mbps * 1_000_000)


def mbps_from_bps(bits_per_second: float) -> float:
    """Convert bit/s to Mb/s."""
    return bits_per_second / 1_000_000


def wire_bps(mbps: float, rate_scale: float) -> int:
    """Convert Mb/s in scenario units to bit/s on the wire."""
    return bps_from_mbps(mbps * rate_scale)


def scenario_mbps(rate_bps: float, rate_scale: float) -> float:
    """Convert bit/s on the wire to Mb/s in scenario units, rounded to a bit/s."""
    mbps = mbps_from_bps(rate_bps)
    return mbps if rate_scale == 1 else round(mbps / rate_scale, 6)


def rate_text(rate_bps: float, rate_scale: float) -> str:
    """Return a wire rate in scenario units as text with three digits: "2.25 Mb/s"."""
    return f"{scenario_mbps(rate_bps, rate_scale):.3g} Mb/s"


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
