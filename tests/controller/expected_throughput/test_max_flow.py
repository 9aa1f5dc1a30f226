"""Flows and the ways they are split into; networkx is the oracle (S-MPTCP, Algorithm 1, stage 1)."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import arcs_of, one_way

from controller.graph import graph
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
    on = graph(one_way({("a", "x"): 0, **{("x", goal): 0 for goal in goals}, **links}))
    return on, max_flow(on, on.capacity_bps, on.place["a"], [on.place[goal] for goal in goals])


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
def test_what_comes_in_goes_out_and_no_arc_carries_more_than_it_can(links):
    on, flow = flow_of(links)
    gained = dict.fromkeys(range(len(on.names)), 0.0)
    for arc, rate in flow.over.items():
        assert 0 < rate <= on.capacity_bps[arc]
        gained[on.tail[arc]] -= rate
        gained[on.head[arc]] += rate
    assert gained.pop(on.place["g"]) == pytest.approx(flow.rate_bps, abs=1e-6)
    gained.pop(on.place["a"])
    assert all(abs(each) < 1e-6 for each in gained.values())


@given(networks, st.integers(1, 4))
def test_ways_carry_the_flow_the_widest_first(links, most):
    on, flow = flow_of(links)
    found = split(on, flow, on.place["a"], {on.place["g"]: most})
    widths = [width for _, width in found]
    assert widths == sorted(widths, reverse=True)
    assert len(found) <= most
    carried = dict.fromkeys(flow.over, 0.0)
    for way, width in found:
        places = [on.tail[way[0]], *(on.head[arc] for arc in way)]
        assert (places[0], places[-1]) == (on.place["a"], on.place["g"])
        assert len(set(places)) == len(places)
        for arc in way:
            carried[arc] += width
    assert all(rate <= flow.over[arc] * (1 + 1e-9) for arc, rate in carried.items())
    assert len(found) == most or sum(widths) >= 0.99 * flow.rate_bps - 1e-9


def split_names(links, most):
    on, flow = flow_of(links)
    found = split(on, flow, on.place["a"], {on.place["g"]: most})
    return [("".join(on.names[on.head[arc]] for arc in way[:-1]), width) for way, width in found]


def test_of_equally_wide_ways_the_shortest_and_then_the_first_by_name():
    links = {tuple(each): 5.0 for each in ("ac", "cg", "ab", "bg", "ad", "de", "eg")} | {
        ("a", "f"): 6.0,
        ("f", "g"): 6.0,
    }
    assert split_names(links, 9) == [("f", 6), ("b", 5), ("c", 5), ("de", 5)]
    assert split_names(links, 2) == [("f", 6), ("b", 5)]


def test_a_choice_made_too_early_is_undone():
    links = {tuple(each): 1.0 for each in ("ab", "ac", "bd", "cd", "be", "dg", "eg")}
    assert flow_of(links)[1].rate_bps == 2


def test_each_destination_gets_as_many_ways_as_it_wants():
    links = {("a", "b"): 4.0, ("a", "c"): 3.0, ("b", "f"): 4.0, ("c", "f"): 3.0, ("a", "g"): 1.0}
    on, flow = flow_of(links, "fg")
    found = split(on, flow, on.place["a"], {on.place["f"]: 1, on.place["g"]: 2})
    assert [(on.names[on.head[way[-1]]], width) for way, width in found] == [("f", 4), ("g", 1)]


def test_across_a_fat_tree_two_ways_fill_a_host():
    on = graph(arcs_of(fat_tree.build(fat_tree.Params(rate_mbps=10, host_mbps=20))))
    source, goal = on.place["10.0.0.1"], on.place["10.16.0.8"]
    flow = max_flow(on, on.capacity_bps, source, [goal])
    assert flow.rate_bps == 20e6
    assert [width for _, width in split(on, flow, source, {goal: 8})] == [10e6, 10e6]


def test_no_way_is_no_flow():
    on, flow = flow_of({("a", "b"): 1.0})
    assert (flow.rate_bps, dict(flow.over)) == (0, {})
    assert split(on, flow, on.place["a"], {on.place["g"]: 2}) == []
