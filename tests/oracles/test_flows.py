"""The largest flow, and the rate of a connection that is alone, compared with linear programmes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.optimize import linprog

from controller.graph import build_graph
from controller.strategies.expected_throughput.max_flow import max_flow, split

from .programmes import Rates
from .random_networks import Watched, topology

pytestmark = pytest.mark.oracle

CASES = range(300)


def largest_flow(arcs, source, destination):
    """Largest flow in bit/s: a linear programme over the flow on each arc."""
    ends = sorted({name for arc in arcs for name in (arc.tail, arc.head)})
    balance = np.zeros((len(ends), len(arcs)))
    for n, arc in enumerate(arcs):
        balance[ends.index(arc.tail), n] -= 1
        balance[ends.index(arc.head), n] += 1
    inner = [n for n, name in enumerate(ends) if name not in (source, destination)]
    done = linprog(
        -balance[ends.index(destination)],
        A_eq=balance[inner],
        b_eq=np.zeros(len(inner)),
        bounds=[(0, arc.capacity_bps / 1e6) for arc in arcs],
        method="highs",
    )
    assert done.status == 0, done.message
    return -done.fun * 1e6


def test_the_largest_flow(truth):
    worst, lost = [], []
    for seed in CASES:
        rng = random.Random(3000 + seed)
        arcs = Watched(topology(rng)).arcs
        switches = sorted({arc.tail for arc in arcs if arc.tail.startswith("s")})
        source, destination = rng.sample(switches, 2)
        inner = [arc for arc in arcs if {arc.tail, arc.head} <= set(switches)]
        expected = largest_flow(inner, source, destination)
        graph = build_graph(inner)
        ends = graph.vertex[source], graph.vertex[destination]
        flow = max_flow(graph, graph.capacity_bps, ends[0], [ends[1]])
        worst.append(abs(flow.rate_bps - expected) / max(expected, 1.0))
        parts = split(graph, flow, ends[0], {ends[1]: 1000})
        lost.append(1 - sum(rate for _, rate in parts) / flow.rate_bps)
    failed = sum(each > 1e-6 for each in worst)
    truth("largest flow", len(worst), failed, f"{max(worst):.1e} relative", "<= 1e-6")
    failed_splits = sum(each > 0.01 for each in lost)
    truth("paths of the largest flow", len(lost), failed_splits, f"{max(lost):.2%} lost", "<= 1 %")
    assert not failed
    assert not failed_splits


@pytest.mark.parametrize("form", ["max_min", "paper"])
def test_a_connection_that_is_alone_gets_all_its_routes_can_carry(form, truth):
    worst = []
    for seed in CASES:
        network = Watched(topology(random.Random(4000 + seed)), allocation=form)
        network.open("ue1")
        programme = Rates(network.capacity(), network.routes())
        most = programme.largest(programme.sums[0], [0.0]) * 1e6
        worst.append(network.rates()["ue1-1"] / most)
    failed = sum(each < 0.99 for each in worst)
    text = f"{min(worst):.4f} of what its routes carry"
    truth(
        f"`{form}`: expected throughput of a connection alone", len(worst), failed, text, ">= 0.99"
    )
    assert form == "paper" or not failed
