"""The baseline that keeps the subflows of one connection apart and looks at each connection alone."""

from __future__ import annotations

import pytest
from hosts_that_confirm import Confirming, used_twice

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
    network.come("ue1", only=1)
    first = network.paths("ue1")[0]
    network.come("ue1")
    assert network.paths("ue1")[0] == first
    assert {path[1] for path in network.paths("ue1")} == {"c1", "c2"}
    assert network.step() == []


def test_subflows_of_two_connections_collide_by_chance():
    seen = set()
    for _ in range(24):
        network = made(BETWEEN)
        network.come("ue1", "ue2")
        paths = [path for user in BETWEEN.users for path in network.paths(user)]
        seen.add(len(used_twice(paths, network.arcs)) // 2)
    assert seen == {0, 1, 2}


def test_where_paths_must_meet_they_share_as_few_links_as_possible():
    network = made(TREE)
    network.come("ue1")
    assert {path[2] for path in network.paths("ue1")} == {"c1", "c2", "c3", "c4"}


def test_nobody_moves_where_there_is_nothing_to_choose():
    network = made(pooling.build(pooling.Params()))
    assert network.come("ue1", "ue2", "ue3") == []


def test_a_broken_link_is_left():
    network = made(WITHIN)
    network.come("ue1")
    network.down("up1")
    assert [path[1] for path in network.paths("ue1")] == ["c2", "c2"]


def test_where_no_path_leads_nothing_is_asked():
    network = made(WITHIN)
    network.come("ue1")
    assert network.down("up1", "up2") == []
