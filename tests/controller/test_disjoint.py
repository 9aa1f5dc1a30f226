"""The baseline that keeps the subflows of each connection on disjoint paths."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts_that_confirm import Confirming, commands, used_twice
from networks import without

from controller.command import Route
from controller.strategies import make
from controller.strategies.disjoint import Disjoint
from lab.topologies import collision, fat_tree, pooling

WITHIN, BETWEEN, TREE = (
    collision.build(collision.Params(among="subflows")),
    collision.build(collision.Params(among="connections")),
    fat_tree.build(fat_tree.Params(subflows=4)),
)


def made(topology):
    return Confirming(topology, Disjoint(Disjoint.Params()))


@pytest.mark.parametrize("attempt", range(6))
def test_subflows_of_one_connection_are_kept_apart_and_the_first_stays(attempt):
    network = made(WITHIN)
    network.open("ue1", only=1)
    first = network.paths("ue1")[0]
    network.open("ue1")
    assert network.paths("ue1")[0] == first
    assert {path[1] for path in network.paths("ue1")} == {"c1", "c2"}
    assert network.step() == []


def test_subflows_of_two_connections_collide_at_random():
    seen = set()
    for _ in range(24):
        network = made(BETWEEN)
        network.open("ue1", "ue2")
        paths = [path for user in BETWEEN.users for path in network.paths(user)]
        seen.add(len(used_twice(paths, network.arcs)) // 2)
    assert seen == {0, 1, 2}


def test_paths_share_as_few_links_as_possible():
    network = made(TREE)
    network.open("ue1")
    assert {path[2] for path in network.paths("ue1")} == {"c1", "c2", "c3", "c4"}


def test_no_subflow_moves_if_there_is_one_path_only():
    network = made(pooling.build(pooling.Params()))
    assert network.open("ue1", "ue2", "ue3") == []


def test_a_subflow_leaves_a_broken_link():
    network = made(WITHIN)
    network.open("ue1")
    network.down("up1")
    assert [path[1] for path in network.paths("ue1")] == ["c2", "c2"]


def test_without_a_path_there_is_no_command():
    network = made(WITHIN)
    network.open("ue1")
    assert network.down("up1", "up2") == []


def test_the_reason_says_what_the_new_and_the_present_path_share():
    """The server's link is part of every path."""
    network = made(WITHIN)
    network.open("ue1", only=1)
    first = network.paths("ue1")[0]
    other = ("s1", "c1" if first[1] == "c2" else "c2", "s2")
    for switches, present in ((first, ", the present path 3"), ((), "")):
        network.open("ue1")
        second = network.of("ue1")[1]
        network.subflows[second.key] = replace(second, path=switches)
        (decision,) = network.step()
        assert decision.command == Route(second.key, other)
        text = f"path {' '.join(other)} shares 1 link with other subflows of the connection"
        assert decision.reason == text + present


def test_an_address_outside_of_the_network_gets_no_command():
    network = made(WITHIN)
    network.open("ue1")
    second = network.of("ue1")[1]
    network.subflows[second.key] = replace(second, destination="10.9.9.9:4000")
    assert network.step() == []


def opened(strategy, ports):
    network = Confirming(TREE, make(strategy, {}))
    network.open("ue1", "ue2", ports=ports)
    return network


@pytest.mark.parametrize("strategy", ["disjoint", "expected_throughput"])
@pytest.mark.parametrize("ports", [40_000, 41_000, 42_000])
def test_withdrawn_each_moved_subflow_has_the_path_of_its_hash_again(strategy, ports):
    network, hashed = opened(strategy, ports), opened("none", ports)
    moved = {
        key for key, each in hashed.subflows.items() if network.subflows[key].path != each.path
    }
    asked = commands(network.strategy.withdraw(network.observation()), Route)
    assert {each.subflow for each in asked} == moved
    network.withdraw()
    for user in ("ue1", "ue2"):
        assert network.paths(user) == hashed.paths(user)


def test_withdrawn_a_subflow_stays_off_a_broken_link_and_where_there_is_no_path():
    network = made(WITHIN)
    network.open("ue1")
    network.down("up1")
    network.withdraw()
    assert [path[1] for path in network.paths("ue1")] == ["c2", "c2"]
    network.arcs = without(network.every, "up1", "up2")
    assert network.strategy.withdraw(network.observation()) == []
