"""S-MPTCP as a strategy: its commands after each event, and none without an event."""

from __future__ import annotations

from itertools import permutations

import pytest
from hosts_that_confirm import Confirming, commands
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.command import Expect, Route, SetBackup
from controller.strategies.expected_throughput import ExpectedThroughput
from lab.scenario.loading import Overrides, load
from lab.topologies import collision, fat_tree, pooling

FIG_1, WITHIN, BETWEEN, TREE = (
    pooling.build(pooling.Params()),
    collision.build(collision.Params(among="subflows")),
    collision.build(collision.Params(among="connections")),
    fat_tree.build(fat_tree.Params()),
)


def made(topology, **params):
    return Confirming(topology, ExpectedThroughput(ExpectedThroughput.Params(**params)))


def test_pooling_as_in_the_worked_example():
    network = made(FIG_1)
    network.open("ue1")
    assert network.mbps("ue1") == [9, 9]
    network.open("ue2")
    assert (network.mbps("ue1"), network.mbps("ue2")) == ([9, 4.5], [4.5, 9])
    network.open("ue3")
    assert [network.mbps(user) for user in FIG_1.users] == [[9, 3], [6, 6], [3, 9]]


def test_lower_rates_are_commanded_first():
    network = made(FIG_1)
    network.open("ue1")
    asked = commands(network.open("ue2"), Expect)
    assert [(each.subflow[0], each.rate_bps) for each in asked] == [
        ("ue1-1", 4_500_000),
        ("ue2-1", 4_500_000),
        ("ue2-1", 9_000_000),
    ]


@pytest.mark.parametrize("order", list(permutations(BETWEEN.users)))
@pytest.mark.parametrize("attempt", range(5))
def test_subflows_of_two_connections_never_share_a_path(order, attempt):
    network = made(BETWEEN)
    for user in order:
        network.open(user, only=1)
        assert network.decided == []
        network.open(user)
    paths = [path for user in order for path in network.paths(user)]
    assert sorted(path[2] for path in paths) == ["c1", "c2", "c3", "c4"]
    assert [network.mbps(user) for user in order] == [[10, 10]] * 2


def test_connections_that_open_together_share_a_fat_tree():
    network = made(TREE)
    network.open(*TREE.users)
    assert [sum(network.mbps(user)) for user in TREE.users] == pytest.approx([10] * 8)
    assert all(len({path[2] for path in network.paths(user)}) == 2 for user in TREE.users)
    assert network.overload() <= 1.000001


@pytest.mark.parametrize("order", list(permutations(TREE.users))[::2017])
def test_every_order_of_arrival_gives_fair_shares_of_a_fat_tree(order):
    """In the paper a newcomer that has enough ends the filling, and another connection keeps only
    two thirds of the mean."""
    network = made(TREE)
    for user in order:
        network.open(user)
    assert (
        min(sum(network.mbps(user)) for user in TREE.users) >= 8.8
    )  # `fairness` of the mean, and a little slack
    assert sum(sum(network.mbps(user)) for user in TREE.users) == pytest.approx(80)


@pytest.mark.parametrize(
    "topology",
    [FIG_1, WITHIN, BETWEEN, TREE, load("campus", Overrides()).network],
    ids=lambda each: each.name,
)
def test_no_command_is_repeated_and_a_restarted_controller_changes_nothing(topology):
    network = made(topology)
    network.open(*topology.users)
    assert network.step() == []
    network.strategy = ExpectedThroughput(network.strategy.params)
    assert network.step() == []


def test_a_command_that_hosts_did_not_confirm_is_repeated():
    network = made(FIG_1)
    first = network.strategy.decide(network.observation())
    network.open("ue1", "ue2")
    unconfirmed = [each for each in network.decided if each.subject == "ue2-1/1"]
    network.subflows["ue2-1", 1] = network.of("ue2")[0].__class__(
        **{**vars(network.of("ue2")[0]), "expected_bps": None}
    )
    assert first == []
    assert [each.command for each in network.step()] == [each.command for each in unconfirmed]


def test_the_capacity_of_a_closed_connection_goes_to_the_others():
    network = made(FIG_1)
    network.open(*FIG_1.users)
    network.close("ue1")
    assert (network.mbps("ue2"), network.mbps("ue3")) == ([9, 6], [3, 9])
    network.close("ue2")
    assert network.mbps("ue3") == [9, 9]


def test_a_broken_link_moves_only_the_subflows_on_it():
    network = made(TREE)
    network.open("ue1")
    stays, moves = network.paths("ue1")
    network.down(f"{moves[2]}-{moves[3]}")
    assert network.paths("ue1")[0] == stays
    assert network.paths("ue1")[1] != moves
    assert network.mbps("ue1") == [10, 10]
    assert {each.subflow for each in commands(network.decided, Route)} == {("ue1-1", 2)}


