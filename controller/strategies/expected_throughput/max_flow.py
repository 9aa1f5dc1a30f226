"""Compute the largest flow from one vertex to others, and split it into paths.

This is stage 1 of Algorithm 1 of S-MPTCP. It uses Dinic's algorithm (E. A. Dinic, Soviet
Mathematics Doklady 11, 1970) with rates that need not be whole numbers. An arc is one direction of
a link.

1) Count the hops from every vertex to the nearest destination, over arcs with free capacity. If
   the source cannot reach a destination, the flow is the largest.
2) Send as much as possible along paths on which every arc leads one hop nearer to a destination.
   Skip an arc from which no such path leads on.
3) When no such path is left, go back to 1. The shortest path is now longer.
Flow on an arc can be sent back later, which undoes a choice that was made too early.

The flow is split into paths:
4) Take the widest path; of equally wide paths the shortest, and of these the first by the names of
   its vertices.
5) Subtract its rate from the flow. End when less than 1 % of the flow is left, or when each
   destination has as many paths as it wants.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from controller.graph import ArcPath, Graph, hops_to

ZERO = 1e-9  # of the largest capacity; a smaller rate counts as 0
LEFT_OVER = 0.01  # of the flow; a smaller rest gets no path


@dataclass(frozen=True)
class Flow:
    """A flow through the graph, in the sense of the max-flow problem.

    `rate_bps` is its total rate. `on_arc` maps each used arc to the rate on this arc in bit/s.
    """

    rate_bps: float
    on_arc: Mapping[int, float]


class _Residual:
    """The residual graph: how much the flow on each arc can still grow or shrink.

    Edge 2n has the free capacity of arc n. Edge 2n + 1 leads in the opposite direction. Its
    capacity is the flow on arc n, which can be sent back.
    """

    def __init__(self, graph: Graph, free_bps: Sequence[float]) -> None:
        self.nothing = ZERO * max(free_bps, default=0.0)
        self.left = [0.0] * (2 * len(free_bps))
        self.left[::2] = free_bps
        self.to, self.edges = graph.residual_ends, graph.residual_edges
        self.touched: set[int] = set()  # arcs on which flow has been sent

    def hops(self, source: int, destinations: Collection[int]) -> list[int]:
        """Return the number of hops from each vertex to the nearest destination, or -1.

        The search begins at the destinations and stops when it reaches `source`. A vertex has -1 if
        no path leads from it to a destination, or if the search stopped earlier.
        """
        left, to, edges, nothing = self.left, self.to, self.edges, self.nothing
        hops = [-1] * len(edges)
        for destination in destinations:
            hops[destination] = 0
        waiting = deque(destinations)
        while waiting and hops[source] < 0:
            here = waiting.popleft()
            farther = hops[here] + 1
            for edge in edges[here]:
                before = to[edge]
                if hops[before] < 0 and left[edge ^ 1] > nothing:
                    hops[before] = farther
                    waiting.append(before)
        return hops

    def send(self, source: int, hops: list[int]) -> float:
        """Send as much flow as possible along edges that lead one hop nearer to a destination.

        `hops` has the distance of each vertex from the nearest destination. Return the added rate
        in bit/s.
        """
        left, to, edges, nothing = self.left, self.to, self.edges, self.nothing
        next_edge = [0] * len(edges)
        path: list[int] = []
        sent, here = 0.0, source
        while True:
            if hops[here] == 0:
                rate = min(left[edge] for edge in path)
                for edge in path:
                    left[edge] -= rate
                    left[edge ^ 1] += rate
                    self.touched.add(edge >> 1)
                sent += rate
                full = next(n for n, edge in enumerate(path) if left[edge] <= nothing)
                here, path = to[path[full] ^ 1], path[:full]
                continue
            choices, n = edges[here], next_edge[here]
            while n < len(choices) and not (
                left[choices[n]] > nothing and hops[to[choices[n]]] == hops[here] - 1
            ):
                n += 1
            next_edge[here] = n
            if n < len(choices):
                path.append(choices[n])
                here = to[choices[n]]
            elif path:
                here = to[path.pop() ^ 1]
                next_edge[here] += 1
            else:
                return sent


def max_flow(
    graph: Graph, free_bps: Sequence[float], source: int, destinations: Collection[int]
) -> Flow:
    """Return the largest flow from `source` to all `destinations` together.

    Arc n can carry `free_bps[n]` >= 0. The source must not be one of the destinations.
    """
    residual = _Residual(graph, free_bps)
    rate_bps = 0.0
    while (hops := residual.hops(source, destinations))[source] > 0:  # 1, 3
        rate_bps += residual.send(source, hops)  # 2
    carried = {
        arc: rate
        for arc in sorted(residual.touched)
        if (rate := free_bps[arc] - residual.left[2 * arc]) > residual.nothing
    }
    return Flow(rate_bps, carried)


def split(
    graph: Graph, flow: Flow, source: int, wanted: Mapping[int, int]
) -> list[tuple[ArcPath, float]]:
    """Split a flow into paths; return each path with its rate in bit/s, the widest first.

    `wanted` maps each destination to the largest number of paths that may lead to it. Paths are
    added until all these numbers are reached, or until less than 1 % of the flow has no path.
    """
    on_arc, left = dict(flow.on_arc), flow.rate_bps
    open_ends = Counter(wanted)
    found: list[tuple[ArcPath, float]] = []
    while open_ends and left > LEFT_OVER * flow.rate_bps:  # 5
        width = _width(graph, on_arc, source, open_ends)
        if width <= ZERO * flow.rate_bps:
            break
        wide = {arc for arc, rate in on_arc.items() if rate >= width}
        path = _first_shortest(graph, wide, source, open_ends)  # 4
        on_arc |= {arc: on_arc[arc] - width for arc in path}
        left -= width
        open_ends -= Counter([graph.head[path[-1]]])
        found.append((path, width))
    return found


def _width(graph: Graph, on_arc: Mapping[int, float], source: int, ends: Container[int]) -> float:
    """Return the width in bit/s of the widest path from `source` to any of `ends`.

    The width of a path is the smallest rate among its arcs. `on_arc` maps arcs to rates. Without a
    path the result is 0.
    """
    waiting = [(float("-inf"), source)]
    done: set[int] = set()
    while waiting:
        width, here = heappop(waiting)
        if here in ends:
            return -width
        if here not in done:
            done.add(here)
            for arc in graph.leaving[here]:
                if on_arc.get(arc, 0.0) > 0:
                    heappush(waiting, (max(width, -on_arc[arc]), graph.head[arc]))
    return 0.0


def _first_shortest(graph: Graph, usable: set[int], source: int, ends: Iterable[int]) -> ArcPath:
    """Return a shortest path from `source` to one of `ends` over the arcs in `usable`.

    Among several, it is the first one by the names of the vertices.
    """
    hops = hops_to(graph, ends, usable)
    path: list[int] = []
    here = source
    while hops[here] > 0:
        nearer = (
            arc
            for arc in graph.leaving[here]
            if arc in usable and hops.get(graph.head[arc]) == hops[here] - 1
        )
        path.append(min(nearer, key=lambda arc: graph.names[graph.head[arc]]))
        here = graph.head[path[-1]]
    return tuple(path)
