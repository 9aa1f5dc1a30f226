"""Measure how long the controller's strategies compute on large networks."""

from __future__ import annotations

import time
from typing import Any

from controller import paths
from controller.graph import Graph, arc_path, arc_use, build_graph
from controller.plan import Plan
from controller.strategies.expected_throughput import allocation, max_flow
from controller.strategies.subflow_selection.forecast import Model, PathQuality, estimate
from controller.strategies.subflow_selection.selection import greedy
from lab.topologies import fat_tree
from lab.topologies.topology import Topology, Wiring, wire
from lab.topologies.topology_file import describe


def _tree(k: int) -> tuple[Topology, Wiring, Plan, Graph]:
    topology = fat_tree.build(fat_tree.Params(k=k))
    wiring = wire(topology)
    plan = Plan.model_validate(describe(topology, wiring))
    return topology, wiring, plan, build_graph(plan.arcs())


def largest_flow(k: int) -> tuple[float]:
    """Return the time in ms to compute the largest flow between two hosts of a fat tree. `k` is the
    number of ports of each switch."""
    _, wiring, _, graph = _tree(k)
    source, destination = (graph.vertex[wiring.of(host)[0].address] for host in ("srv1", "ue1"))
    began = time.perf_counter()
    flow = max_flow.max_flow(graph, graph.capacity_bps, source, [destination])
    took_s = time.perf_counter() - began
    assert flow.rate_bps > 0
    return (took_s * 1000,)


def reallocation() -> tuple[float]:
    """Return the time in ms to compute new rates when the 100th connection arrives at a fat tree.

    The connections arrive one after the other. Each has two subflows on paths that a hash of their
    addresses and ports selects.
    """
    topology, wiring, plan, graph = _tree(10)
    near: dict[str, set[str]] = {switch: set() for switch in plan.switches}
    for trunk in plan.trunks:
        near[trunk.a].add(trunk.b)
        near[trunk.b].add(trunk.a)
    uses: dict[str, list[Any]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    took_s = 0.0
    for user in topology.users[:100]:
        server, own = wiring.of(topology.server_of(user))[0], wiring.of(user)[0]
        candidates = paths.between(near, server.switch, own.switch)
        flows = (
            paths.Flow(server.address, own.address, paths.TCP, 5001, port)
            for port in (40001, 40002)
        )
        found = [
            arc_path(graph, server.address, paths.choose(candidates, flow), own.address)
            for flow in flows
        ]
        uses[user] = [arc_use(graph, path) for path in found if path is not None]
        began = time.perf_counter()
        shares = allocation.reallocate(graph.capacity_bps, uses, shares, user)
        took_s = time.perf_counter() - began
    assert len(shares) == 100
    return (took_s * 1000,)


def selection() -> tuple[float]:
    """Return the time in ms of one greedy selection of subflows among fifteen paths."""
    estimate.cache_clear()  # forget what earlier measurements have computed
    fifteen = [
        PathQuality(1e6 * (1 + n % 5), 0.001 * (n % 4), 0.02 + 0.01 * n, 0.002) for n in range(15)
    ]
    began = time.perf_counter()
    greedy(fifteen, Model(), 50_000.0)
    return ((time.perf_counter() - began) * 1000,)
