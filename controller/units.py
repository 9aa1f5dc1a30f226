"""Convert between Mb/s and bit/s, between s, ms and ns, and between fractions and ppm.

Users read and write rates in scenario units. The emulated or simulated network carries each rate
multiplied by `rate_scale`: the product is the wire rate.
"""

from __future__ import annotations

NS_PER_S = 1_000_000_000


def bps_from_mbps(mbps: float) -> int:
    return round(mbps * 1_000_000)


def mbps_from_bps(bits_per_second: float) -> float:
    return bits_per_second / 1_000_000


def wire_bps(mbps: float, rate_scale: float) -> int:
    """Convert Mb/s in scenario units to bit/s on the wire, which is `rate_scale` times as much."""
    return bps_from_mbps(mbps * rate_scale)


def scenario_mbps(rate_bps: float, rate_scale: float) -> float:
    """Convert a wire rate (scenario rate times `rate_scale`) to Mb/s in scenario units."""
    mbps = mbps_from_bps(rate_bps)
    return mbps if rate_scale == 1 else round(mbps / rate_scale, 6)


def rate_text(rate_bps: float, rate_scale: float) -> str:
    """Format a wire rate in scenario units with three significant digits: "2.25 Mb/s"."""
    return f"{scenario_mbps(rate_bps, rate_scale):.3g} Mb/s"


def ns_from_s(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def ns_from_ms(milliseconds: float) -> int:
    return round(milliseconds * 1_000_000)


def ms_from_ns(nanoseconds: float) -> float:
    return nanoseconds / 1_000_000


def ppm_from_fraction(fraction: float) -> int:
    return round(fraction * 1_000_000)


def fraction_from_ppm(parts_per_million: int) -> float:
    return parts_per_million / 1_000_000
