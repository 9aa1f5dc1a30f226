"""Convert between Mb/s and bit/s, between s, ms and ns, and between fractions and ppm.

Users read and write rates as in the scenario file (scenario units). The emulated or simulated
network carries each rate multiplied by `rate_scale`: the product is the rate on the wire.
"""

from __future__ import annotations

NS_PER_S = 1_000_000_000
STOPPED_BPS = 8  # a rate of 0 on the wire: a full frame would take 25 minutes


def bps_from_mbps(mbps: float) -> int:
    return round(mbps * 1_000_000)


def mbps_from_bps(bits_per_second: float) -> float:
    return bits_per_second / 1_000_000


def wire_bps(mbps: float, rate_scale: float) -> int:
    """Convert a rate of the scenario file in Mb/s to the rate on the wire in bit/s.

    The rate on the wire is `rate_scale` times as large.
    """
    return bps_from_mbps(mbps * rate_scale)


def scenario_mbps(rate_bps: float, rate_scale: float) -> float:
    """Convert a rate on the wire in bit/s to the rate in the scenario file in Mb/s.

    The rate on the wire is `rate_scale` times as large.
    """
    mbps = mbps_from_bps(rate_bps)
    return mbps if rate_scale == 1 else round(mbps / rate_scale, 6)


def rate_text(rate_bps: float, rate_scale: float) -> str:
    """Format a rate on the wire as the rate in the scenario file, such as "2.25 Mb/s".

    The number is `rate_bps` / `rate_scale` in Mb/s, with three significant digits.
    """
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
