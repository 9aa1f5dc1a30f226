"""In which directions of each link data travels, and where `loss` therefore acts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from test_topologies import CAMPUS, links_of_paths

from lab.topologies import campus, collision, fat_tree, parallel_paths, pooling, wireless_set
from lab.topologies.topology import (
    BOTH,
    Link,
    Node,
    Topology,
    data_directions,
    with_loss,
    with_loss_on_data,
)

AB, BA = frozenset({"ab"}), frozenset({"ba"})
NETWORKS = {
    "fat_tree": fat_tree.build(fat_tree.Params()),
    "campus": campus.build(CAMPUS),
    "pooling": pooling.build(pooling.Params()),
    "collision_within": collision.build(collision.Params(among="subflows")),
    "collision_between": collision.build(collision.Params(among="connections")),
    "parallel_paths": parallel_paths.build(
        parallel_paths.Params(paths=({"rate_mbps": 9, "loss": 0.1, "loss_both": 0.02},) * 2)  # type: ignore[arg-type]
    ),
    "wireless_set": wireless_set.build(wireless_set.Params(users=4), seed=3),
}


def everyone(topology: Topology, direction: str) -> list[tuple[str, str]]:
    return [(user, direction) for user in topology.users]


def turned(directions):
    return {
        link: frozenset({"ab": "ba", "ba": "ab"}[each] for each in found)
        for link, found in directions.items()
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_every_link_of_a_shortest_path_has_the_direction_of_the_path(name):
    topology = NETWORKS[name]
    found = data_directions(topology, everyone(topology, "down"))
    ends = {link.id: (link.a, link.b) for link in topology.links}
    crossed = {link: set() for link in ends}
    for user in topology.users:
        for interface in links_of_paths(topology, user):
            for path in interface:
                here = topology.server_of(user)
                for link in (each for each in path if each in ends):
                    a, b = ends[link]
                    crossed[link].add("ab" if here == a else "ba")
                    here = b if here == a else a
    for link, directions in crossed.items():
        assert directions <= found[link]
        if name != "wireless_set":  # its users get further paths by handovers
            assert found[link] == (directions or BOTH)


@pytest.mark.parametrize("name", NETWORKS)
def test_uploads_turn_every_direction(name):
    topology = NETWORKS[name]
    down = data_directions(topology, everyone(topology, "down"))
    assert data_directions(topology, everyone(topology, "up")) == turned(down)
    both = data_directions(topology, everyone(topology, "down") + everyone(topology, "up"))
    assert set(both.values()) == {BOTH}


def test_downloads_cross_half_of_a_fat_trees_links_towards_their_first_end():
    topology = NETWORKS["fat_tree"]
    found = data_directions(topology, everyone(topology, "down"))
    switches = {link.id: found[link.id] for link in topology.links if "-" in link.id}
    assert len(switches) == 32
    # A link's first end is the upper one. Data climbs in the pods of the servers, 1 and 2.
    assert {link for link, each in switches.items() if each == BA} == {
        link for link in switches if any(f"a{pod}x" in link for pod in (1, 2))
    }
    assert all(each in (AB, BA) for each in switches.values())
    assert {found[f"server{n}"] for n in range(1, 9)} == {BA}
    assert {found[f"access{n}"] for n in range(1, 9)} == {AB}


def test_a_link_on_no_shortest_path_keeps_both_directions():
    topology = NETWORKS["fat_tree"]
    found = data_directions(topology, [("ue1", "down")])
    assert (found["a1x1-e1x1"], found["a1x1-e1x2"], found["c1-a2x1"]) == (BA, BOTH, BOTH)
    assert data_directions(topology, []) == {link.id: BOTH for link in topology.links}


def test_on_the_campus_data_climbs_in_the_servers_pods_only():
    topology = NETWORKS["campus"]
    found = data_directions(topology, everyone(topology, "down"))
    assert found["a3x1-e3x1"] == found["c1-a3x1"] == BA
    assert found["c1-a1x1"] == found["a1x1-e1x2"] == found["e1x2-ue5"] == found["wifi"] == AB


def test_pooling_and_parallel_paths_send_data_from_first_end_to_second():
    for name in ("pooling", "parallel_paths"):
        topology = NETWORKS[name]
        found = data_directions(topology, everyone(topology, "down"))
        assert {found[each.id] for each in topology.links if "server" not in each.id} == {AB}


def test_a_detour_of_two_more_hops_does_not_count():
    """Over e1 a2 e2 a1 c1 b1 data could also reach b1, and would cross in22 backwards."""
    found = data_directions(NETWORKS["collision_between"], [("ue1", "down"), ("ue2", "down")])
    assert found["in22"] == AB


def test_a_single_path_user_counts_with_its_first_interface():
    two = NETWORKS["parallel_paths"]
    found = data_directions(replace(two, multipath=()), [("ue1", "down")])
    assert (found["path1"], found["path2"]) == (AB, BOTH)


def test_an_access_point_that_a_user_may_move_to_counts():
    topology = NETWORKS["wireless_set"]
    found = data_directions(topology, everyone(topology, "down"))
    assert {found[f"towifi{n}"] for n in (1, 2, 3)} == {AB}


def losses(topology: Topology, flows) -> dict[str, tuple[int, int]]:
    links = with_loss_on_data(topology, flows).links
    return {link.id: (link.loss_ppm, link.loss_back_ppm) for link in links}


def test_loss_acts_on_data_and_loss_both_on_everything():
    topology = NETWORKS["parallel_paths"]  # data: 1 - (1 - 0.1)(1 - 0.02); the rest: 0.02
    assert losses(topology, [("ue1", "down")])["path1"] == (118_000, 20_000)
    assert losses(topology, [("ue1", "up")])["path1"] == (20_000, 118_000)
    assert losses(topology, [("ue1", "up"), ("ue1", "down")])["path1"] == (118_000, 118_000)


def test_loss_on_a_climbing_link_of_a_fat_tree_acts_on_its_data():
    tree = NETWORKS["fat_tree"]
    lossy = replace(tree, links=tuple(replace(link, loss_ppm=100_000) for link in tree.links))
    found = losses(lossy, everyone(lossy, "down"))
    assert (found["a1x1-e1x1"], found["a3x1-e3x1"]) == ((0, 100_000), (100_000, 0))


def test_a_change_of_the_loss_leaves_the_other_direction_alone():
    link = Link("l", "s1", "s2", loss_ppm=1, loss_back_ppm=2)
    assert with_loss(link, BA, 7) == replace(link, loss_back_ppm=7)
    assert with_loss(link, BOTH, 7) == replace(link, loss_ppm=7, loss_back_ppm=7)


def test_all_of_several_links_between_two_switches_count():
    names = ("s1", "s2", "s3")
    nodes = (Node("ue1", "user"), *(Node(each, "switch") for each in names), Node("srv1", "server"))
    links = [Link(f"{a}{b}{n}", a, b) for a, b in pairwise(names) for n in (1, 2)]
    ends = (Link("server", "s1", "srv1"), Link("access", "ue1", "s3"))
    found = data_directions(Topology("t", nodes, (*links, *ends)), [("ue1", "down")])
    assert [found[link.id] for link in links] == [AB] * 4
    assert (found["server"], found["access"]) == (BA, BA)
