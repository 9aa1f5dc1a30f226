"""Costs and benefits of MP-SDN for users of today's kernel, in the paper's form and in the improved
one."""

from __future__ import annotations

import pytest

from lab.scenario import loading
from lab.scenario.loading import Overrides

from .conftest import Simulation

FORMS = ("meter_throttling", "meter_throttling/improved")


def on_testbed(strategy: str, *settings: str, seed: int = 1) -> Simulation:
    settings = ("multipath.scheduler=linux", *settings)
    return Simulation(
        loading.load("testbed_wifi_lte", Overrides(strategy, seed=seed, settings=settings))
    )


def test_the_improved_form_costs_multipath_users_at_most_a_tenth():
    users = ("ue1", "ue2", "ue3", "ue4")

    def means(strategy: str, *settings: str) -> dict[str, float]:
        frames = [
            each
            for seed in (1, 2, 7)
            for each in on_testbed(strategy, *settings, seed=seed).run(40)
        ]
        return {user: sum(each["user"][user]["mbps"] for each in frames) for user in users}

    single = means("none", "topology.multipath=[]")
    paper, ours = map(means, FORMS)
    assert paper["ue2"] < 0.9 * single["ue2"]
    assert all(ours[user] >= 0.9 * single[user] for user in users)


@pytest.mark.parametrize("strategy", FORMS)
def test_a_user_whose_primary_path_fails_is_not_held_at_the_floor(strategy):
    """UE2 is near WiFi. When WiFi is cut off, LTE becomes its primary access point."""
    run = on_testbed(strategy, "topology.multipath=[ue2]")
    assert run.mbps(run.run(6), "ue2") > 5
    run.flip("link.wifi.up", False)
    run.run(6)
    assert run.mbps(run.run(6), "ue2") > 5
    run.flip("link.wifi.up", True)
    run.run(4)
    assert run.engine.controller.tiers["ue2", "wifi1"] == 1


@pytest.mark.parametrize(("scenario", "user"), [("idle_wifi", "ue3"), ("idle_lte", "ue2")])
def test_the_improved_form_takes_what_is_idle_too(scenario, user):
    """UE1 and UE2, or UE3 and UE4, need little, so the other path of `user` has room."""

    def mean(strategy: str) -> float:
        settings = ("multipath.scheduler=linux",)
        run = Simulation(loading.load(scenario, Overrides(strategy, seed=3, settings=settings)))
        return run.mbps(run.run(40), user)

    paper, ours = map(mean, FORMS)
    assert ours > 0.97 * paper
