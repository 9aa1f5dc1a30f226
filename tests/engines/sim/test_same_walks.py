"""Users of both engines walk the same tracks, and change access points at the same times."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lab.engines.mininet.emulated_network import Stations
from lab.scenario.movement import STEP_S, Movement
from lab.topologies.topology import wire

pytestmark = pytest.mark.whole
SECONDS = 12


def test_users_walk_alike_in_both_engines(simulated):
    fast = ("mobility.speed_min_mps=10", "mobility.speed_max_mps=20")
    simulation = simulated("moving_users", "topology.users=12", *fast)
    frames = simulation.run(SECONDS)
    topology = simulation.scenario.network
    ignored = SimpleNamespace(set_station=lambda *_: None, remove_station=lambda *_: None)
    stations = Stations(topology, wire(topology), ignored)
    handovers, walked = [], []
    movement = Movement(
        topology,
        simulation.scenario.mobility,
        simulation.scenario.seed,
        stations,
        lambda *handover: handovers.append(handover),
    )
    for step in range(round(SECONDS / STEP_S) + 1):
        movement.step(step * STEP_S)
        walked.append(dict(movement.places))
    simulated_handovers = [
        (event["user"], event["from"], event["to"], event["rssi_dbm"])
        for event in simulation.notes.events
        if event["kind"] == "handover"
    ]
    assert len(handovers) > 3
    assert handovers == simulated_handovers
    assert stations.stations == simulation.engine.cells.stations
    for step, frame in enumerate(frames, 1):
        for user, sample in frame["user"].items():
            place = tuple(round(metres, 2) for metres in walked[step][user])
            assert (sample["x_m"], sample["y_m"]) == place
