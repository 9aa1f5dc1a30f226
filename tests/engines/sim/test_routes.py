"""The simulator chooses the same paths as the emulation's controller."""

from __future__ import annotations

import json

import pytest

from controller.paths import Flow, Path
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router
from controller.topology import read
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.topologies.topology import as_json, wire

from .conftest import Simulation


def started(name: str, seed: int = 1) -> Simulation:
    """Run for 0.1 s, until the first connections have paths."""
    simulation = Simulation(scenario.load(name, Overrides(strategy="none", seed=seed)))
    simulation.run(0.1, 0.1)
    return simulation


def paths_by_flow(simulation: Simulation) -> dict[Flow, Path]:
    return {each.ends.flow: each.path for each in simulation.network.subflows() if each.path}


@pytest.mark.parametrize(
    ("name", "link"),
    [("fat_tree", "c1-a1x1"), ("campus", "a1x1-e1x1"), ("collision_between", "up3")],
)
def test_both_engines_choose_the_same_paths_before_and_after_a_link_breaks(name, link):
    simulation = started(name)
    topology = simulation.network.tables.topology
    network = read(json.dumps(as_json(topology, wire(topology))))
    router = Router(network, Hosts(network))
    before = paths_by_flow(simulation)
    assert before == {flow: router.path(flow) for flow in before}
    simulation.flip(f"link.{link}.up", False)
    router.set_link(link, up=False)
    router.changed()
    after = paths_by_flow(simulation)
    assert after == {flow: router.path(flow) for flow in after}
    assert after == {flow: router.path(flow.back())[::-1] for flow in after}
    assert after != before


def test_another_seed_chooses_other_ports_and_paths():
    chosen = [
        tuple(paths_by_flow(started("collision_within", seed)).values()) for seed in range(1, 7)
    ]
    assert len(set(chosen)) > 1
