"""A new connection gets rates when all its subflows are open, or after one second."""

from __future__ import annotations

import pytest
from hosts_that_confirm import Confirming

from controller.control import Control
from controller.observation import Arc, Observation, Subflow
from controller.strategies.expected_throughput import ExpectedThroughput
from lab.topologies import collision, fat_tree, pooling

FIG_1 = pooling.build(pooling.Params())
WITHIN = collision.build(collision.Params(among="subflows"))


def made(topology, **params):
    return Confirming(topology, ExpectedThroughput(ExpectedThroughput.Params(**params)))


def arrive(network, user, offset_s):
    """Open a user's first subflow, make steps that decide nothing, then open the other subflows."""
    network.open(user, only=1)
    for _ in range(3):
        assert network.step() == []
        network.now_s += offset_s / 3
    network.open(user)
    network.now_s += 3


@pytest.mark.parametrize("offset_s", [0.015, 0.1, 0.25, 0.5, 0.99])
def test_the_offset_between_subflows_makes_no_difference(offset_s):
    network = made(FIG_1)
    for user in FIG_1.users:
        arrive(network, user, offset_s)
    assert [network.mbps(user) for user in FIG_1.users] == [[9, 3], [6, 6], [3, 9]]


@pytest.mark.parametrize("topology", [WITHIN, fat_tree.build(fat_tree.Params())])
def test_the_offset_makes_no_difference_to_paths_and_rates(topology):
    together, apart = made(topology), made(topology)
    for user in topology.users:
        together.open(user, ports=40_000)
        apart.open(user, only=1, ports=40_000)
        apart.now_s += 0.3
        apart.open(user, ports=40_001)
    assert [together.mbps(user) for user in topology.users] == [
        apart.mbps(user) for user in topology.users
    ]


def test_after_a_second_a_connection_is_allocated_with_what_is_there():
    network = made(WITHIN)
    network.now_s = 5.0
    network.open("ue1", only=1)
    assert network.strategy.wake_at_ns() == 6_000_000_000
    network.now_s = 5.999
    assert network.step() == []
    network.now_s = 6.0
    network.step()
    assert network.mbps("ue1") == [10]
    assert network.strategy.wake_at_ns() is None
    before = network.paths("ue1")[0]
    network.open("ue1")
    assert network.mbps("ue1") == [10, 10]
    assert network.paths("ue1")[0] == before


def test_a_subflow_that_joins_an_allocated_connection_is_allocated_at_once():
    network = made(WITHIN)
    network.down("access2")
    network.open("ue1", only=1)
    assert network.mbps("ue1") == [10]
    network.down()
    network.open("ue1")
    assert network.mbps("ue1") == [10, 10]


def test_a_waiting_connection_changes_nothing_for_the_others():
    network = made(FIG_1)
    network.open("ue1")
    network.open("ue2", only=1)
    assert network.mbps("ue1") == [9, 9]
    network.change("link2", 5_000_000)
    assert network.mbps("ue1") == [5, 9]
    assert network.mbps("ue2") == [0]


def test_no_more_subflows_are_expected_than_get_a_path():
    network = made(WITHIN, max_subflows=1)
    network.open("ue1", only=1)
    assert network.mbps("ue1") == [10]


def test_the_end_of_the_wait_makes_a_step_due():
    control = Control("expected_throughput", {"interval_s": 60.0})
    arcs = tuple(
        Arc(f"{tail}{head}", tail, head, 10_000_000)
        for tail, head in (("s1", "a1"), ("s1", "a2"), ("srv", "s1"))
    )
    first = Subflow("c1", 1, "ue1", "", "srv:5001", "a1:40000", path=("s1",))
    seen = Observation(7, arcs=arcs, subflows=(first,), user_addresses={"ue1": ("a1", "a2", "a9")})
    assert control.step(seen).decisions == ()
    assert not control.due(1_000_000_006)
    assert control.due(1_000_000_007)
