"""Test vectors for MP-SDN, sections III and IV."""

from dataclasses import replace

import pytest

from controller import tiers
from controller.control import Control
from controller.observation import AccessPoint, Arc, Association, Observation, Subflow
from controller.tiers import cut_off

MBPS = 1_000_000
APS = (AccessPoint("lte1", "lte", 46 * MBPS), AccessPoint("wifi1", "wifi", 54 * MBPS))


def seen(
    *connections: tuple[str, str, float], multipath: str = "", weight: float = 1.0
) -> Observation:
    found = tuple(
        Association(user, ap, round(rate * MBPS), weight, (f"10.{ap}.{user}",))
        for user, ap, rate in connections
    )
    return Observation(0, APS, found, frozenset(multipath.split()))


def test_wifi_shares_are_equal_and_the_slow_station_sets_them():
    share = tiers.wifi_share_bps([54 * MBPS, 54 * MBPS, 6 * MBPS])
    assert share == pytest.approx(4.9091 * MBPS, rel=1e-4)


def test_lte_shares_follow_weight_and_rate():
    a, b = Association("a", "lte1", 30 * MBPS, 2), Association("b", "lte1", 12 * MBPS, 1)
    assert tiers.lte_share_bps(a, [b]) == pytest.approx(20 * MBPS)
    assert tiers.lte_share_bps(b, [a]) == pytest.approx(4 * MBPS)


@pytest.mark.parametrize(
    ("contenders", "p", "k"),
    [
        (1, 0, 1),
        (2, 0.1046, 1.1168),
        (3, 0.1781, 1.2166),
        (4, 0.2313, 1.3009),
        (5, 0.2715, 1.3728),
        (8, 0.3502, 1.5389),
        (10, 0.3844, 1.6244),
        (15, 0.4423, 1.7932),
        (20, 0.4809, 1.9263),
        (30, 0.5327, 2.1398),
    ],
)
def test_transmissions_follow_bianchi(contenders, p, k):
    assert tiers.collision_probability(contenders) == pytest.approx(p, abs=1e-4)
    assert tiers.transmissions(contenders) == pytest.approx(k, abs=2e-4)


def test_one_share_of_the_reference_series_with_collisions():
    rates = [54 * MBPS] * 5
    assert 5 * tiers.wifi_share_bps(rates, "bianchi") == pytest.approx(39.34 * MBPS, rel=1e-3)


@pytest.mark.parametrize("preseed", [True, False])
def test_a_weak_wifi_user_takes_lte_as_primary(preseed):
    network = seen(
        *(
            ("u1", "wifi1", 54),
            ("u1", "lte1", 20),
            ("u2", "wifi1", 12),
            ("u2", "lte1", 30),
            ("u3", "wifi1", 48),
        ),
        multipath="u1 u2",
    )
    assert tiers.primaries(network, tiers.Settings(preseed=preseed)) == {
        "u1": "wifi1",
        "u2": "lte1",
    }


@pytest.mark.parametrize(("preseed", "primary"), [(True, "lte1"), (False, "wifi1")])
def test_preseeding_can_change_the_primary(preseed, primary):
    network = seen(("u1", "wifi1", 30), ("u1", "lte1", 20), ("u3", "wifi1", 25), multipath="u1")
    assert tiers.primaries(network, tiers.Settings(preseed=preseed)) == {"u1": primary}


@pytest.mark.parametrize(("mbps", "primary"), [(50, "lte1"), (25, "wifi1")])
def test_without_preseeding_only_faster_single_path_users_share(mbps, primary):
    network = seen(("u1", "wifi1", 30), ("u1", "lte1", 20), ("u3", "wifi1", mbps), multipath="u1")
    assert tiers.primaries(network, tiers.Settings(preseed=False)) == {"u1": primary}


@pytest.mark.parametrize(
    ("multipath_users", "percent"), [(0, 0), (6, 16.67), (12, 28.57), (18, 37.5), (24, 44.44)]
)
def test_the_share_that_connection_filtering_drops(multipath_users, percent):
    assert 100 * tiers.filter_fraction(30, 30 + multipath_users) == pytest.approx(
        percent, abs=0.005
    )


