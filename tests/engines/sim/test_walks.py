"""Users that walk: their places, access points and handovers."""

from __future__ import annotations

import pytest

from lab.radio.mobility import distance_m

from .networks import FEW_USERS

pytestmark = pytest.mark.whole


def test_walking_users_are_on_the_nearest_access_point(simulated):
    simulation = simulated(
        "moving_users",
        "topology.users=12",
        "mobility.speed_min_mps=10",
        "mobility.speed_max_mps=20",
    )
    frames = simulation.run(20)
    handovers = [event for event in simulation.notes.events if event["kind"] == "handover"]
    assert len(handovers) > 5
    assert all(
        {"user", "from", "to", "rssi_dbm"} <= set(event) and event["from"] != event["to"]
        for event in handovers
    )
    places = simulation.engine.movement.places
    for ap, user in simulation.engine.cells.stations:
        here = [where for where, who in simulation.engine.cells.stations if who == user]
        assert (
            len(here)
            == len(set(here))
            == (2 if user in simulation.engine.network.tables.topology.multipath else 1)
        )
        if ap != "lte1":
            nearest = min(
                ("wifi1", "wifi2", "wifi3"), key=lambda each: distance_m(places[user], places[each])
            )
            assert ap == nearest
            assert simulation.network.tables.wiring.at(user, ap).port == f"{ap}-wlan1"
    for row in frames[-1]["sf"].values():
        assert (row["ap"], row["user"]) in simulation.engine.cells.stations
    assert all(
        0 <= user[axis] <= 200
        for frame in frames
        for user in frame["user"].values()
        for axis in ("x_m", "y_m")
    )
    assert sum(user["mbps"] for user in frames[-1]["user"].values()) > 10


def test_an_address_and_a_tier_survive_a_handover(simulated):
    simulation = simulated(
        "moving_users",
        "topology.users=12",
        "mobility.speed_min_mps=20",
        "mobility.speed_max_mps=20",
        "strategy.params.categorisation_interval_s=100",
    )
    addresses = {
        (each.node, each.name): each.address for each in simulation.network.tables.wiring.interfaces
    }
    simulation.run(1)

    def tiers():
        kinds = {
            (user, "lte" if ap == "lte1" else "wifi"): tier
            for (user, ap), tier in simulation.engine.controller.tiers.items()
        }
        assert len(kinds) == len(simulation.engine.cells.stations)
        return kinds

    before = tiers()
    simulation.run(15)
    assert any(event["kind"] == "handover" for event in simulation.notes.events)
    assert tiers() == before
    assert {
        (each.node, each.name): each.address for each in simulation.network.tables.wiring.interfaces
    } == addresses


def test_users_without_mobility_have_a_place_too(simulated):
    frame = simulated("thirty_users", *FEW_USERS).run(0.5)[0]
    topology_places = simulated("thirty_users", *FEW_USERS).engine.movement.places
    assert {
        name: (user["x_m"], user["y_m"]) for name, user in frame["user"].items()
    }.items() <= topology_places.items()
