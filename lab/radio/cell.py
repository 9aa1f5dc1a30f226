"""Radio cells as frozen data: the channel of an access point and its stations."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10, pi
from typing import Literal

# Received signal strength over distance (log-distance path loss model):
#
#     RSSI = transmit power - loss at 1 m - 10 n log10(d)
#     loss at 1 m = 20 log10(4 pi f / c)                        (free space)
#
# d is the distance in m, f the carrier frequency, c the speed of light. n is about 2 in the open
# and 3 to 5 in cities (Rappaport, Wireless Communications, section 4.9); ns-3's WiFi uses 3.


LIGHT_MPS = 299_792_458
NEAREST_M = 1.0  # smallest distance to an antenna
THERMAL_DBM_HZ = -174.0


@dataclass(frozen=True)
class Radio:
    """The transmitter of an access point, and the path loss of its signal.

    `standard` is a key of `lab.radio.wifi.STANDARDS`, or "lte". `power_dbm` is the transmit power.
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
        """Return the received signal strength at a distance of `distance_m` (at least 1 m), by the
        log-distance path loss model."""
        at_1_m_db = 20 * log10(4 * pi * self.carrier_mhz * 1e6 / LIGHT_MPS)
        return self.power_dbm - at_1_m_db - 10 * self.exponent * log10(max(NEAREST_M, distance_m))


def snr_db(rssi_dbm: float, bandwidth_hz: float, noise_figure_db: float) -> float:
    return rssi_dbm - (THERMAL_DBM_HZ + 10 * log10(bandwidth_hz) + noise_figure_db)


@dataclass(frozen=True)
class Station:
    """One member of a radio cell.

    `rate_bps` is the rate of the station when it is alone in the cell. `weight` is its LTE resource
    weight (MP-SDN, eq (3)). `overhead` is the part of a frame's airtime that does not depend on the
    frame's length, as a fraction of the airtime of a full frame. `delay_ns` is one way, and for LTE
    only.

    `user` is the id of a user or of a relay. A relay is a switch that forwards packets of hosts
    outside of the cell; a link without rate or delay joins it to the access point.
    """

    user: str
    rate_bps: int
    weight: float = 1.0
    overhead: float = 0.0
    rssi_dbm: float | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class Cell:
    """The radio channel of one access point, which its stations share.

    `delay_ns` and `jitter_ns` are one way, between the access point and the core. `collisions` is
    for WiFi: if True, the number of contending nodes decides how often a frame is transmitted.
    `loss_ppm` is an additional loss in both directions. `medium` is the id of another access point
    if the two are on the same channel and share its airtime.

    `radio` computes a user's rate from the user's distance. Users can move only in cells with a
    `radio`, also from one WiFi cell to another. `best_bps` is the rate of a user at the antenna.

    `air` is the model of a WiFi cell's channel: "cell" is the lab's own (`lab.radio.wifi`),
    "wmediumd" a program with a model of 802.11 (`lab.radio.wmediumd`), in the emulation only.
    """

    ap: str
    kind: Literal["wifi", "lte"]
    stations: tuple[Station, ...]
    queue_packets: int = 150
    delay_ns: int = 0
    jitter_ns: int = 0
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    radio: Radio | None = None
    best_bps: int = 0
    air: Literal["cell", "wmediumd"] = "cell"

    @property
    def capacity_bps(self) -> int:
        """The largest rate in bit/s that a station can have when it is alone in the cell:
        `best_bps` if it is set, as in cells whose stations move, else the rate of the fastest
        station."""
        return self.best_bps or max((station.rate_bps for station in self.stations), default=0)


def wifi_cell(
    ap: str,
    stations: tuple[Station, ...],
    queue_packets: int,
    delay_ns: int,
    *,
    loss_ppm: int = 0,
    medium: str = "",
    radio: Radio | None = None,
    best_bps: int = 0,
) -> Cell:
    """Return a WiFi cell with collisions; the arguments are fields of `Cell`."""
    return Cell(
        ap,
        "wifi",
        stations,
        queue_packets,
        delay_ns,
        collisions=True,
        loss_ppm=loss_ppm,
        medium=medium,
        radio=radio,
        best_bps=best_bps,
    )