def test_filtering_drops_the_weakest_but_never_a_last_connection():
    single = Association("u9", "wifi1", 6 * MBPS, rssi_dbm=-90)
    weak, strong = (
        Association("u1", "wifi1", 12 * MBPS, rssi_dbm=-80),
        Association("u2", "wifi1", 54 * MBPS, rssi_dbm=-40),
    )
    others = [Association("u1", "lte1", 20 * MBPS), Association("u2", "lte1", 20 * MBPS)]
    left = tiers.filtered([single, weak, strong, *others], ["wifi1", "lte1"])
    assert single in left
    assert weak not in left
    assert strong in left
    assert len(left) == 4  # B_f = 40 %: one of three on wifi1, none of two on lte1


def test_filtering_leaves_each_user_one_connection_when_all_have_two():
    network = seen(
        ("u1", "wifi1", 12),
        ("u1", "lte1", 30),
        ("u2", "wifi1", 54),
        ("u2", "lte1", 20),
        multipath="u1 u2",
    )
    assert tiers.primaries(network, tiers.Settings(selection="filtering")) == {
        "u1": "lte1",
        "u2": "wifi1",
    }


def test_single_path_users_and_primaries_are_tier_1():
    network = seen(("u1", "wifi1", 30), ("u1", "lte1", 20), ("u3", "wifi1", 25), multipath="u1")
    assert tiers.categorise(network) == {("u1", "wifi1"): 2, ("u1", "lte1"): 1, ("u3", "wifi1"): 1}


def test_a_multipath_user_with_one_connection_is_tier_1():
    assert tiers.categorise(seen(("u1", "wifi1", 30), multipath="u1")) == {("u1", "wifi1"): 1}


def behind_links(observation: Observation, *failed: str) -> Observation:
    """Add a server behind one link per access point, and a subflow of each association."""
    arcs = [
        Arc(ap.id, *ends, 100 * MBPS)
        for ap in observation.access_points
        for ends in (("s1", ap.id), (ap.id, "s1"))
        if ap.id not in failed
    ]
    subflows = [
        Subflow(
            f"{each.user}-1", n, each.user, each.ap, "10.0.0.1:5001", f"{each.addresses[0]}:{n}"
        )
        for n, each in enumerate(observation.associations, 1)
    ]
    server = Arc("server", "10.0.0.1", "s1", 100 * MBPS)
    return replace(observation, arcs=(server, *arcs), subflows=tuple(subflows))


@pytest.mark.parametrize("selection", ["priority", "filtering"])
@pytest.mark.parametrize("preseed", [True, False])
def test_an_access_point_without_a_path_to_the_server_is_no_primary(selection, preseed):
    network = seen(("u1", "wifi1", 54), ("u1", "lte1", 20), ("u2", "lte1", 20), multipath="u1")
    settings = tiers.Settings(selection, preseed)
    assert tiers.primaries(behind_links(network), settings) == {"u1": "wifi1"}
    cut = behind_links(network, "wifi1")
    assert cut_off(cut) == {("u1", "wifi1")}
    assert tiers.categorise(cut, settings) == {
        ("u1", "lte1"): 1,
        ("u1", "wifi1"): 2,
        ("u2", "lte1"): 1,
    }
    nothing_left = behind_links(network, "wifi1", "lte1")
    assert tiers.primaries(nothing_left, settings) == {"u1": "wifi1"}


@pytest.mark.parametrize("name", ["meter_throttling", "meter_throttling/improved"])
def test_tiers_are_chosen_anew_when_the_primary_path_fails_and_when_it_comes_back(name):
    network = seen(("u1", "wifi1", 54), ("u1", "lte1", 20), multipath="u1")
    control = Control(name, {"categorisation_interval_s": 100})
    primary = [
        control.step(
            replace(behind_links(network, *failed), now_ns=n * 2 * 10**9)
        ).observation.tiers
        for n, failed in enumerate(((), ("wifi1",), ("wifi1",), ()))
    ]
    assert [each["u1", "lte1"] for each in primary] == [2, 1, 1, 2]
    assert [each["u1", "wifi1"] for each in primary] == [1, 2, 2, 1]


def test_only_multipath_users_count_as_cut_off():
    network = seen(("u1", "wifi1", 54), ("u1", "lte1", 20), ("u2", "lte1", 20), multipath="u1 u9")
    assert cut_off(behind_links(network, "lte1")) == {("u1", "lte1")}
    assert cut_off(network) == frozenset()
