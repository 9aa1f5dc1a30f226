"""The paths of subflows (S-MPTCP, Algorithm 1)."""

from __future__ import annotations

from itertools import permutations

import pytest
from networks import arcs_of, both_ways, without

from controller.graph import arc_use, build_graph, simple_paths, switches_on
from controller.strategies.expected_throughput.allocation import reallocate
from controller.strategies.expected_throughput.exploration import PathRequest, explore
from lab.topologies import collision, fat_tree, pooling
from lab.topologies.topology import wire

FIG_1, WITHIN, BETWEEN, TREE = (
    pooling.build(pooling.Params()),
    collision.build(collision.Params(among="subflows")),
    collision.build(collision.Params(among="connections")),
    fat_tree.build(fat_tree.Params()),
)


def asked(topology, graph, user):
    """One path request per subflow of a user."""
    wiring = wire(topology)
    source = graph.vertex[wiring.of(topology.server_of(user))[0].address]
    return [
        PathRequest((source, graph.vertex[address]))
        for each in wiring.of(user)
        for address in (each.address, *each.further)
    ]


def come(topology, users):
    """Paths, and rates in Mb/s, after users arrived in this order."""
    graph = build_graph(arcs_of(topology))
    paths, uses, shares = {}, {}, {}
    for user in users:
        found = explore(graph, asked(topology, graph, user), uses, shares)
        paths[user], uses[user] = (
            [switches_on(graph, each) for each in found],
            [arc_use(graph, each) for each in found],
        )
        shares = reallocate(graph.capacity_bps, uses, shares, user)
    return paths, {user: [rate / 1e6 for rate in rates] for user, rates in shares.items()}


def test_subflows_of_one_connection_do_not_collide():
    paths, rates = come(WITHIN, ["ue1"])
    assert {path[1] for path in paths["ue1"]} == {"c1", "c2"}
    assert rates["ue1"] == [10, 10]


@pytest.mark.parametrize("order", list(permutations(BETWEEN.users)))
def test_subflows_of_two_connections_do_not_collide(order):
    paths, rates = come(BETWEEN, order)
    assert sorted(path[2] for own in paths.values() for path in own) == ["c1", "c2", "c3", "c4"]
    assert rates == {user: [10, 10] for user in order}


@pytest.mark.parametrize("order", list(permutations(FIG_1.users)))
def test_pooling_is_fair_in_every_order(order):
    _, rates = come(FIG_1, order)
    assert [sum(each) for each in rates.values()] == pytest.approx([12, 12, 12])


@pytest.mark.parametrize("order", list(permutations(TREE.users))[::2017])
def test_a_fat_tree_is_used_to_the_full_in_any_order(order):
    paths, rates = come(TREE, order)
    assert sum(map(sum, rates.values())) == pytest.approx(80)
    assert all(
        len({path[2] for path in own}) == 2 for own in paths.values()
    )  # each connection over two core switches


def test_a_subflow_keeps_its_path_when_that_is_as_good():
    graph = build_graph(arcs_of(TREE))
    first, second = asked(TREE, graph, "ue1")
    other = simple_paths(graph, *first.pair)[3]
    found = explore(graph, [PathRequest(first.pair, other), second], {}, {})
    assert other not in found or found[0] == other
    kept = explore(
        graph, [PathRequest(first.pair, found[1]), PathRequest(second.pair, found[0])], {}, {}
    )
    assert kept == [found[1], found[0]]


def test_a_path_is_added_from_the_richest_when_nothing_is_free():
    """Both paths of 10 Mb/s are full. The user of a has another path, the user of b has none."""
    links = {("s", "a"): 10, ("s", "b"): 10, ("a", "t"): 10, ("b", "t"): 10}
    graph = build_graph(both_ways(links | {("s", "z"): 10}))
    source, goal = graph.vertex["s"], graph.vertex["t"]
    a, b = simple_paths(graph, source, goal, extra_hops=0)
    z = simple_paths(graph, source, graph.vertex["z"])[0]
    others = {"rich": [arc_use(graph, a), arc_use(graph, z)], "poor": [arc_use(graph, b)]}
    assert explore(
        graph, [PathRequest((source, goal))], others, {"rich": (10.0, 10.0), "poor": (10.0,)}
    ) == [a]
    swapped = {"rich": [arc_use(graph, b), arc_use(graph, z)], "poor": [arc_use(graph, a)]}
    assert explore(
        graph, [PathRequest((source, goal))], swapped, {"rich": (10.0, 10.0), "poor": (10.0,)}
    ) == [b]


def test_a_subflow_that_is_left_over_keeps_apart_from_the_others():
    links = {("s", "a"): 10, ("a", "t"): 10, ("s", "b"): 4, ("b", "t"): 4, ("t", "u"): 5}
    graph = build_graph(both_ways(links))
    pair = (graph.vertex["s"], graph.vertex["u"])
    found = explore(graph, [PathRequest(pair), PathRequest(pair)], {}, {})
    assert [switches_on(graph, each) for each in found] == [("a", "t"), ("b", "t")]


def test_two_subflows_share_the_only_path_and_get_none_if_there_is_none():
    graph = build_graph(without(arcs_of(WITHIN), "up1"))
    paths = [
        switches_on(graph, each) for each in explore(graph, asked(WITHIN, graph, "ue1"), {}, {})
    ]
    assert paths == [("s1", "c2", "s2")] * 2
    cut = build_graph(without(arcs_of(WITHIN), "up1", "up2"))
    assert explore(cut, asked(WITHIN, cut, "ue1"), {}, {}) == [None, None]


@pytest.mark.parametrize(("rate", "path"), [(99.5, ("x",)), (98, ("x", "y"))])
def test_a_longer_path_is_taken_only_if_it_carries_a_hundredth_more(rate, path):
    links = {("s", "x"): 100, ("x", "t"): rate, ("x", "y"): 100, ("y", "t"): 100}
    graph = build_graph(both_ways(links))
    pair = (graph.vertex["s"], graph.vertex["t"])
    assert [switches_on(graph, each) for each in explore(graph, [PathRequest(pair)], {}, {})] == [
        path
    ]
