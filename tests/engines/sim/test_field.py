"""The scenarios of public threads show what their files say, also with other seeds and rates."""

from __future__ import annotations

import pytest

from lab.scenario import loading
from lab.scenario.loading import Overrides


def started(simulation_of, name, *settings, seed=2):
    return simulation_of(loading.load(name, Overrides(seed=seed, settings=settings)))


@pytest.mark.parametrize(("seed", "stack"), [(2, "paper"), (3, "linux")])
def test_data_is_missing_after_a_cut_and_not_after_an_address_was_removed(
    simulation_of, seed, stack
):
    simulation = started(
        simulation_of,
        "cut_or_removed",
        f"multipath.stack={stack}",
        "traffic.1.rate_mbps=2",
        seed=seed,
    )
    simulation.run(5)
    simulation.flip("link.cut1.up", False)
    simulation.flip("iface.removed.eth1.up", False)
    frames = simulation.run(2, step_s=0.1)
    empty = {
        user: sum(frame["user"][user]["mbps"] == 0 for frame in frames)
        for user in ("cut", "removed")
    }
    assert empty["removed"] == 0
    assert 2 <= empty["cut"] <= 15
    assert frames[-1]["user"]["cut"]["mbps"] > 1


def test_a_backup_carries_data_only_while_the_first_path_is_down(simulation_of):
    simulation = started(simulation_of, "backup_takes_over", "topology.paths.2.rate_mbps=6")

    def on_backup(seconds):
        return [frame["sf"]["ue1-1/2"]["mbps"] for frame in simulation.run(seconds)]

    assert max(on_backup(5)) == 0
    simulation.flip("link.path1.up", False)
    assert min(on_backup(6)[4:]) > 5
    simulation.flip("link.path1.up", True)
    assert max(on_backup(9)[12:]) == 0


def test_the_bad_line_costs_more_than_it_carries(simulation_of):
    simulation = started(simulation_of, "one_bad_line", "multipath.receive_buffer_kb=3000")
    with_it = simulation.mbps(simulation.run(10))
    simulation.flip("iface.ue1.eth2.up", False)
    assert simulation.mbps(simulation.run(10)[4:]) > with_it + 10
