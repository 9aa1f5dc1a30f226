"""The order of commands, and which subflows get a lower rate first while paths change."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hosts_that_confirm import Confirming
from oracles.random_networks import Watched, events, topology

from controller.command import Expect, SetBackup
from controller.graph import build_graph
from controller.strategies.expected_throughput import ExpectedThroughput
from controller.strategies.expected_throughput.strategy import Change, Load, crowded
from lab.topologies import pooling

ONE, TWO = {0: 1.0}, {1: 1.0}


def moving(before, after, rate):
    return Change(Load(before, rate, False), Load(after, rate, False))


def test_subflows_that_exchange_full_arcs_have_half_their_rate_meanwhile():
    assert crowded([10, 10], [moving(ONE, TWO, 10), moving(TWO, ONE, 10)]) == [True, True]


def test_subflows_that_find_room_keep_their_rate():
    assert crowded([10, 10], [moving(ONE, TWO, 4), moving(TWO, ONE, 5)]) == [False, False]


def test_a_subflow_that_stays_never_slows_down():
    stays = Change(Load(ONE, 6, False), Load(ONE, 4, False))
    assert crowded([10, 10], [stays, moving(TWO, ONE, 6)]) == [False, False]
    assert crowded([9, 10], [stays, moving(TWO, ONE, 6)]) == [False, True]


def test_a_backup_that_takes_over_on_the_same_full_arc_needs_half():
    leaves = Change(Load(ONE, 10, False), Load(ONE, 0, True), alone=True)
    comes = Change(Load(ONE, 0, True), Load(ONE, 10, False), alone=True)
    assert leaves.leaves_late
    assert crowded([10], [leaves, comes]) == [True, True]
    assert crowded([20], [leaves, comes]) == [False, False]


def loads(network):
    """Largest load of an arc, relative to its capacity, after each command."""
    found = []
    carry_out = network._carry_out

    def watched(decision):
        carry_out(decision)
        found.append(network.overload())

    network._carry_out = watched
    return found


@pytest.mark.parametrize("allocation", ["paper", "max_min"])
def test_no_command_overloads_a_link(allocation):
    topology = pooling.build(pooling.Params())
    network = Confirming(
        topology, ExpectedThroughput(ExpectedThroughput.Params(allocation=allocation))
    )
    found = loads(network)
    for user in topology.users:
        network.open(user)
    network.close("ue1")
    network.open("ue1")
    network.change("link10", 20_000_000)
    assert found
    assert max(found) <= 1.000001
    assert build_graph(network.arcs)


def test_a_backup_takes_over_before_the_last_normal_subflow_becomes_backup():
    topology = pooling.build(pooling.Params())
    network = Confirming(topology, ExpectedThroughput(ExpectedThroughput.Params()))
    network.open("ue1")
    network.change("link2", 10_000)
    assert [each.backup for each in network.of("ue1")] == [True, False]
    network.arcs = tuple(
        replace(arc, capacity_bps=10_000) if arc.link == "link5" else arc for arc in network.arcs
    )
    network.change("link2", 9_000_000)
    order = [
        each.command for each in network.decided if isinstance(each.command, SetBackup | Expect)
    ]
    assert order == [
        Expect(("ue1-1", 2), 4_500_000),  # link5 is overloaded: half at once
        Expect(("ue1-1", 1), 9_000_000),
        SetBackup(("ue1-1", 1), False),
        SetBackup(("ue1-1", 2), True),
        Expect(("ue1-1", 2), None),
    ]
    assert [each.backup for each in network.of("ue1")] == [False, True]


@pytest.mark.parametrize("allocation", ["paper", "max_min"])
@pytest.mark.parametrize("seed", [1018, 1060, 1071, 1072])
def test_no_command_overloads_a_link_of_a_random_network(seed, allocation):
    """Cases from tests/oracles, among them subflows that get a new path and become backup."""
    rng = random.Random(seed)
    network = Watched(topology(rng), allocation=allocation)
    for _ in events(network, rng, 6):
        assert network.worst <= 1 + 1e-6
