"""Compute a user's rate, weight and signal strength in a cell from its distance to the antenna."""

from __future__ import annotations

from lab.radio import lte
from lab.radio.cell import Radio, Station, snr_db
from lab.radio.wifi import FRAME_BYTES, STANDARDS

NOISE_FIGURE_DB = 9.0  # of an LTE user's receiver (3GPP TR 36.942, Table 4.8)


def station(user: str, radio: Radio, distance_m: float) -> Station:
    """Return a `Station` with a user's rate, weight and signal strength at this distance.

    In WiFi, the PHY rate is the fastest that the signal allows. `rate_bps` and `overhead` follow
    from the airtime of a full frame at this PHY rate. In LTE, the rate follows from the CQI, the
    channel quality that the user reports. The weight is this rate divided by the rate at the best
    CQI.
    """
    rssi_dbm = round(radio.rssi_dbm(distance_m), 2)
    if radio.standard == "lte":
        blocks = radio.blocks
        alone = lte.rate_bps(
            lte.cqi(snr_db(rssi_dbm, blocks * lte.BLOCK_HZ, NOISE_FIGURE_DB)), blocks
        )
        weight = round(alone / lte.rate_bps(len(lte.EFFICIENCIES), blocks), 6)
        return Station(user, round(alone * radio.rate_scale), weight, rssi_dbm=rssi_dbm)
    standard = STANDARDS[radio.standard]
    phy_mbps = standard.rate_mbps(rssi_dbm)
    frame_us = standard.frame_us(phy_mbps)
    rate_bps = round(8 * FRAME_BYTES / frame_us * 1e6 * radio.rate_scale)
    return Station(
        user, rate_bps, overhead=round(standard.fixed_us(phy_mbps) / frame_us, 6), rssi_dbm=rssi_dbm
    )


def best_bps(radio: Radio) -> int:
    """Return the rate of a user that is alone in the cell and right at the antenna [bit/s]."""
    return station("", radio, 0.0).rate_bps
