"""Compute received signal strength over distance with the log-distance path loss model.

    RSSI = transmit power - loss at 1 m - 10 n log10(d)
    loss at 1 m = 20 log10(4 pi f / c)                        (free space)

d is the distance in m, f the carrier frequency, c the speed of light. n is about 2 in the open and
3 to 5 in cities (Rappaport, Wireless Communications, section 4.9); ns-3's WiFi uses 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10, pi

LIGHT_MPS = 299_792_458
NEAREST_M = 1.0  # smallest distance to an antenna
THERMAL_DBM_HZ = -174.0


@dataclass(frozen=True)
class Radio:
    """Hold the properties of an access point's transmitter.

    `standard` is a key of `rates.STANDARDS`, or "lte". `power_dbm` is the transmit power.
    `exponent` is n of the path loss model. `blocks` is the number of LTE resource blocks.
    `rate_scale` multiplies the rates that follow from the signal.
    """

    standard: str
    carrier_mhz: int
    power_dbm: float
    exponent: float
    blocks: int = 0
    rate_scale: float = 1.0

    def rssi_dbm(self, distance_m: float) -> float:
        """Return the strength in dBm of this transmitter's signal at a distance of `distance_m`."""
        at_1_m_db = 20 * log10(4 * pi * self.carrier_mhz * 1e6 / LIGHT_MPS)
        return self.power_dbm - at_1_m_db - 10 * self.exponent * log10(max(NEAREST_M, distance_m))


def snr_db(rssi_dbm: float, bandwidth_hz: float, noise_figure_db: float) -> float:
    """Return the signal-to-noise ratio in dB at a receiver with this bandwidth and noise figure."""
    return rssi_dbm - (THERMAL_DBM_HZ + 10 * log10(bandwidth_hz) + noise_figure_db)
