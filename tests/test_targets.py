"""Every flip target has a unit and bounds; values outside them are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import RequestError
from lab.radio.mobility import distance_m
from lab.radio.stations import station
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides


def test_targets_of_the_testbed_name_unit_bounds_and_start(load_testbed):
    rows = targets.targets(load_testbed("strategy.name=meter_throttling"))
    assert rows["strategy.cth"].value == 0.85
    assert (rows["strategy.min_rate_mbps"].unit, rows["strategy.min_rate_mbps"].minimum) == (
        "Mb/s",
        0.01,
    )
    assert (rows["cell.wifi1.ue3.rate_mbps"].value, rows["cell.lte1.ue2.rate_mbps"].value) == (
        19.1,
        32.9,
    )  # as in the file, without the rate scale
    assert rows["user.ue1.demand_mbps"].nullable
    assert "link.wifi.up" in rows
    assert "link.wifi.rate_mbps" not in rows  # it has no shape


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        ("cell.wifi1.ue1.rate_mbps", 20, 20.0),
        ("user.ue1.demand_mbps", None, None),
        ("link.lte.up", False, False),
        ("cc", "cubic", "cubic"),
        ("strategy.interval_s", 1, 1.0),
    ],
)
def test_a_valid_value_is_accepted(load_testbed, target, value, expected):
    assert targets.check_flip(load_testbed(), target, value) == expected


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        ("cell.wifi1.ue1.rate_mbps", "20", "'20' is not a number in Mb/s"),
        ("cell.wifi1.ue1.rate_mbps", 0, "0 is not within 0.001 to 10000 Mb/s$"),
        ("cell.wifi1.ue1.rate_mbps", 10001, "10001 is not within 0.001 to 10000 Mb/s$"),
        ("cell.wifi1.ue1.rate_mbps", float("nan"), "is not a number"),
        ("cell.wifi1.ue1.rate_mbps", None, "null is not a number"),
        ("cell.wifi1.ue1.rate_mbps", True, "true is not a number"),
        ("cell.wifi1.ue9.rate_mbps", 1, "did you mean 'cell.wifi1.ue[1-3].rate_mbps'"),
        ("link.lte.up", 1, "neither true nor false"),
        ("cc", "vegas", "choose from reno"),
        ("strategy", "meter_throtling", "did you mean 'meter_throttling'"),
        ("strategy.interval_s", 0, "at least 0.2"),
        ("strategy.interval_s", "2", "is not a number"),
        ("strategy.cth", 0.5, "target 'strategy.cth' is unknown"),
        ("link.wif.up", True, "did you mean 'link.wifi.up'"),
        ("strategy", {"name": "none", "param": {}}, "did you mean 'params'"),
    ],
)
def test_a_wrong_value_is_refused(load_testbed, target, value, message):
    with pytest.raises(RequestError, match=message):
        targets.check_flip(load_testbed(), target, value)


UNITS = {"rate_mbps": "Mb/s", "tier1_mbps": "Mb/s", "demand_mbps": "Mb/s"}
UNITS |= {"delay_ms": "ms", "loss": "fraction", "packets": "packets"}


@pytest.mark.parametrize("name", ["testbed_wifi_lte", "two_paths", "moving_users"])
def test_a_number_has_the_unit_of_its_name_and_may_be_as_large_as_its_bounds(name):
    scenario = loading.load(name)
    rows = targets.targets(scenario)
    numbers = [row for row in rows.values() if row.kind == "number"]
    assert {row.name for row in numbers} == {
        each for each in rows if each.rpartition(".")[2] in UNITS and "strategy" not in each
    }
    for row in numbers:
        assert row.unit == UNITS[row.name.rpartition(".")[2]]
        assert row.help
        for bound, outside in ((row.minimum, -0.001), (row.maximum, 0.001)):
            assert targets.check_flip(scenario, row.name, bound) == bound
            with pytest.raises(RequestError, match=f"{row.name}: .* is not within"):
                targets.check_flip(scenario, row.name, bound + outside)
        assert row.value is None or row.minimum <= row.value <= row.maximum


def test_a_radio_rate_that_follows_from_the_place_cannot_be_set(load_testbed):
    def names(scenario):
        return [each for each in targets.targets(scenario) if each.startswith("cell.")]

    assert "cell.wifi1.ue1.rate_mbps" in names(load_testbed())
    assert not any("wifi" in each for each in names(load_testbed("topology.air=wmediumd")))
    assert all(each.endswith(".tier1_mbps") for each in names(loading.load("moving_users")))


def test_a_limit_of_tier_1_belongs_to_access_points_with_a_radio():
    scenario = loading.load("moving_users")
    limited = {each.split(".")[1] for each in targets.targets(scenario) if ".tier1_mbps" in each}
    assert limited == set(scenario.network.ids("wifi", "lte"))
    for ap in limited:
        assert targets.targets(scenario)[f"cell.{ap}.tier1_mbps"].nullable
        assert targets.check_flip(scenario, f"cell.{ap}.tier1_mbps", None) is None


def test_after_a_change_of_strategy_its_parameters_are_the_targets(load_testbed):
    value = targets.check_flip(load_testbed(), "strategy", "meter_throttling")
    assert value["params"]["cth"] == 0.85
    after = targets.after(load_testbed(), "strategy", value)
    assert targets.check_flip(after, "strategy.cth", 0.3) == 0.3


def test_a_change_has_wire_rates_and_unscaled_parameters(load_testbed):
    scenario = load_testbed("rate_scale=0.25", "strategy.name=meter_throttling")

    def change(target, value):
        return targets.change(scenario, target, value)

    assert change("cell.wifi1.ue1.rate_mbps", 20.0) == targets.SetStationRate(
        "wifi1", "ue1", 5_000_000
    )
    assert change("link.wifi.rate_mbps", 20.0) == targets.SetLinkRate("wifi", 5_000_000)
    assert change("link.wifi.delay_ms", 3.0) == targets.SetLinkDelay("wifi", 3_000_000)
    assert change("link.wifi.loss", 0.05) == targets.SetLinkLoss("wifi", 50_000)
    assert change("link.wifi.up", False) == targets.SetLinkUp("wifi", False)
    assert change("user.ue1.demand_mbps", 8.0) == targets.SetDemand("ue1", 2_000_000)
    assert change("user.ue1.demand_mbps", None) == targets.SetDemand("ue1", None)
    assert change("cell.wifi1.tier1_mbps", 8.0) == targets.SetTier1Demand("wifi1", 2_000_000)
    assert change("cell.wifi1.tier1_mbps", None) == targets.SetTier1Demand("wifi1", None)
    assert change("link.wifi.up", True) == targets.SetLinkUp("wifi", True)
    assert change("cc", "lia") == targets.SetCongestionControl("lia")
    assert change("strategy.min_rate_mbps", 0.2) == targets.SetStrategyParameter(
        "min_rate_mbps", 0.2
    )


def test_loss_in_percent_is_refused_with_the_fraction():
    from lab.scenario.loading import from_data

    raw = {
        "name": "x",
        "title": "x",
        "traffic": [{"user": "ue1"}],
        "topology": {"kind": "parallel_paths", "paths": [{"rate_mbps": 5}]},
    }
    scenario = from_data(raw, "x")
    for value, cure in ((5, ": write 0.05 for 5 %"), (101, ""), (-0.5, "")):
        with pytest.raises(RequestError) as refused:
            targets.check_flip(scenario, "link.path1.loss", value)
        said = f"link.path1.loss: {value:g} is not within 0 to 1 fraction{cure}"
        assert str(refused.value) == said


SQUARE = loading.load(
    "thirty_users",
    Overrides(settings=("topology.users=7", "topology.area_m=90", "topology.multipath_percent=50")),
)
COORDINATE = st.floats(0, 90)


@given(user=st.sampled_from(SQUARE.network.users), x=COORDINATE, y=COORDINATE)
def test_a_user_that_was_put_somewhere_has_the_rates_of_that_place(user, x, y):
    name = f"user.{user}.position"
    value = targets.check_flip(SQUARE, name, [x, y])
    assert value == [x, y]
    assert targets.change(SQUARE, name, value) == targets.SetPlace(user, (x, y))
    now = targets.after(SQUARE, name, value)
    rows = targets.targets(now)
    assert rows[name].value == [x, y]
    aps = {cell.ap: cell for cell in now.network.cells}
    places = {node.id: node.place_m for node in now.network.nodes}
    wifi = [ap for ap in aps if ap != "lte1"]
    mine = {name.split(".")[1] for name in rows if name.endswith(f".{user}.rate_mbps")}
    assert mine - {"lte1"} <= {min(wifi, key=lambda ap: distance_m(places[ap], (x, y)))}
    assert len(mine) == len([name for name in targets.targets(SQUARE) if f".{user}.rate" in name])
    for ap in mine:
        alone = station(user, aps[ap].radio, distance_m(places[ap], (x, y))).rate_bps
        assert rows[f"cell.{ap}.{user}.rate_mbps"].value == pytest.approx(alone / 1e6, abs=1e-6)
    others = [row for row in rows.values() if f".{user}." not in row.name]
    assert others == [
        row for row in targets.targets(SQUARE).values() if f".{user}." not in row.name
    ]
    start = targets.targets(SQUARE)[name].value
    assert targets.targets(targets.after(now, name, start)) == targets.targets(SQUARE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([90.1, 5], "x is 90.1 m, outside the area: write 0 to 90"),
        ([5, -1], "y is -1 m, outside the area: write 0 to 90"),
        ([5, float("nan")], r"\[5, nan\] is no position: write x and y in m, such as \[12, 40\]"),
        ([float("inf"), 5], "is no position"),
        ([5], "is no position"),
        ([5, 5, 5], "is no position"),
        (["5", 5], "is no position"),
        ([True, 5], "is no position"),
        ({"x": 5, "y": 5}, "is no position"),
        (5, "is no position"),
        (None, "null is no position"),
    ],
)
def test_a_place_that_is_none_is_refused(value, message):
    with pytest.raises(RequestError, match=f"user.ue3.position: .*{message}"):
        targets.check_flip(SQUARE, "user.ue3.position", value)


def test_a_user_that_walks_may_also_walk_on():
    scenario = loading.load("moving_users")
    row = targets.targets(scenario)["user.ue3.position"]
    assert (row.value, row.nullable, row.minimum, row.maximum) == (None, True, 0, 200)
    assert targets.check_flip(scenario, row.name, None) is None
    assert targets.change(scenario, row.name, None) == targets.SetPlace("ue3", None)
    assert targets.after(scenario, row.name, [3.0, 4.0]) is scenario  # rates are no targets there


@pytest.mark.parametrize(
    ("name", "instead"),
    [("testbed_wifi_lte", "cell.wifi1.ue2.rate_mbps"), ("pooling", "user.ue2.demand_mbps")],
)
def test_a_place_is_refused_where_radios_have_none(name, instead):
    scenario = loading.load(name)
    with pytest.raises(RequestError) as refused:
        targets.check_flip(scenario, "user.ue2.position", [1, 2])
    for word in ("have no places", "topology.kind: wireless_set", f"set {instead}"):
        assert word in str(refused.value)
