"""Measure how long the controller's strategies compute in large networks."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controller import paths
from controller.command import Expect, Route, SetBackup
from controller.graph import Graph, arc_path, arc_use, build_graph
from controller.observation import Arc, Observation, Subflow, SubflowKey
from controller.strategies import Strategy, make
from controller.strategies.expected_throughput import allocation, max_flow
from controller.strategies.subflow_selection.forecast import Model, PathQuality, estimate
from controller.strategies.subflow_selection.search import greedy
from controller.topology import Topology as ControllerTopology
from lab.topologies import fat_tree
from lab.topologies.topology import Topology, Wiring, as_json, wire

Hashed = tuple[paths.Flow, paths.Path]


Tree = tuple[Topology, Wiring, ControllerTopology, Graph]


def _tree(k: int) -> Tree:
    topology = fat_tree.build(fat_tree.Params(k=k))
    wiring = wire(topology)
    network = ControllerTopology.model_validate(as_json(topology, wiring))
    return topology, wiring, network, build_graph(network.arcs())


def largest_flow(k: int) -> tuple[float]:
    """Return how long computing the largest flow between two hosts of a fat tree takes [ms].

    `k` is the number of ports per switch.
    """
    _, wiring, _, graph = _tree(k)
    source, destination = (graph.vertex[wiring.of(host)[0].address] for host in ("srv1", "ue1"))
    began = time.perf_counter()
    flow = max_flow.max_flow(graph, graph.capacity_bps, source, [destination])
    took_s = time.perf_counter() - began
    assert flow.rate_bps > 0
    return (took_s * 1000,)


def _hashed_flows(tree: Tree, user: str) -> list[Hashed]:
    """Return two flows from the user's server to the user, with the paths chosen by a hash."""
    topology, wiring, network, _ = tree
    near: dict[str, set[str]] = {switch: set() for switch in network.switches}
    for trunk in network.trunks:
        near[trunk.a].add(trunk.b)
        near[trunk.b].add(trunk.a)
    server, own = wiring.of(topology.server_of(user))[0], wiring.of(user)[0]
    candidates = paths.between(near, server.switch, own.switch)
    flows = [
        paths.Flow(server.address, address, paths.TCP, 5001, port)
        for address, port in zip((own.address, *own.further), (40001, 40002), strict=True)
    ]
    return [(flow, paths.choose(candidates, flow)) for flow in flows]


def reallocation() -> tuple[float]:
    """Return how long computing new rates takes when a 100th connection arrives [ms].

    The network is a fat tree. Each connection has two subflows. A hash of addresses and ports
    chooses their paths.
    """
    tree = _tree(10)
    graph = tree[3]
    uses: dict[str, list[Any]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    took_s = 0.0
    for user in tree[0].users[:100]:
        found = [
            arc_path(graph, flow.source, path, flow.destination)
            for flow, path in _hashed_flows(tree, user)
        ]
        uses[user] = [arc_use(graph, path) for path in found if path is not None]
        began = time.perf_counter()
        shares = allocation.reallocate(graph.capacity_bps, uses, shares, user)
        took_s = time.perf_counter() - began
    assert len(shares) == 100
    return (took_s * 1000,)


def steps_in_a_large_tree(form: str) -> tuple[float, float]:
    """Return how long the strategy `expected_throughput` computes in a fat tree with k = 16 [ms].

    `form` is the strategy's parameter `allocation`. Both results are times for one decision of the
    strategy:

    - Connections of 100 users arrive one after the other. The result is the second longest time.
    - A core link fails, comes back, halves its rate and doubles it again. The result is the longest
      of the four times.
    """
    tree = _tree(16)
    users, arcs = tree[0].users[::5][:100], tree[2].arcs()
    hosts = _ConfirmingHosts(make("expected_throughput", {"allocation": form}))
    gc.collect()
    gc.freeze()  # a real controller has no topology for the garbage collector to search
    hosts.step_ms(arcs)
    arrivals = []
    for user in users:
        hosts.open(user, _hashed_flows(tree, user))
        arrivals.append(hosts.step_ms(arcs))
    core = hosts.subflows[f"{users[0]}-1", 1].path[1:3]
    slow = [
        replace(arc, capacity_bps=arc.capacity_bps // 2) if {arc.tail, arc.head} == {*core} else arc
        for arc in arcs
    ]
    broken = [arc for arc in arcs if {arc.tail, arc.head} != {*core}]
    changes = [hosts.step_ms(each) for each in (broken, arcs, slow, arcs)]
    gc.unfreeze()
    return sorted(arrivals)[-2], max(changes)


class _ConfirmingHosts:
    """Simulated hosts that carry out the commands of a strategy at once."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self.subflows: dict[SubflowKey, Subflow] = {}

    def open(self, user: str, flows: Iterable[Hashed]) -> None:
        for number, (flow, path) in enumerate(flows, 1):
            ends = (
                f"{flow.source}:{flow.source_port}",
                f"{flow.destination}:{flow.destination_port}",
            )
            key = (f"{user}-1", number)
            self.subflows[key] = Subflow(*key, user, "", *ends, path=path)

    def step_ms(self, arcs: Iterable[Arc]) -> float:
        """Let the strategy decide for a network with these arcs; return how long this took [ms].

        An arc is one direction of a link.
        """
        observation = Observation(0, subflows=tuple(self.subflows.values()), arcs=tuple(arcs))
        began = time.perf_counter()
        decisions = self._strategy.decide(observation)
        took_s = time.perf_counter() - began
        for decision in decisions:
            match decision.command:
                case Route(key, path):
                    self.subflows[key] = replace(self.subflows[key], path=path)
                case Expect(key, rate_bps):
                    self.subflows[key] = replace(self.subflows[key], expected_bps=rate_bps)
                case SetBackup(key, backup):
                    self.subflows[key] = replace(self.subflows[key], backup=backup)
        return took_s * 1000


def selection() -> tuple[float]:
    """Return how long one greedy selection of subflows among fifteen paths takes [ms]."""
    estimate.cache_clear()  # forget what earlier measurements have computed
    fifteen = [
        PathQuality(1e6 * (1 + n % 5), 0.001 * (n % 4), 0.02 + 0.01 * n, 0.002) for n in range(15)
    ]
    began = time.perf_counter()
    greedy(fifteen, Model(), 50_000.0)
    return ((time.perf_counter() - began) * 1000,)
