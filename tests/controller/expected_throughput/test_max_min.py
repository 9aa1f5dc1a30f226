"""Max-min fair rates on fixed paths, and the form of the strategy that uses them."""

from __future__ import annotations

import pytest
from hosts_that_confirm import Confirming

from controller.command import Expect, SetBackup
from controller.strategies import make
from controller.strategies.expected_throughput import ExpectedThroughput
from controller.strategies.expected_throughput.max_min import max_min_rates
from lab.topologies import collision, fat_tree, pooling

TREE = fat_tree.build(fat_tree.Params())


def fair(capacity, paths, present=None):
    """Rate of each connection; a path is a list of arcs."""
    uses = {name: [dict.fromkeys(path, 1.0) for path in own] for name, own in paths.items()}
    present = present or {name: (0.0,) * len(own) for name, own in paths.items()}
    rates = max_min_rates(capacity, uses, present)
    loads = [0.0] * len(capacity)
    for name, own in paths.items():
        for path, rate in zip(own, rates[name], strict=True):
            for arc in path:
                loads[arc] += rate
    assert all(load <= 1.000001 * most for load, most in zip(loads, capacity, strict=True))
    return {name: sum(rates[name]) for name in paths}


@pytest.mark.parametrize(
    ("capacity", "paths", "expected"),
    [
        ((9, 9), {"a": [[0]], "b": [[0]], "c": [[1]]}, (4.5, 4.5, 9)),
        # Three levels: 1, then 2, then 7
        ((2, 3, 9), {"a": [[0]], "b": [[0, 1]], "c": [[1, 2]], "d": [[2]]}, (1, 1, 2, 7)),
        # A connection with a path of its own leaves the shared arc to the other.
        ((10, 10), {"a": [[0], [1]], "b": [[1]]}, (10, 10)),
        ((4, 10), {"a": [[0], [1]], "b": [[1]]}, (7, 7)),
        # Both paths of a connection cross one arc.
        ((6, 8, 8), {"a": [[0, 1], [0, 2]], "b": [[1]]}, (6, 8)),
        ((0, 5), {"a": [[0]], "b": [[1]]}, (0, 5)),
    ],
)
def test_rates_of_small_networks(capacity, paths, expected):
    found = fair([rate * 1e6 for rate in capacity], paths)
    assert [rate / 1e6 for rate in found.values()] == pytest.approx(expected, rel=1e-4)


def test_rates_that_are_fair_already_are_kept():
    """Each connection may divide its 9 Mb/s over the two equal arcs in any way."""
    paths = {"a": [{0: 1.0}, {1: 1.0}], "b": [{0: 1.0}, {1: 1.0}]}
    present = {"a": (2e6, 7e6), "b": (7e6, 2e6)}
    assert max_min_rates([9e6, 9e6], paths, present) == present


def test_few_rates_change_when_a_connection_comes():
    paths = {"a": [{0: 1.0}, {1: 1.0}], "b": [{2: 1.0}], "c": [{2: 1.0}]}
    present = {"a": (3e6, 8e6), "b": (4e6,), "c": (0.0,)}
    found = max_min_rates([3e6, 8e6, 4e6], paths, present)
    assert found["a"] == present["a"]
    assert (*found["b"], *found["c"]) == pytest.approx((2e6, 2e6), rel=1e-5)


def made(topology):
    return Confirming(topology, ExpectedThroughput(ExpectedThroughput.Params(allocation="max_min")))


@pytest.mark.parametrize(
    ("middle", "rates"),
    [
        ((9, 9, 9, 9), (12, 12, 12)),
        ((10, 8, 8, 10), (12, 12, 12)),  # the paper's form gives 13, 11 and 12
        ((2, 1, 9, 9), (3, 9, 9)),
    ],
)
def test_pooling(middle, rates):
    topology = pooling.build(pooling.Params(middle_mbps=middle))
    network = made(topology)
    network.open(*topology.users)
    total = [sum(network.mbps(user)) for user in topology.users]
    assert total == pytest.approx(rates, rel=1e-4)


def test_the_default_is_the_paper_and_the_improved_form_is_max_min():
    assert make("expected_throughput", {}).params.allocation == "paper"
    assert make("expected_throughput/improved", {}).params.allocation == "max_min"


def test_no_command_is_repeated_and_a_restarted_controller_changes_nothing():
    network = made(TREE)
    network.open(*TREE.users)
    assert network.overload() <= 1.000001
    assert network.step() == []
    network.strategy = ExpectedThroughput(network.strategy.params)
    assert network.step() == []


def test_a_subflow_that_loses_its_share_is_backup_before_its_pacing_ends():
    network = made(collision.build(collision.Params(among="subflows")))
    network.open("ue1")
    network.change("access2", 20_000)
    order = [each.command for each in network.decided if each.subject == "ue1-1/2"]
    assert order == [SetBackup(("ue1-1", 2), True), Expect(("ue1-1", 2), None)]


@pytest.mark.parametrize("connections", [1, 2])
@pytest.mark.parametrize(("part", "stays"), [(0.999, True), (0.997, False), (1.001, False)])
def test_rates_stay_if_they_are_within_a_five_hundredth_and_overload_nothing(
    connections, part, stays
):
    """One connection alone has no competitor, so it gets what the arc carries."""
    names, equal = "ab"[:connections], 9e6 / connections
    present = dict.fromkeys(names, (part * equal,))
    found = max_min_rates([9e6], {name: [{0: 1.0}] for name in names}, present)
    assert (found == present) == stays
    if not stays:
        assert [rate for (rate,) in found.values()] == pytest.approx([equal] * connections, 1e-5)
