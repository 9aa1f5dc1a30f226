"""Convert between the units that people write (Mb/s, ms, fractions) and those used in the code.

No other module converts units. In the code, rates are in bit/s, times in ns, and loss in parts per
million. People write and read rates in scenario units. The emulated or simulated network carries
each of these rates multiplied by `rate_scale`: the product is the wire rate.
"""

from __future__ import annotations

NS_PER_S = 1_000_000_000


def bps_from_mbps(mbps: float) -> int:
    return round(mbps * 1_000_000)


def mbps_from_bps(bits_per_second: float) -> float:
    return bits_per_second / 1_000_000


def wire_bps(mbps: float, rate_scale: float) -> int:
    """Convert Mb/s in scenario units to bit/s on the wire, multiplied by `rate_scale`."""
    return bps_from_mbps(mbps * rate_scale)


def scenario_mbps(rate_bps: float, rate_scale: float) -> float:
    """Convert a wire rate in bit/s to Mb/s in scenario units, rounded to whole bit/s.

    A wire rate is a rate in scenario units multiplied by `rate_scale`.
    """
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
