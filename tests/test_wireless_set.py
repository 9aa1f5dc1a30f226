"""Users at random places, and the networks that they use there."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lab.engines import registry
from lab.errors import RequestError
from lab.radio.mobility import distance_m
from lab.run.engine import Options
from lab.scenario import catalogue
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides, from_data, resolved
from lab.scenario.targets import check_flip, targets
from lab.topologies import rat_setup, wireless_set
from lab.topologies.checks import checked
from lab.topologies.topology import wire
from lab.topologies.wireless_set import Params

NEW = ("thirty_users", "demand_swap", "moving_users", "rat_setup_1", "rat_setup_2", "rat_setup_3")


def made(seed: int = 1, **params: object):
    return checked(wireless_set.build(Params(**params), 1.0, seed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("percent", "connections"), [(0, 30), (20, 36), (40, 42), (60, 48), (80, 54)]
)
def test_as_many_connections_as_in_the_paper(percent, connections):
    topology = made(multipath_percent=percent)
    assert sum(len(cell.stations) for cell in topology.cells) == connections
    assert len(topology.multipath) == connections - 30


@pytest.mark.parametrize("seed", range(1, 6))
def test_users_take_wifi_where_it_is_near(seed):
    topology = made(seed)
    places = {node.id: node.place_m for node in topology.nodes if node.place_m}
    for user in topology.users:
        metres = {
            cell.ap: distance_m(places[user], places[cell.ap])
            for cell in topology.cells
            if cell.kind == "wifi"
        }
        nearest = min(metres, key=metres.__getitem__)
        on = [cell.ap for cell in topology.cells if user in {each.user for each in cell.stations}]
        home = next(node.home for node in topology.nodes if node.id == user)
        assert home == (nearest if metres[nearest] < 50 else "lte1")
        assert sorted(on) == (sorted((nearest, "lte1")) if user in topology.multipath else [home])
        assert wire(topology).of(user)[0].link == home


def test_the_seed_places_users_and_nothing_else_does():
    first, again, other = made(1), made(1), made(2)
    assert first == again
    assert {node.place_m for node in first.nodes} != {node.place_m for node in other.nodes}
    few = made(1, users=15, multipath_percent=80)
    assert {node.id: node.place_m for node in few.nodes if node.kind == "user"}.items() <= {
        node.id: node.place_m for node in first.nodes
    }.items()


def test_a_larger_share_keeps_the_multipath_users_of_a_smaller():
    assert set(made(multipath_percent=20).multipath) < set(made(multipath_percent=80).multipath)


def test_users_of_a_larger_area_are_farther_away():
    def weakest(area_m):
        return sum(
            min(s.rate_bps for s in cell.stations)
            for cell in made(area_m=area_m, multipath_percent=100).cells
        )

    assert weakest(300) < weakest(200)


def test_rates_are_scaled():
    whole, quarter = (wireless_set.build(Params(), scale, 1) for scale in (1.0, 0.25))
    for a, b in zip(whole.cells, quarter.cells, strict=True):
        assert [s.rate_bps for s in b.stations] == [
            pytest.approx(s.rate_bps / 4, abs=1) for s in a.stations
        ]
        assert b.capacity_bps == pytest.approx(a.capacity_bps / 4, abs=1)


def test_an_unknown_standard_is_refused():
    with pytest.raises(ValidationError, match="11a"):
        Params(wifi="11b")  # type: ignore[arg-type]


# The setups of the RAT study


def links_of(setup, **params):
    return checked(rat_setup.build(rat_setup.Params(setup=setup, **params)))


def test_paths_of_the_setups_share_what_the_study_says():
    one, two, three = (links_of(setup) for setup in (1, 2, 3))
    assert [each.link for each in wire(one).of("ue1")] == ["wifi2", "lte1"]
    assert [each.link for each in wire(two).of("ue1")] == ["wifi2", "wifi3"]
    assert [cell.medium for cell in two.cells] == ["", "", "", ""]
    assert {cell.ap: cell.medium for cell in three.cells}["wifi3"] == "wifi2"
    assert one.relays == ("n1", "n2", "n3", "n4", "n5") * 2  # stations of wifi1, then of lte1
    for topology in (one, two, three):
        interfaces = wire(topology).interfaces
        assert (
            len({each.address for each in interfaces})
            == len({(each.node, each.name) for each in interfaces})
            == len(interfaces)
        )


def test_a_relay_has_a_radio_in_wifi_and_a_wire_to_the_base_station():
    wiring = wire(links_of(2))
    radio, bearer = wiring.at("n3", "wifi1"), wiring.at("n3", "lte1")
    assert (radio.name, radio.port, radio.address) == ("n3-wlan0", "wifi1-wlan1", "10.0.0.3")
    assert (bearer.name, bearer.port) == ("n3-eth2", "lte1-eth3")
    assert radio.mac == wiring.of("srv3")[0].mac  # a station sends from its own MAC address only
    channels = {each.link for each in wiring.trunks if each.radio}
    assert channels == {f"n{n}wifi1" for n in range(1, 6)}
    assert wiring.hosts_behind("n3") == wiring.of("srv3")


def test_an_interface_can_be_left_out():
    assert [each.link for each in wire(links_of(1, interfaces="lte")).of("ue1")] == ["lte1"]
    assert links_of(1, interfaces="wifi").multipath == ()


@pytest.mark.parametrize(("setup", "round_trip_ms"), [(1, 60), (2, 40), (3, 40)])
def test_round_trips_of_lte(setup, round_trip_ms):
    cells = {cell.ap: cell for cell in links_of(setup).cells}
    legs = 2 if setup == 1 else 1
    assert 2 * legs * cells["lte1"].stations[0].delay_ns == round_trip_ms * 1_000_000


# Scenarios


@pytest.mark.parametrize("name", NEW)
def test_scenarios_say_what_they_are_for(name):
    of = scenario.load(name)
    assert all((of.title, of.paper, of.question, of.expect, of.minutes))
    assert from_data(resolved(of), "again") == of
    assert {flow.user for flow in of.traffic} == set(of.network.users)


@pytest.mark.parametrize("name", NEW)
def test_both_engines_run_them(name):
    of = scenario.load(name)
    registry.admit("mininet", of, Options())
    registry.admit("sim", of, Options(speed=0.0))


def test_the_list_shows_both_engines_for_every_scenario():
    assert {tuple(row["engines"]) for row in catalogue.scenario_rows()} == {("sim", "mininet")}


def test_traffic_of_all_users_at_once():
    settings = (
        "topology.users=15",
        "traffic_direction=up",
        "traffic_parallel=3",
        "traffic_volume_mb=6",
    )
    of = scenario.load("thirty_users", Overrides(settings=settings))
    assert len(of.traffic) == 15
    assert {(flow.kind, flow.direction, flow.parallel, flow.volume_mb) for flow in of.traffic} == {
        ("file", "up", 3, 6)
    }
    assert from_data(resolved(of), "again") == of


def test_the_rate_of_a_moving_station_cannot_be_changed():
    assert "cell.wifi1.tier1_mbps" in targets(scenario.load("moving_users"))
    assert not any(
        name.startswith("cell.") and name.count(".") == 3
        for name in targets(scenario.load("moving_users"))
    )
    assert any(
        name.startswith("cell.") and name.count(".") == 3
        for name in targets(scenario.load("thirty_users"))
    )


def test_a_demand_may_end():
    of = scenario.load("demand_swap")
    assert check_flip(of, "cell.wifi1.tier1_mbps", None) is None
    with pytest.raises(RequestError, match=r"cell\.wifi1\.tier1_mbps"):
        check_flip(of, "cell.wifi1.tier1_mbps", 0)


def test_mobility_needs_a_topology_with_positions():
    with pytest.raises(
        RequestError, match="mobility: topology 'rat_setup' gives nobody a position"
    ):
        scenario.load("rat_setup_1", Overrides(settings=("mobility={}",)))
