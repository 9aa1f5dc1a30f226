"""The network as a graph of numbered places and arcs: flat lists, so that large networks stay quick. Pure.

A place is a switch, the air of an access point, or a host's interface: the addresses of one interface are one place, since
they share its link. Between two places each direction is one arc.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.observation import Arc, air

Way = tuple[int, ...]  # arcs by number, from a subflow's source to its destination
Use = Mapping[int, float]  # arcs, and how much of each a bit takes
MORE_HOPS, MOST_WAYS = 2, 64
AIR = air("")


@dataclass(frozen=True)
class Graph:
    """Places have numbers (`place`, by name and by address), arcs too; `leaving` and `entering` list the arcs of a place."""

    names: tuple[str, ...]
    place: dict[str, int]
    tail: list[int]
    head: list[int]
    capacity_bps: list[float]
    leaving: list[list[int]]
    entering: list[list[int]]

    def between(self, tail: int, head: int) -> int | None:
        """The arc from one place to another."""
        return next((arc for arc in self.leaving[tail] if self.head[arc] == head), None)


def graph(arcs: Iterable[Arc]) -> Graph:
    """The graph of an observation's arcs; of several links between two places the first one counts."""
    arcs = tuple(arcs)
    interface = _interfaces(arcs)
    place: dict[str, int] = {}
    ends: dict[tuple[int, int], float] = {}
    for arc in arcs:
        tail, head = (
            place.setdefault(interface.get(name, name), len(place)) for name in (arc.tail, arc.head)
        )
        ends.setdefault((tail, head), float(arc.capacity_bps))
    names = tuple(place)
    leaving: list[list[int]] = [[] for _ in names]
    entering: list[list[int]] = [[] for _ in names]
    for number, (tail, head) in enumerate(ends):
        leaving[tail].append(number)
        entering[head].append(number)
    tails, heads = [tail for tail, _ in ends], [head for _, head in ends]
    place |= {further: place[first] for further, first in interface.items()}
    return Graph(names, place, tails, heads, list(ends.values()), leaving, entering)


def _interfaces(arcs: Sequence[Arc]) -> dict[str, str]:
    """The first address at each link of a host for every further one: what else the link leads to, and what leads nowhere else."""
    degree = Counter(arc.tail for arc in arcs)
    first: dict[tuple[str, str], str] = {}
    further = {}
    for arc in arcs:
        if not arc.tail.endswith(AIR):
            known = first.setdefault((arc.link, arc.tail), arc.head)
            if known != arc.head and degree[arc.head] == 1:
                further[arc.head] = known
    return further


def arcs_over(on: Graph, source: str, path: Sequence[str], destination: str) -> Way | None:
    """The arcs from an address over these switches to another address; None where a link is missing, or there is no path."""
    stops = [source, *path, destination]
    if len(path) == 0 or any(stop not in on.place for stop in stops):
        return None
    found: list[int] = []
    for here, there in pairwise(on.place[stop] for stop in stops):
        step = _over(on, here, there)
        if not step:
            return None
        found += step
    return tuple(found)


def _over(on: Graph, here: int, there: int) -> list[int]:
    """The arc between two places, or the two that meet in the air of an access point."""
    direct = on.between(here, there)
    if direct is not None:
        return [direct]
    for first in on.leaving[here]:
        middle = on.head[first]
        second = on.between(middle, there) if on.names[middle].endswith(AIR) else None
        if second is not None:
            return [first, second]
    return []


def switches(on: Graph, over: Way) -> tuple[str, ...]:
    """The switches of a way from one address to another, as `Route.path` names them."""
    inner = (on.names[on.head[arc]] for arc in over[:-1])
    return tuple(name for name in inner if not name.endswith(AIR))


def use(on: Graph, over: Way) -> Use:
    """What a bit on this way takes of each arc: of the air as much more as its station is slower than the best (MP-SDN, eq (2))."""
    parts = dict.fromkeys(over, 1.0)
    for one, other in pairwise(over):
        if (
            on.names[on.head[one]].endswith(AIR)
            and on.capacity_bps[one] > 0 < on.capacity_bps[other]
        ):
            parts[one] = max(1.0, on.capacity_bps[one] / on.capacity_bps[other])
            parts[other] = max(1.0, on.capacity_bps[other] / on.capacity_bps[one])
    return parts


def hops_to(
    on: Graph, destinations: Iterable[int], usable: Container[int] | None = None
) -> dict[int, int]:
    """How many arcs lead from each place to the nearest destination, over usable arcs only."""
    hops = dict.fromkeys(destinations, 0)
    waiting = deque(hops)
    while waiting:
        here = waiting.popleft()
        for arc in on.entering[here]:
            before = on.tail[arc]
            if before not in hops and (usable is None or arc in usable):
                hops[before] = hops[here] + 1
                waiting.append(before)
    return hops


def ways(
    on: Graph, source: int, destination: int, more: int = MORE_HOPS, most: int = MOST_WAYS
) -> list[Way]:
    """Ways without a loop, up to `more` hops longer than the shortest; the shortest first, else by the names on them."""
    hops = hops_to(on, [destination])
    if source not in hops:
        return []
    found: list[Way] = []
    for length in range(hops[source], hops[source] + more + 1):
        for each in _of_length(on, source, destination, length, hops):
            found.append(each)
            if len(found) == most:
                return found
    return found


def _of_length(
    on: Graph, source: int, destination: int, length: int, hops: dict[int, int]
) -> Iterator[Way]:
    """Ways with exactly so many arcs, depth first; a branch that cannot end in time is not begun."""
    stack: list[tuple[int, Way, frozenset[int]]] = [(source, (), frozenset({source}))]
    while stack:
        here, so_far, seen = stack.pop()
        if here == destination:
            if len(so_far) == length:
                yield so_far
            continue
        left = length - len(so_far) - 1
        near = [
            arc
            for arc in on.leaving[here]
            if hops.get(on.head[arc], left + 1) <= left and on.head[arc] not in seen
        ]
        near.sort(key=lambda arc: on.names[on.head[arc]], reverse=True)
        stack += [(on.head[arc], (*so_far, arc), seen | {on.head[arc]}) for arc in near]
