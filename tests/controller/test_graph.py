"""Vertices, paths and the use of arcs, compared with networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import arcs_of, both_ways, one_way, without

from controller.graph import arc_path, arc_use, build_graph, hops_to, simple_paths, switches_on
from controller.observation import Arc
from lab.topologies import collision, fat_tree, wifi_lte

TREE = arcs_of(fat_tree.build(fat_tree.Params()))
RADIO = arcs_of(
    wifi_lte.build(
        wifi_lte.Params.model_validate(
            {
                "users": [
                    {"id": "ue1", "wifi_mbps": 40},
                    {"id": "ue2", "wifi_mbps": 10, "lte_mbps": 30},
                ],
                "multipath": ["ue2"],
            }
        )
    )
)
edges = st.dictionaries(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda e: e[0] != e[1]),
    st.just(1),
)


def names(graph, over):
    return [graph.names[graph.tail[over[0]]], *(graph.names[graph.head[arc]] for arc in over)]


def test_the_addresses_of_one_interface_are_one_place():
    graph = build_graph(TREE)
    assert graph.vertex["10.16.0.1"] == graph.vertex["10.16.0.9"] != graph.vertex["10.16.0.2"]
    assert len(graph.names) == 36
    assert len(graph.tail) == 2 * 48


def test_links_with_one_name_are_separate_arcs():
    graph = build_graph(
        Arc("core", tail, head, 1)
        for tail, head in ("ab", "ba", "ac", "ca", "bd", "db", "cd", "dc")
    )
    assert len(graph.names) == 4


def test_a_path_crosses_the_air_of_its_access_point():
    graph = build_graph(RADIO)
    over = arc_path(graph, "10.0.0.1", ("s1", "wifi1"), "10.1.0.2")
    assert names(graph, over) == ["10.0.0.1", "s1", "wifi1", "wifi1~air", "10.1.0.2"]
    assert switches_on(graph, over) == ("s1", "wifi1")
    back = arc_path(graph, "10.1.0.2", ("wifi1", "s1"), "10.0.0.1")
    assert switches_on(graph, back) == ("wifi1", "s1")


@pytest.mark.parametrize(
    "path", [(), ("s1",), ("wifi1",), ("s1", "lte1"), ("s1", "nowhere", "wifi1")]
)
def test_a_path_that_leads_elsewhere_is_none(path):
    assert arc_path(build_graph(RADIO), "10.0.0.1", path, "10.1.0.2") is None


def test_a_slow_station_takes_more_of_the_air():
    graph = build_graph(RADIO)
    over = arc_path(graph, "10.0.0.1", ("s1", "wifi1"), "10.1.0.2")
    assert list(arc_use(graph, over).values()) == [1, 1, 4, 1]
    assert list(
        arc_use(graph, arc_path(graph, "10.1.0.2", ("wifi1", "s1"), "10.0.0.1")).values()
    ) == [
        1,
        4,
        1,
        1,
    ]


@given(edges)
def test_paths_are_all_simple_paths_that_are_short_enough(links):
    graph, known = build_graph(one_way(links)), networkx.DiGraph(list(links))
    if not {"a", "f"} <= set(known):
        return
    found = simple_paths(graph, graph.vertex["a"], graph.vertex["f"], most=1000)
    every = list(networkx.all_simple_paths(known, "a", "f"))
    shortest = min(map(len, every), default=0)
    assert [names(graph, each) for each in found] == sorted(
        (each for each in every if len(each) <= shortest + 2), key=lambda each: (len(each), each)
    )


def test_the_number_of_paths_is_limited():
    graph = build_graph(arcs_of(fat_tree.build(fat_tree.Params(k=8))))
    found = simple_paths(graph, graph.vertex["10.0.0.1"], graph.vertex["10.16.0.1"])
    assert len(found) == 64
    assert [len(each) for each in found[:17]] == [6] * 16 + [8]


@given(edges)
def test_hops_are_those_of_breadth_first_search(links):
    graph, known = build_graph(one_way(links)), networkx.DiGraph(list(links)).reverse()
    for goal in known:
        wanted = networkx.single_source_shortest_path_length(known, goal)
        assert {
            graph.names[place]: hops for place, hops in hops_to(graph, [graph.vertex[goal]]).items()
        } == wanted


def test_only_usable_arcs_count():
    graph = build_graph(both_ways({("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 1}))
    usable = {
        graph.between(graph.vertex[tail], graph.vertex[head]) for tail, head in pairwise("abc")
    }
    assert hops_to(graph, [graph.vertex["c"]], usable) == {
        graph.vertex[name]: hops for name, hops in {"c": 0, "b": 1, "a": 2}.items()
    }


def test_a_link_that_is_down_is_on_no_path():
    arcs = without(arcs_of(collision.build(collision.Params())), "up1")
    graph = build_graph(arcs)
    found = simple_paths(graph, graph.vertex["10.0.0.1"], graph.vertex["10.17.0.1"], extra_hops=0)
    assert [switches_on(graph, each) for each in found] == [("s1", "c2", "s2")]
