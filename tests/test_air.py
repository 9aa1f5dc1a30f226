"""`topology.air: dcf`: where it may be used, and that it is another experiment."""

from __future__ import annotations

import pytest

from lab.engines import registry
from lab.engines.mininet.export.script import script
from lab.errors import RequestError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.targets import check_flip, targets

WITH_WIFI = ("testbed_wifi_lte", "thirty_users", "rat_setup_3", "campus", "moving_users")


def scenario(name, *settings, air="dcf"):
    return loading.load(name, Overrides(settings=(f"topology.air={air}", *settings)))


@pytest.mark.parametrize("name", WITH_WIFI)
@pytest.mark.parametrize("engine", ["sim", "mininet"])
def test_both_engines_run_it(name, engine):
    registry.admit(engine, scenario(name), Options(1.0))


@pytest.mark.parametrize("name", WITH_WIFI)
def test_it_is_another_experiment_and_another_network(name):
    usual, cell, dcf = loading.load(name), scenario(name, air="cell"), scenario(name)
    assert loading.experiment(usual, "sim") == loading.experiment(cell, "sim")
    assert loading.experiment(usual, "sim") != loading.experiment(dcf, "sim")
    assert usual.network.sha256() == cell.network.sha256() != dcf.network.sha256()


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
