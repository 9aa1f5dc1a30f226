"""Choose positions for WiFi stations, so that wmediumd gives each station its rate.

wmediumd is a program that models the 802.11 medium: it decides when each frame is on the air, and
which frames are lost. The loss of a frame follows from its rate and from the signal-to-noise ratio.
The kernel's rate control (minstrel) finds the fastest rate that arrives. So the position of a
station determines its rate, and only rates of 802.11g are possible.

wmediumd could compute the signal from positions, but its path loss uses a frequency that it never
sets. So this module computes the signal by the same log-distance formula and gives wmediumd the
result.
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
    """The position of a WiFi station. The access point is at (0, 0).

    `phy_mbps` is the 802.11g rate at which the frames of the station are sent.
    """

    x_m: float
    y_m: float
    phy_mbps: int

    @property
    def distance_m(self) -> float:
        return hypot(self.x_m, self.y_m)


def frame_us(phy_mbps: float) -> float:
    """Return how long a full Ethernet frame, sent once, occupies wmediumd's medium [us]."""
    bits = SERVICE_BITS + 8 * (FRAME_BYTES + ADDED_BYTES)
    return ACCESS_US + PREAMBLE_US + SYMBOL_US * ceil(bits / (SYMBOL_US * phy_mbps))


def rate_bps(phy_mbps: float) -> int:
    """Return the rate of full Ethernet frames of a station that is alone on the medium [bit/s]."""
    return round(8 * FRAME_BYTES * 1e6 / frame_us(phy_mbps))


def phy_rates(wanted_bps: Iterable[int]) -> list[int]:
    """Return, for each wanted rate [bit/s], the 802.11g rate [Mb/s] that comes nearest to it.

    The wanted rate is the one that a station gets when it is alone. A cell cannot use both 2 and 6
    Mb/s, because they reach equally far. If both are in the result, 6 replaces 2.
    """
    chosen = [min(SNR_DB, key=lambda phy: abs(rate_bps(phy) - wanted)) for wanted in wanted_bps]
    return [6 if phy == 2 and 6 in chosen else phy for phy in chosen]


def snr_db(distance_m: float) -> int:
    """Return the signal-to-noise ratio between two radios at this distance, in whole dB.

    Distances below 1 m count as 1 m.
    """
    loss_db = AT_1_M_DB + 10 * EXPONENT * log10(max(1.0, distance_m))
    return round(POWER_DBM - loss_db - NOISE_DBM)


def places(alone_bps: Iterable[int]) -> list[Place]:
    """Return a position for each station of a cell.

    `alone_bps` has, for each station, the rate that it should have when it is alone [bit/s].
    """
    found = []
    for number, phy_mbps in enumerate(phy_rates(alone_bps)):
        loss_db = POWER_DBM - NOISE_DBM - SNR_DB[phy_mbps]
        distance_m = 10 ** ((loss_db - AT_1_M_DB) / (10 * EXPONENT))
        angle = radians(BETWEEN_DEGREES * number)
        found.append(Place(distance_m * cos(angle), distance_m * sin(angle), phy_mbps))
    return found
