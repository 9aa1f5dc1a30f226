"""How much fits from one place to others together, and over which ways (S-MPTCP, Algorithm 1, stage 1).

Dinic's algorithm (E. A. Dinic, Soviet Mathematics Doklady 11, 1970) on rates that need not be whole numbers:
1) count the hops from every place to a destination over what is not full; where the source is not reached, the flow is largest
2) send what fits along ways on which every arc leads one hop nearer; an arc that leads nowhere is not looked at again
3) when no such way is left, begin again: the shortest way has become longer
What is already sent over an arc can be sent back, which is how a choice made too early is undone.

The flow is then split into ways:
4) the widest way, of equally wide ones the shortest, of equally short ones the first by the names on it
5) take its rate off the flow; end when less than 1 % of the whole is left, or with as many ways as each destination wants
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from controller.graph import Graph, Way, hops_to

LEAST_SHARE = 1e-9  # of the largest capacity: less is nothing
LEFT_OVER = 0.01  # of the flow: less is not worth a way


@dataclass(frozen=True)
class Flow:
    """A flow from one place to others: its rate in bit/s, and what each arc carries of it, where that is not nothing."""

    rate_bps: float
    over: Mapping[int, float]


class _Residual:
    """Arc n is here edge 2n, and the way back over it edge 2n + 1."""

    def __init__(self, on: Graph, room_bps: Sequence[float]) -> None:
        self.nothing = LEAST_SHARE * max(room_bps, default=0.0)
        self.left = [rate for room in room_bps for rate in (room, 0.0)]
        self.to = [end for ends in zip(on.head, on.tail, strict=True) for end in ends]
        self.edges = [
            [2 * arc for arc in leaving] + [2 * arc + 1 for arc in entering]
            for leaving, entering in zip(on.leaving, on.entering, strict=True)
        ]

    def hops(self, source: int, destinations: Collection[int]) -> list[int]:
        """Hops to the nearest destination, as far as the source is away; -1 where there is no way."""
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
        """Fill every way on which each edge leads one hop nearer; what was sent."""
        left, to, edges, nothing = self.left, self.to, self.edges, self.nothing
        next_edge = [0] * len(edges)
        way: list[int] = []
        sent, here = 0.0, source
        while True:
            if hops[here] == 0:
                rate = min(left[edge] for edge in way)
                for edge in way:
                    left[edge] -= rate
                    left[edge ^ 1] += rate
                sent += rate
                full = next(n for n, edge in enumerate(way) if left[edge] <= nothing)
                here, way = to[way[full] ^ 1], way[:full]
                continue
            choices, n = edges[here], next_edge[here]
            while n < len(choices) and not (
                left[choices[n]] > nothing and hops[to[choices[n]]] == hops[here] - 1
            ):
                n += 1
            next_edge[here] = n
            if n < len(choices):
                way.append(choices[n])
                here = to[choices[n]]
            elif way:
                here = to[way.pop() ^ 1]
                next_edge[here] += 1
            else:
                return sent


def max_flow(
    on: Graph, room_bps: Sequence[float], source: int, destinations: Collection[int]
) -> Flow:
    """The largest flow when arc n has room for `room_bps[n]`, which is not negative; the source is no destination."""
    residual = _Residual(on, room_bps)
    rate_bps = 0.0
    while (hops := residual.hops(source, destinations))[source] > 0:  # 1, 3
        rate_bps += residual.send(source, hops)  # 2
    carried = {
        arc: rate
        for arc, room in enumerate(room_bps)
        if (rate := room - residual.left[2 * arc]) > residual.nothing
    }
    return Flow(rate_bps, carried)


def split(on: Graph, flow: Flow, source: int, wanted: Mapping[int, int]) -> list[tuple[Way, float]]:
    """The ways of a flow and the rate in bit/s of each, the widest first; `wanted` says how many may end at each destination."""
    over, left = dict(flow.over), flow.rate_bps
    open_ends = Counter(wanted)
    found: list[tuple[Way, float]] = []
    while open_ends and left > LEFT_OVER * flow.rate_bps:  # 5
        width = _width(on, over, source, open_ends)
        if width <= LEAST_SHARE * flow.rate_bps:
            break
        way = _first(
            on, {arc for arc, rate in over.items() if rate >= width}, source, open_ends
        )  # 4
        over |= {arc: over[arc] - width for arc in way}
        left -= width
        open_ends -= Counter([on.head[way[-1]]])
        found.append((way, width))
    return found


def _width(on: Graph, over: Mapping[int, float], source: int, ends: Container[int]) -> float:
    """The rate of the widest way to any of these ends."""
    waiting = [(float("-inf"), source)]
    done: set[int] = set()
    while waiting:
        width, here = heappop(waiting)
        if here in ends:
            return -width
        if here not in done:
            done.add(here)
            for arc in on.leaving[here]:
                if over.get(arc, 0.0) > 0:
                    heappush(waiting, (max(width, -over[arc]), on.head[arc]))
    return 0.0


def _first(on: Graph, usable: set[int], source: int, ends: Iterable[int]) -> Way:
    """Of the shortest ways over these arcs the first by the names on it."""
    hops = hops_to(on, ends, usable)
    way: list[int] = []
    here = source
    while hops[here] > 0:
        nearer = (
            arc
            for arc in on.leaving[here]
            if arc in usable and hops.get(on.head[arc]) == hops[here] - 1
        )
        way.append(min(nearer, key=lambda arc: on.names[on.head[arc]]))
        here = on.head[way[-1]]
    return tuple(way)
