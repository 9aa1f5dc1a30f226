"""Radio cells as frozen data: the channel of an access point, and the stations that use it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import log10, pi
from typing import Literal, get_args

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
    """The transmitter of an access point, and how its signal becomes weaker with distance.

    - `standard`: a key of `lab.radio.wifi.STANDARDS`, or "lte"
    - `power_dbm`: transmit power
    - `exponent`: n of the log-distance path loss model
    - `blocks`: number of LTE resource blocks
    - `rate_scale`: factor for all rates that follow from the signal
    """

    standard: str
    carrier_mhz: int
    power_dbm: float
    exponent: float
    blocks: int = 0
    rate_scale: float = 1.0

    def rssi_dbm(self, distance_m: float) -> float:
        """Return the received signal strength at a distance, by the log-distance path loss model.

        Distances below 1 m count as 1 m.
        """
        at_1_m_db = 20 * log10(4 * pi * self.carrier_mhz * 1e6 / LIGHT_MPS)
        return self.power_dbm - at_1_m_db - 10 * self.exponent * log10(max(NEAREST_M, distance_m))


def snr_db(rssi_dbm: float, bandwidth_hz: float, noise_figure_db: float) -> float:
    return rssi_dbm - (THERMAL_DBM_HZ + 10 * log10(bandwidth_hz) + noise_figure_db)


Towards = Literal["down", "up"]  # to a station, or from it
BOTH_WAYS = frozenset(get_args(Towards))


@dataclass(frozen=True)
class Station:
    """A user of a radio cell.

    It can also be a relay: a switch that forwards packets of hosts behind it.

    - `user`: ID of the user or of the relay
    - `rate_bps`: rate when no other station sends
    - `weight`: LTE resource weight (MP-SDN, eq (3))
    - `overhead`: the fraction of a full frame's airtime that does not depend on the frame's length
    - `delay_ns`: one way; only for LTE
    - `up_bps`: rate from the station, if it is not `rate_bps`
    """

    user: str
    rate_bps: int
    weight: float = 1.0
    overhead: float = 0.0
    rssi_dbm: float | None = None
    delay_ns: int = 0
    up_bps: int | None = None

    def way(self, towards: str) -> Station:
        """Return the station with the rate of one direction, "down" or "up"."""
        rate_bps = self.rate_bps if towards == "down" or self.up_bps is None else self.up_bps
        return replace(self, rate_bps=rate_bps, up_bps=None)

    def with_rate(self, rate_bps: int, ways: Collection[Towards] = BOTH_WAYS) -> Station:
        """Return the station with another rate in these directions."""
        down_bps = rate_bps if "down" in ways else self.rate_bps
        up_bps = rate_bps if "up" in ways else self.way("up").rate_bps
        return replace(self, rate_bps=down_bps, up_bps=None if up_bps == down_bps else up_bps)


@dataclass(frozen=True)
class Cell:
    """The radio channel of an access point, and the stations that share it.

    - `delay_ns`, `jitter_ns`: one way, between the access point and the core network
    - `collisions`: True if WiFi frames can collide; they are then transmitted more often the more
      nodes contend
    - `loss_ppm`: additional loss in both directions
    - `medium`: ID of another access point if this cell uses the same channel and shares its
      airtime; otherwise ""
    - `radio`: computes the rate of a user from its distance; None if users cannot move
    - `best_bps`: rate of a user right at the antenna
    - `air`: model of a WiFi channel; "cell" is a virtual clock (`lab.radio.wifi`), "dcf" goes
      access by access (`lab.radio.dcf`), "wmediumd" is a program that models 802.11, only in the
      emulation (`lab.radio.wmediumd`)
    - `standard`, `rate_scale`: for "dcf", a key of `lab.radio.wifi.STANDARDS`, and the factor of
      all rates
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
    air: Literal["cell", "dcf", "wmediumd"] = "cell"
    standard: str = "11a"
    rate_scale: float = 1.0

    @property
    def capacity_bps(self) -> int:
        """The largest rate that a station can have when it is alone in the cell [bit/s].

        This is `best_bps` if it is set, as in cells whose stations move. Otherwise it is the rate
        of the fastest station.
        """
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
    air: Literal["cell", "dcf"] = "cell",
    standard: str = "11a",
    rate_scale: float = 1.0,
) -> Cell:
    """Return a WiFi cell in which frames can collide. The arguments are fields of `Cell`."""
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
        air=air,
        standard=standard,
        rate_scale=rate_scale,
    )
