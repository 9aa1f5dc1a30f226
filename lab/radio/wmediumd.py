"""Choose the places of WiFi stations under wmediumd, so that each gets the rate of its scenario.

wmediumd is a program that models the 802.11 medium: it decides when each frame is on the air, and
which frames are lost. The loss of a frame follows from the signal-to-noise ratio and from the rate
at which the frame is sent. The rate control of the kernel (minstrel) then finds the fastest rate
that arrives. So the place of a station decides its rate, and only rates of 802.11g are possible.

wmediumd can compute the signal from places itself, but its path loss reads a frequency that it has
never set. The same log-distance formula is therefore here, and wmediumd is given the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, cos, hypot, log10, pi, radians, sin

from lab.radio.cell import LIGHT_MPS

MAX_STATIONS = 5  # wmediumd handles each frame in user space
NOISE_DBM, POWER_DBM, EXPONENT, CARRIER_MHZ = -91, 15, 3.0, 2412  # the noise is wmediumd's
AT_1_M_DB = 20 * log10(4 * pi * CARRIER_MHZ * 1e6 / LIGHT_MPS)
# a rate of 802.11g in Mb/s, and a signal-to-noise ratio in dB with which wmediumd loses fewer than
# 1 % of the full frames at this rate, but more than half of those at the next faster rate
SNR_DB = {2: 5, 6: 5, 12: 8, 18: 11, 24: 14, 36: 18, 54: 26}
ACCESS_US, PREAMBLE_US, SYMBOL_US = 34, 20, 4  # DIFS; wmediumd adds no backoff to a first try
FRAME_BYTES = 1514  # a full Ethernet frame
ADDED_BYTES, SERVICE_BITS = 20, 22  # 802.11 header and LLC instead of Ethernet's header
BETWEEN_DEGREES = 10  # the angle between two stations, seen from the access point


@dataclass(frozen=True)
class Place:
    """The place of a station, with the access point at (0, 0). `phy_mbps` is the rate of 802.11g at
    which its frames are sent."""

    x_m: float
    y_m: float
    phy_mbps: int

    @property
    def distance_m(self) -> float:
        return hypot(self.x_m, self.y_m)


def frame_us(phy_mbps: float) -> float:
    """Return how long a full Ethernet frame, sent once at `phy_mbps`, keeps wmediumd's medium
    busy."""
    bits = SERVICE_BITS + 8 * (FRAME_BYTES + ADDED_BYTES)
    return ACCESS_US + PREAMBLE_US + SYMBOL_US * ceil(bits / (SYMBOL_US * phy_mbps))


def rate_bps(phy_mbps: float) -> int:
    """Return the rate of full Ethernet frames, in bit/s, of a station that is alone on the
    medium."""
    return round(8 * FRAME_BYTES * 1e6 / frame_us(phy_mbps))


def phy_rates(wanted_bps: Iterable[int]) -> list[int]:
    """Return for each wanted rate the rate of 802.11g in Mb/s that comes nearest to it, for a
    station that is alone.

    A cell has either 2 or 6 Mb/s, which reach equally far: if both are among the results, 6
    replaces 2.
    """
    chosen = [min(SNR_DB, key=lambda phy: abs(rate_bps(phy) - wanted)) for wanted in wanted_bps]
    return [6 if phy == 2 and 6 in chosen else phy for phy in chosen]


def snr_db(distance_m: float) -> int:
    """Return the signal-to-noise ratio of two radios at this distance (at least 1 m), in
    whole dB."""
    loss_db = AT_1_M_DB + 10 * EXPONENT * log10(max(1.0, distance_m))
    return round(POWER_DBM - loss_db - NOISE_DBM)


def places(alone_bps: Iterable[int]) -> list[Place]:
    """Return a place for each station of a cell, from the rates in bit/s that they have when
    alone."""
    found = []
    for number, phy_mbps in enumerate(phy_rates(alone_bps)):
        loss_db = POWER_DBM - NOISE_DBM - SNR_DB[phy_mbps]
        distance_m = 10 ** ((loss_db - AT_1_M_DB) / (10 * EXPONENT))
        angle = radians(BETWEEN_DEGREES * number)
        found.append(Place(distance_m * cos(angle), distance_m * sin(angle), phy_mbps))
    return found
