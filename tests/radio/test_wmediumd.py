"""Stations get places at which wmediumd gives them the 802.11g rate next to the wanted one."""

from __future__ import annotations

from itertools import pairwise
from math import erfc, hypot, log2, sqrt

import pytest

from lab.radio import wmediumd

# From wmediumd's per.c: modulation and code of each rate; free distances and coefficients of codes.
MODULATION = {
    2: (2, "1/2"),
    6: (2, "1/2"),
    12: (4, "1/2"),
    18: (4, "3/4"),
    24: (16, "1/2"),
    36: (16, "3/4"),
    54: (64, "3/4"),
}
CODES = {
    "1/2": (10, (11, 0, 38, 0, 193, 0, 1331, 0, 7275, 0)),
    "3/4": (5, (8, 31, 160, 892, 4512, 23297, 120976, 624304, 3229885, 16721329)),
}


def choose(n, k):
    """Binomial coefficient as in per.c: 0 for k = 0."""
    value = 1.0
    for i in range(1, min(k, n - k) + 1):
        value *= (n - (min(k, n - k) - i)) / i
    return value if k else 0.0


def frame_loss(phy_mbps, snr_db, size_bytes=1534):
    """Loss of a frame in wmediumd's model."""
    m, code = MODULATION[phy_mbps]
    snr = 10 ** (snr_db / 10)
    if m == 2:
        rho = 0.5 * erfc(sqrt(snr))
    else:
        e = erfc(sqrt(1 / (2 / 3 * (m - 1))) * sqrt(snr))
        rho = (2 * (1 - 1 / sqrt(m)) * e - (1 - 2 / sqrt(m) + 1 / m) * e**2) / log2(m)
    distance, coefficients = CODES[code]
    bad = 0.0
    for d, weight in enumerate(coefficients, distance):
        half = 0.5 * choose(d, d // 2) * (rho * (1 - rho)) ** (d // 2) if d % 2 == 0 else 0.0
        more = sum(choose(d, k) * rho**k * (1 - rho) ** (d - k) for k in range(d // 2 + 1, d + 1))
        bad += weight * (more + half)
    return 1 - (1 - min(1.0, bad)) ** (8 * size_bytes)


@pytest.mark.parametrize(("phy_mbps", "planned_db"), wmediumd.SNR_DB.items())
def test_the_place_gives_the_planned_signal(phy_mbps, planned_db):
    (place,) = wmediumd.places([wmediumd.rate_bps(phy_mbps)])
    assert (place.phy_mbps, wmediumd.snr_db(place.distance_m)) == (phy_mbps, planned_db)


def test_ten_times_the_distance_costs_30_db_and_nothing_is_nearer_than_1_m():
    # Path loss in free space at 1 m and 2412 MHz: 40.1 dB
    assert wmediumd.snr_db(1) == wmediumd.snr_db(0) == 15 - 40 + 91
    assert wmediumd.snr_db(10) == wmediumd.snr_db(1) - 30


def test_at_its_place_a_rate_arrives_and_the_next_one_does_not():
    rates = [phy for phy in wmediumd.SNR_DB if phy != 2]
    for phy_mbps in wmediumd.SNR_DB:
        assert frame_loss(phy_mbps, wmediumd.SNR_DB[phy_mbps]) < 0.01
    for slower, faster in pairwise(rates):
        assert frame_loss(faster, wmediumd.SNR_DB[slower]) > 0.5


def test_2_and_6_mbps_reach_equally_far_so_a_cell_has_only_one_of_them():
    assert wmediumd.phy_rates([1_900_000, 10_500_000]) == [2, 12]
    assert wmediumd.phy_rates([1_900_000, 5_000_000]) == [6, 6]


@pytest.mark.parametrize(
    ("wanted_mbps", "phy_mbps"),
    [(42, 54), (19.1, 24), (16, 18), (10.5, 12), (4.775, 6), (0.5, 2), (100, 54)],
)
def test_the_next_rate_of_80211g_is_chosen(wanted_mbps, phy_mbps):
    assert wmediumd.phy_rates([round(wanted_mbps * 1e6)]) == [phy_mbps]


def test_a_station_alone_gets_the_rate_of_its_frames():
    # 12 Mb/s: 34 us of waiting, 20 us of preamble, 257 symbols of 4 us for 12294 bits
    assert wmediumd.frame_us(12) == 34 + 20 + 257 * 4
    assert wmediumd.rate_bps(12) == pytest.approx(1514 * 8 / 1082e-6, rel=1e-6)


def test_stations_with_equal_rates_are_at_equal_distances_and_apart():
    first, second = wmediumd.places([10_500_000, 10_500_000])
    assert first.distance_m == pytest.approx(second.distance_m)
    assert hypot(first.x_m - second.x_m, first.y_m - second.y_m) > 5
