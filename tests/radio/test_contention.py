"""Collisions, compared with the tables of MP-SDN's model (its notes, sections 2.1 and 8.3)."""

import pytest

from controller.observation import Association
from controller.tiers import lte_share_bps, wifi_share_bps
from lab.radio.contention import RETRY_LIMIT, abandoned, collision, transmissions
from lab.radio.lte import Bearer, shares_bps

BIANCHI = {
    1: (0, 1),
    2: (0.1046, 1.1168),
    3: (0.1781, 1.2166),
    4: (0.2313, 1.3009),
    5: (0.2715, 1.3728),
    8: (0.3502, 1.5389),
    10: (0.3844, 1.6244),
    15: (0.4423, 1.7932),
    20: (0.4809, 1.9263),
    30: (0.5327, 2.1398),
}
WIFI_SERIES = (39.34, 16.13, 11.03, 8.77, 7.49, 6.65)  # 5 strong of 54 Mb/s and m weak of 6
LTE_SERIES = (
    40.0,
    39.15,
    38.33,
    37.56,
    36.82,
    36.11,
)  # 5 strong bearers of 40 Mb/s, weight 4; m weak ones of 5, weight 0.5


@pytest.mark.parametrize("contenders", BIANCHI)
def test_bianchi(contenders):
    p, k = BIANCHI[contenders]
    assert collision(contenders) == pytest.approx(p, abs=5e-5)
    delivered = 1 - abandoned(contenders)
    assert transmissions(contenders) / delivered == pytest.approx(
        k, abs=5e-5
    )  # attempts per frame that gets through


def test_a_frame_is_abandoned_after_the_last_attempt():
    assert abandoned(10) == pytest.approx(0.3844**7, rel=2e-3)
    assert transmissions(10) == pytest.approx(sum(0.3844**n for n in range(RETRY_LIMIT)), rel=1e-3)


def test_one_contender_never_collides():
    assert transmissions(0) == transmissions(0.7) == transmissions(1) == 1


def test_collisions_grow_between_whole_numbers_of_contenders():
    steps = [transmissions(1 + n / 10) for n in range(100)]
    assert steps == sorted(steps)


def test_a_slow_station_lowers_the_rates_of_a_wifi_cell():
    for m, mbps in enumerate(WIFI_SERIES):
        rates = [54_000_000] * 5 + [6_000_000] * m
        assert len(rates) * wifi_share_bps(rates, "bianchi") / 1e6 == pytest.approx(mbps, abs=0.006)


def test_a_slow_user_hardly_lowers_the_rates_of_an_lte_cell():
    for m, mbps in enumerate(LTE_SERIES):
        users = {f"s{n}": (40e6, 4.0) for n in range(5)} | {f"w{n}": (5e6, 0.5) for n in range(m)}
        shares = shares_bps(
            {user: Bearer(rate, weight, True, 0) for user, (rate, weight) in users.items()}
        )
        assert sum(shares.values()) / 1e6 == pytest.approx(mbps, abs=0.006)
        seen = [
            Association(user, "lte1", round(rate), weight) for user, (rate, weight) in users.items()
        ]
        believed = sum(
            lte_share_bps(each, [other for other in seen if other != each]) for each in seen
        )
        assert believed / 1e6 == pytest.approx(mbps, abs=0.006)
