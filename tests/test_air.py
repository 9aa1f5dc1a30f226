"""`topology.air`: which model a WiFi channel has, where, and which experiment that makes it."""

from __future__ import annotations

import shutil

import pytest
import yaml

from lab.engines import registry
from lab.engines.mininet.export.script import script
from lab.errors import RequestError
from lab.run.engine import Options
from lab.run.recorder import write_scenario
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.targets import check_flip, targets
from lab.topologies.families import BUILT_IN, TOPOLOGIES

WITH_WIFI = ("testbed_wifi_lte", "thirty_users", "rat_setup_3", "campus", "moving_users")
BY_EQUATIONS = {
    *("testbed_wifi_lte", "idle_lte", "idle_wifi"),
    *("thirty_users", "demand_swap", "moving_users"),
    *("rat_setup_1", "rat_setup_2", "rat_setup_3"),
}
USERS = {"users": [{"id": "ue1", "wifi_mbps": 20}]}
OWN = {"wifi_lte": USERS, "campus": USERS, "wireless_set": {"users": 3}, "rat_setup": {"setup": 3}}
EXPERIMENTS_OF_CELL = {  # with seed 1 and rate scale 1, when `cell` was the default
    "testbed_wifi_lte": "a6df44735b4200557eb97503cfca18d17048c5507aca1b7c826ccbe4f878f19b",
    "thirty_users": "a50cf455eb1cf981895cc065c6956e4737f781440d24418e879272c1819ecc54",
    "rat_setup_3": "28e1a5604ef4ed89294be39bcb4dad6deb9ba4db7fa9bd7ac21bba6c5bf661b8",
    "campus": "8b4c2fbd78579db87a58acd15dc4608476c3c665894db248e7909ef4893800c2",
    "wifi_walk": "7612ccfee9ec5a7a69d54d6bfdf1505451b0410158b7c5a22e38c3124f0ea667",
}


def scenario(name, *settings, air="dcf"):
    return loading.load(name, Overrides(settings=(f"topology.air={air}", *settings)))


def own(kind, **keys):
    topology = {"kind": kind, **OWN[kind], **keys}
    document = {"name": "own", "title": "Own", "topology": topology, "traffic": [{"user": "all"}]}
    return loading.from_data(document, "own.yaml")


def airs(loaded):
    return {cell.air for cell in loaded.network.cells if cell.kind == "wifi"}


def test_these_are_all_kinds_with_wifi():
    assert {*OWN} == {kind for kind in BUILT_IN if "air" in TOPOLOGIES[kind].Params.model_fields}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("engine", ["sim", "mininet"])
def test_a_network_of_ones_own_goes_access_by_access(kind, engine):
    assert airs(own(kind)) == {"dcf"}
    assert airs(own(kind, air="cell")) == {"cell"}
    registry.admit(engine, own(kind), Options(1.0))


def test_the_scenarios_of_the_papers_keep_the_mean_airtimes():
    loaded = {name: loading.load(name) for name in loading.names()}
    with_wifi = {name: airs(each) for name, each in loaded.items() if airs(each)}
    assert {name for name, found in with_wifi.items() if found == {"cell"}} == BY_EQUATIONS
    assert {*with_wifi} > BY_EQUATIONS


@pytest.mark.parametrize("name", WITH_WIFI)
@pytest.mark.parametrize("engine", ["sim", "mininet"])
def test_both_engines_run_it(name, engine):
    registry.admit(engine, scenario(name), Options(1.0))


@pytest.mark.parametrize("name", WITH_WIFI)
def test_it_is_another_experiment_and_another_network(name):
    cell, dcf = scenario(name, air="cell"), scenario(name)
    assert loading.experiment(cell, "sim") != loading.experiment(dcf, "sim")
    assert cell.network.sha256() != dcf.network.sha256()


@pytest.mark.parametrize("name", EXPERIMENTS_OF_CELL)
def test_cell_is_the_experiment_that_it_was_before(name):
    found = scenario(name, "seed=1", "rate_scale=1", air="cell")
    assert loading.experiment(found, "sim") == EXPERIMENTS_OF_CELL[name]


@pytest.mark.parametrize("kind", OWN)
def test_a_run_from_before_there_was_a_choice_had_cell(kind, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    before = own(kind, air="cell")
    write_scenario(run / "scenario.yaml", before)
    document = yaml.safe_load((run / "scenario.yaml").read_text())
    del document["topology"]["air"]
    (run / "scenario.yaml").write_text(yaml.safe_dump(document))
    (run / "manifest.json").write_text("{}")
    for wanted in (run, run / "scenario.yaml"):
        found = loading.load(str(wanted))
        assert airs(found) == {"cell"}
        assert loading.experiment(found, "sim") == loading.experiment(before, "sim")
    shutil.copy(run / "scenario.yaml", tmp_path / "mine.yaml")
    assert airs(loading.load(str(tmp_path / "mine.yaml"))) == {"dcf"}


@pytest.mark.parametrize("air", ["cell", "dcf"])
def test_a_run_names_its_model(air, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write_scenario(run / "scenario.yaml", own("wifi_lte", air=air))
    assert yaml.safe_load((run / "scenario.yaml").read_text())["topology"]["air"] == air
    assert airs(loading.load(str(run))) == {air}


@pytest.mark.parametrize("engine", ["sim", "mininet"])
def test_a_station_cannot_be_faster_than_802_11(engine):
    fast = "topology.users.ue1.wifi_mbps=400"
    registry.admit(engine, scenario("testbed_wifi_lte", fast, air="cell"), Options(1.0))
    with pytest.raises(RequestError, match=r"400 Mb/s of ue1 at wifi1 .* has at most 37"):
        registry.admit(engine, scenario("testbed_wifi_lte", fast), Options(1.0))


def test_a_change_cannot_make_a_station_faster_either():
    target = "cell.wifi1.ue1.rate_mbps"
    most = targets(scenario("testbed_wifi_lte"))[target].maximum
    assert 300 < most < 400
    check_flip(scenario("testbed_wifi_lte"), target, most)
    with pytest.raises(RequestError):
        check_flip(scenario("testbed_wifi_lte"), target, most + 1)


def test_a_script_says_that_it_leaves_the_model_out():
    assert "The model of the WiFi channel is left out" in script(scenario("testbed_wifi_lte"))