def test_a_subflow_without_a_path_is_backup_until_a_path_exists():
    network = made(WITHIN)
    network.open("ue1")
    network.down("access2")
    assert network.subflows["ue1-1", 2].backup
    assert network.subflows["ue1-1", 2].expected_bps is None
    assert network.mbps("ue1")[0] == 10
    assert network.step() == []
    network.down()
    assert network.mbps("ue1") == [10, 10]
    assert commands(network.decided, SetBackup) == [SetBackup(("ue1-1", 2), False)]


def test_the_last_subflow_is_never_backup():
    network = made(WITHIN)
    network.open("ue1")
    network.down("up1", "up2")
    assert [each.backup for each in network.of("ue1")] == [False, True]


def test_a_subflow_with_a_rate_of_zero_is_backup():
    """Behind a last link of 10 Mb/s two paths carry no more than one."""
    network = made(fat_tree.build(fat_tree.Params(host_mbps=10)))
    network.open("ue1")
    assert sorted(network.mbps("ue1")) == [0, 10]
    assert sorted(each.backup for each in network.of("ue1")) == [False, True]


def test_capacity_that_shrinks_and_grows_is_followed():
    network = made(FIG_1)
    network.open(*FIG_1.users)
    network.change("link10", 4_000_000)
    assert network.overload() <= 1.000001
    assert [sum(network.mbps(user)) for user in FIG_1.users] == pytest.approx([31 / 3] * 3)
    network.change("link10", 9_000_000)
    assert sum(sum(network.mbps(user)) for user in FIG_1.users) == pytest.approx(36)


def test_a_better_path_is_taken_when_a_link_comes_back():
    network = made(BETWEEN)
    network.down("up2")
    network.open("ue1", "ue2")
    assert sum(network.mbps("ue1")) + sum(network.mbps("ue2")) == pytest.approx(30)
    network.down()
    assert [network.mbps(user) for user in BETWEEN.users] == [[10, 10]] * 2
    assert len(commands(network.decided, Route)) == 1


def test_on_a_radio_slow_stations_count_for_the_air_they_take():
    network = made(load("campus", Overrides(settings=("rate_scale=1",))).network)
    network.open("ue1", "ue2", "ue3")
    air = {user: network.mbps(user)[n] for user, n in (("ue1", 0), ("ue2", 0), ("ue3", 1))}
    assert air["ue1"] + air["ue2"] + air["ue3"] * 42 / 19.1 <= 42.001
    assert network.overload() <= 1.000001
    assert min(sum(network.mbps(user)) for user in ("ue1", "ue2", "ue3")) > 5


def test_subflows_beyond_max_subflows_are_backup():
    network = made(WITHIN, max_subflows=1)
    network.open("ue1")
    assert [each.backup for each in network.of("ue1")] == [False, True]
    assert network.mbps("ue1") == [10, 0]
    assert network.step() == []


def test_withdrawing_undoes_everything():
    network = made(fat_tree.build(fat_tree.Params(host_mbps=10)))
    network.open("ue1", "ue2")
    network.withdraw()
    assert not any(each.backup or each.expected_bps for each in network.subflows.values())


def test_a_network_without_links_is_left_alone():
    network = made(WITHIN)
    network.open("ue1")
    network.arcs = ()
    assert network.step() == []


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(TREE.users), st.booleans()), max_size=20))
def test_no_link_is_overloaded_and_every_connection_has_a_rate_after_any_events(events):
    network = made(TREE)
    for user, comes in events:
        network.open(user) if comes else network.close(user)
        assert network.overload() <= 1.021
        assert all(sum(network.mbps(each.user)) > 0.5 for each in network.subflows.values())
    for _ in range(5):
        network.step()
    assert network.decided == []


def test_a_reason_compares_the_rate_with_the_mean_of_those_who_share_links():
    network = made(FIG_1)
    network.open("ue1")
    assert any("gets 18 Mb/s and shares no link" in each.reason for each in network.decided)
    network.open("ue2")
    mean = "gets 13.5 Mb/s (mean of the 2 connections that share links: 13.5 Mb/s)"
    assert any(mean in each.reason for each in network.decided)
    network = made(WITHIN)
    network.open("ue1")
    network.down("up1", "up2")
    assert any("gets 0 Mb/s and shares no link" in each.reason for each in network.decided)


@pytest.mark.parametrize(("grown_bps", "moves"), [(10_100_000, 0), (10_300_000, 1)])
def test_paths_are_tried_when_a_capacity_grows_by_more_than_a_fiftieth(grown_bps, moves):
    """A restarted controller does not know that a link came up, so it leaves the paths."""
    network = made(BETWEEN)
    network.down("up2")
    network.open("ue1", "ue2")
    network.strategy = ExpectedThroughput(network.strategy.params)
    network.arcs = network.every
    assert commands(network.step(), Route) == []
    network.change("up1", grown_bps)
    assert len(commands(network.decided, Route)) == moves
