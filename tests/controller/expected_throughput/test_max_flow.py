"""Flows and their paths, compared with networkx (S-MPTCP, Algorithm 1, stage 1)."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import arcs_of, one_way

from controller.graph import build_graph
from controller.strategies.expected_throughput.max_flow import max_flow, split
from lab.topologies import fat_tree

ends = st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")).filter(
    lambda each: each[0] != each[1]
)
rates = st.integers(0, 72).map(
    lambda eighths: eighths / 8
)  # exact in binary: with other fractions networkx may not end
networks = st.dictionaries(ends, rates, min_size=1, max_size=25)


def flow_of(links, goals="g"):
    graph = build_graph(one_way({("a", "x"): 0, **{("x", goal): 0 for goal in goals}, **links}))
    return graph, max_flow(
        graph, graph.capacity_bps, graph.vertex["a"], [graph.vertex[goal] for goal in goals]
    )


@given(networks, st.sampled_from(["g", "fg", "efg"]))
def test_no_flow_is_larger(links, goals):
    known = networkx.DiGraph()
    known.add_nodes_from("abcdefg")
    known.add_edges_from(
        (tail, head, {"capacity": rate})
        for (tail, head), rate in links.items()
        if tail not in goals
    )
    known.add_edges_from((goal, "end") for goal in goals)
    _, flow = flow_of(links, goals)
    assert flow.rate_bps == pytest.approx(networkx.maximum_flow_value(known, "a", "end"), abs=1e-6)


@given(networks)
def test_a_flow_is_conserved_and_no_arc_exceeds_its_capacity(links):
    graph, flow = flow_of(links)
    gained = dict.fromkeys(range(len(graph.names)), 0.0)
    for arc, rate in flow.on_arc.items():
        assert 0 < rate <= graph.capacity_bps[arc]
        gained[graph.tail[arc]] -= rate
        gained[graph.head[arc]] += rate
    assert gained.pop(graph.vertex["g"]) == pytest.approx(flow.rate_bps, abs=1e-6)
    gained.pop(graph.vertex["a"])
    assert all(abs(each) < 1e-6 for each in gained.values())


@given(networks, st.integers(1, 4))
def test_paths_carry_the_flow_the_widest_first(links, most):
    graph, flow = flow_of(links)
    found = split(graph, flow, graph.vertex["a"], {graph.vertex["g"]: most})
    widths = [width for _, width in found]
    assert widths == sorted(widths, reverse=True)
    assert len(found) <= most
    carried = dict.fromkeys(flow.on_arc, 0.0)
    for path, width in found:
        places = [graph.tail[path[0]], *(graph.head[arc] for arc in path)]
        assert (places[0], places[-1]) == (graph.vertex["a"], graph.vertex["g"])
        assert len(set(places)) == len(places)
        for arc in path:
            carried[arc] += width
    assert all(rate <= flow.on_arc[arc] * (1 + 1e-9) for arc, rate in carried.items())
    assert len(found) == most or sum(widths) >= 0.99 * flow.rate_bps - 1e-9


def split_names(links, most):
    graph, flow = flow_of(links)
    found = split(graph, flow, graph.vertex["a"], {graph.vertex["g"]: most})
    return [
        ("".join(graph.names[graph.head[arc]] for arc in path[:-1]), width) for path, width in found
    ]


def test_of_equally_wide_paths_the_shortest_and_then_the_first_by_name():
    links = {tuple(each): 5.0 for each in ("ac", "cg", "ab", "bg", "ad", "de", "eg")} | {
        ("a", "f"): 6.0,
        ("f", "g"): 6.0,
    }
    assert split_names(links, 9) == [("f", 6), ("b", 5), ("c", 5), ("de", 5)]
    assert split_names(links, 2) == [("f", 6), ("b", 5)]


def test_a_choice_made_too_early_is_undone():
    links = {tuple(each): 1.0 for each in ("ab", "ac", "bd", "cd", "be", "dg", "eg")}
    assert flow_of(links)[1].rate_bps == 2


def test_each_destination_gets_at_most_the_paths_it_wants():
    links = {("a", "b"): 4.0, ("a", "c"): 3.0, ("b", "f"): 4.0, ("c", "f"): 3.0, ("a", "g"): 1.0}
    graph, flow = flow_of(links, "fg")
    found = split(graph, flow, graph.vertex["a"], {graph.vertex["f"]: 1, graph.vertex["g"]: 2})
    assert [(graph.names[graph.head[path[-1]]], width) for path, width in found] == [
        ("f", 4),
        ("g", 1),
    ]


def test_across_a_fat_tree_two_paths_fill_a_host():
    graph = build_graph(arcs_of(fat_tree.build(fat_tree.Params(rate_mbps=10, host_mbps=20))))
    source, goal = graph.vertex["10.0.0.1"], graph.vertex["10.16.0.8"]
    flow = max_flow(graph, graph.capacity_bps, source, [goal])
    assert flow.rate_bps == 20e6
    assert [width for _, width in split(graph, flow, source, {goal: 8})] == [10e6, 10e6]


def test_no_path_is_no_flow():
    graph, flow = flow_of({("a", "b"): 1.0})
    assert (flow.rate_bps, dict(flow.on_arc)) == (0, {})
    assert split(graph, flow, graph.vertex["a"], {graph.vertex["g"]: 2}) == []
