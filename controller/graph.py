"""The network as a graph of numbered vertices and arcs, in flat lists for speed.

A vertex is a switch, the air of an access point (a node between the access point and its stations),
or an interface of a host. All addresses of one interface are one vertex, because they share one
link. Each direction between two vertices is one arc.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import pairwise
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

from controller.observation import Arc, air

ArcPath = tuple[int, ...]  # the arcs from a subflow's source to its destination
ArcUse = Mapping[int, float]  # from arc to the capacity that one bit/s on the path takes
EXTRA_HOPS, MOST_PATHS = 2, 64
AIR = air("")
IDENTITY = tuple(
    map(attrgetter, ("link", "tail", "head", "capacity_bps"))
)  # all that a graph depends on
MOST_GRAPHS = 4  # cached, so that no graph is built anew for an unchanged network

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
End = tuple[str, str, str, int]  # link, tail, head and capacity in bit/s of an arc


@dataclass(frozen=True, eq=False)
class Graph:
    """A network as numbered vertices and arcs. An arc is one direction of a link.

    `names` lists the names of the vertices. `vertex` maps the name of a switch, or any address of a
    host, to the number of its vertex. Arc `i` leads from vertex `tail[i]` to vertex `head[i]`.
    `leaving[v]` and `entering[v]` list the arcs that leave and that enter vertex `v`. `memo` caches
    results for this graph (see `remembered`).
    """

    names: tuple[str, ...]
    vertex: dict[str, int]
    tail: list[int]
    head: list[int]
    capacity_bps: list[float]
    leaving: list[list[int]]
    entering: list[list[int]]
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def residual_ends(self) -> list[int]:
        """The vertex to which each edge of the residual graph leads.

        The residual graph is that of max-flow algorithms. For each arc n it has two edges: edge 2n
        in the direction of the arc, and edge 2n + 1 in the opposite direction.
        """
        return [end for ends in zip(self.head, self.tail, strict=True) for end in ends]

    @cached_property
    def residual_edges(self) -> list[list[int]]:
        return [
            [2 * arc for arc in leaving] + [2 * arc + 1 for arc in entering]
            for leaving, entering in zip(self.leaving, self.entering, strict=True)
        ]

    def capacities(self) -> dict[tuple[str, str], float]:
        """Map each arc, as a pair of names (tail, head), to its capacity in bit/s."""
        name = self.names
        return {
            (name[tail], name[head]): capacity
            for tail, head, capacity in zip(self.tail, self.head, self.capacity_bps, strict=True)
        }

    def between(self, tail: int, head: int) -> int | None:
        return next((arc for arc in self.leaving[tail] if self.head[arc] == head), None)


def remembered(
    function: Callable[Concatenate[Graph, Parameters], Result],
) -> Callable[Concatenate[Graph, Parameters], Result]:
    """Decorator that caches the results of `function` in the graph, its first argument.

    The other arguments must be hashable. Callers must not modify a result.
    """

    @wraps(function)
    def looked_up(graph: Graph, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        key = (function, args, frozenset(kwargs.items()))
        if key not in graph.memo:
            graph.memo[key] = function(graph, *args, **kwargs)
        found: Result = graph.memo[key]
        return found

    return looked_up


_recent: deque[tuple[tuple[Any, ...], Graph]] = deque(maxlen=MOST_GRAPHS)


def build_graph(arcs: Iterable[Arc]) -> Graph:
    """Return a graph with the arcs (directions of links) of an observation.

    If several links lead from one vertex to the same other vertex, only the first becomes an arc.
    If the arcs have the same ends and capacities as in an earlier call, the earlier `Graph` is
    returned, with its cached results.
    """
    arcs = tuple(arcs)
    key = tuple(tuple(map(field, arcs)) for field in IDENTITY)
    for each, graph in _recent:
        if each == key:
            return graph
    _recent.appendleft((key, _built(list(zip(*key, strict=True)))))
    return _recent[0][1]


def _built(arcs: Sequence[End]) -> Graph:
    first_address = _first_addresses(arcs)
    vertex: dict[str, int] = {}
    ends: dict[tuple[int, int], float] = {}
    for _, tail_name, head_name, capacity_bps in arcs:
        tail, head = (
            vertex.setdefault(first_address.get(name, name), len(vertex))
            for name in (tail_name, head_name)
        )
        ends.setdefault((tail, head), float(capacity_bps))
    names = tuple(vertex)
    leaving: list[list[int]] = [[] for _ in names]
    entering: list[list[int]] = [[] for _ in names]
    for number, (tail, head) in enumerate(ends):
        leaving[tail].append(number)
        entering[head].append(number)
    tails, heads = [tail for tail, _ in ends], [head for _, head in ends]
    vertex |= {further: vertex[first] for further, first in first_address.items()}
    return Graph(names, vertex, tails, heads, list(ends.values()), leaving, entering)


def _first_addresses(arcs: Sequence[End]) -> dict[str, str]:
    """Map every further address of a host interface to the first address of that interface.

    If several arcs of one link leave the same node, they lead to the addresses of one interface.
    The first of these arcs leads to the first address. An address with a second link is left out.
    """
    degree = Counter(tail for _, tail, _, _ in arcs)
    first: dict[tuple[str, str], str] = {}
    further = {}
    for link, tail, head, _ in arcs:
        if not tail.endswith(AIR):
            known = first.setdefault((link, tail), head)
            if known != head and degree[head] == 1:
                further[head] = known
    return further


def arc_path(
    graph: Graph, source: str, switches: Sequence[str], destination: str
) -> ArcPath | None:
    """Return the arcs from the host address `source` over `switches` to the address `destination`.

    Return None if `switches` is empty, if a name is not in the graph, or if a link is missing.
    """
    return _arc_path(graph, source, tuple(switches), destination)


@remembered
def _arc_path(
    graph: Graph, source: str, switches: tuple[str, ...], destination: str
) -> ArcPath | None:
    stops = [source, *switches, destination]
    if len(switches) == 0 or any(stop not in graph.vertex for stop in stops):
        return None
    found: list[int] = []
    for here, there in pairwise(graph.vertex[stop] for stop in stops):
        step = _arcs_between(graph, here, there)
        if not step:
            return None
        found += step
    return tuple(found)


def _arcs_between(graph: Graph, here: int, there: int) -> list[int]:
    """Return the arcs that lead from vertex `here` to vertex `there`.

    Usually this is one arc. Between an access point and a station there are two, because the radio
    channel is a vertex of its own. The list is empty if the vertices are not linked.
    """
    direct = graph.between(here, there)
    if direct is not None:
        return [direct]
    for first in graph.leaving[here]:
        middle = graph.head[first]
        second = graph.between(middle, there) if graph.names[middle].endswith(AIR) else None
        if second is not None:
            return [first, second]
    return []


def switches_on(graph: Graph, path: ArcPath) -> tuple[str, ...]:
    inner = (graph.names[graph.head[arc]] for arc in path[:-1])
    return tuple(name for name in inner if not name.endswith(AIR))


@remembered
def arc_use(graph: Graph, path: ArcPath) -> ArcUse:
    """Return, for each arc of a path, the capacity in bit/s that one bit/s on the path takes.

    For a wired arc this is 1. The capacity of a radio channel is the rate of the fastest station,
    so a slower station takes more than 1: its frames take more airtime (MP-SDN, eq (2)).
    """
    parts = dict.fromkeys(path, 1.0)
    for one, other in pairwise(path):
        if (
            graph.names[graph.head[one]].endswith(AIR)
            and graph.capacity_bps[one] > 0 < graph.capacity_bps[other]
        ):
            parts[one] = max(1.0, graph.capacity_bps[one] / graph.capacity_bps[other])
            parts[other] = max(1.0, graph.capacity_bps[other] / graph.capacity_bps[one])
    return parts


@remembered
def wired_use(graph: Graph, path: ArcPath) -> ArcUse:
    """Return `arc_use` without the channels that stations share: each has its own rate there."""
    shared = {
        one if graph.capacity_bps[one] >= graph.capacity_bps[other] else other
        for one, other in pairwise(path)
        if graph.names[graph.head[one]].endswith(AIR)
    }
    return {arc: 1.0 for arc in path if arc not in shared}


def hops_to(
    graph: Graph, destinations: Iterable[int], usable: Container[int] | None = None
) -> dict[int, int]:
    """Map each vertex to its distance in arcs to the nearest vertex in `destinations`.

    Only arcs in `usable` count, or all arcs if `usable` is None. Vertices that reach no destination
    are missing.
    """
    hops = dict.fromkeys(destinations, 0)
    waiting = deque(hops)
    while waiting:
        here = waiting.popleft()
        for arc in graph.entering[here]:
            before = graph.tail[arc]
            if before not in hops and (usable is None or arc in usable):
                hops[before] = hops[here] + 1
                waiting.append(before)
    return hops


@remembered
def simple_paths(
    graph: Graph,
    source: int,
    destination: int,
    extra_hops: int = EXTRA_HOPS,
    most: int = MOST_PATHS,
) -> list[ArcPath]:
    """Return loop-free paths from `source` to `destination`, the shortest first.

    There are at most `most` paths. Each is at most `extra_hops` arcs longer than the shortest one.
    Paths of equal length are sorted by the names of their vertices.
    """
    hops = hops_to(graph, [destination])
    if source not in hops:
        return []
    found: list[ArcPath] = []
    for length in range(hops[source], hops[source] + extra_hops + 1):
        for each in _of_length(graph, source, destination, length, hops):
            found.append(each)
            if len(found) == most:
                return found
    return found


def _of_length(
    graph: Graph, source: int, destination: int, length: int, hops: dict[int, int]
) -> Iterator[ArcPath]:
    """Yield the loop-free paths of exactly `length` arcs from `source` to `destination`.

    `hops` maps each vertex to its distance from the destination. Vertices that are too far away are
    skipped early.
    """
    stack: list[tuple[int, ArcPath, frozenset[int]]] = [(source, (), frozenset({source}))]
    while stack:
        here, so_far, visited = stack.pop()
        if here == destination:
            if len(so_far) == length:
                yield so_far
            continue
        left = length - len(so_far) - 1
        near = [
            arc
            for arc in graph.leaving[here]
            if hops.get(graph.head[arc], left + 1) <= left and graph.head[arc] not in visited
        ]
        near.sort(key=lambda arc: graph.names[graph.head[arc]], reverse=True)
        stack += [(graph.head[arc], (*so_far, arc), visited | {graph.head[arc]}) for arc in near]
