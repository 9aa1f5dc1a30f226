"""Find a path for each subflow of one connection (S-MPTCP, Algorithm 1, as repaired).

The load of this connection itself is not counted. An arc is one direction of a link, a pair is the
source and the destination of a subflow, and a candidate is a loop-free path between them. Each pair
gets as many paths as it has subflows:
1) Compute the largest flow over the capacity that other connections leave free, and split it into
   paths. If that takes more paths than the pair has subflows, use the widest paths one after
   another instead, provided that they carry more.
2) The chosen paths should be able to carry, without other load, the mean rate of the connections
   that share arcs with the candidates. While they are not, add a candidate: the one on which the
   other connections are farthest above the mean (eq (3)). Eq (3) is a sum over the connections on a
   path, so it prefers detours and paths that share an arc with a chosen one. To avoid that, shorter
   and separate candidates come first.
3) If a pair still has too few paths, add the candidate that shares the fewest arcs with the chosen
   paths. Its subflow carries data when capacity becomes free.
4) A subflow keeps its present path if that is one of its pair's paths. The remaining paths go to
   the other subflows by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from controller.graph import ArcPath, ArcUse, Graph, arc_use, simple_paths
from controller.strategies.expected_throughput.allocation import (
    Paths,
    Shares,
    Sharing,
)
from controller.strategies.expected_throughput.max_flow import LEFT_OVER, Flow, max_flow, split

Pair = tuple[int, int]  # the vertices of source and destination
Chosen = dict[Pair, list[ArcPath]]
SAME = 1e-6  # of the total rate; two candidates with a smaller difference are equal


@dataclass(frozen=True)
class PathRequest:
    """A subflow that needs a path.

    `pair` has the graph vertices of its source and destination. `present` is its present path, or
    None.
    """

    pair: Pair
    present: ArcPath | None = None


def explore(
    graph: Graph,
    requests: Sequence[PathRequest],
    others: Paths,
    shares: Shares,
    sharing: Sharing | None = None,
) -> list[ArcPath | None]:
    """Return a path for each subflow in `requests`, or None if no path joins its two ends.

    All requests are from one connection. `others` has the paths of all other connections, and
    `shares` their rates on these paths in bit/s. `sharing` must be `Sharing(others)`; it is
    computed if it is None. The method is S-MPTCP's Algorithm 1, as repaired (see the module's
    docstring).
    """
    wanted = Counter(each.pair for each in requests)
    candidates = {pair: simple_paths(graph, *pair) for pair in wanted}
    chosen = _over_free_capacity(graph, wanted, others, shares)  # 1
    _add_for_fairness(
        graph,
        wanted,
        candidates,
        chosen,
        _Competition(candidates, sharing or Sharing(others), shares),
    )
    for pair, count in wanted.items():
        _fill_up(chosen, pair, count, candidates[pair])  # 3
    return _assigned(requests, chosen)  # 4


def _over_free_capacity(
    graph: Graph, wanted: Mapping[Pair, int], others: Paths, shares: Shares
) -> Chosen:
    """Return paths through the capacity that other connections leave free.

    `wanted` maps each pair of source and destination to the largest number of paths for the pair.
    The other connections have the paths `others` and the rates `shares`. The paths from each source
    are those that `_widest` returns.
    """
    free = list(graph.capacity_bps)
    for name, own in others.items():
        for use, rate in zip(own, shares[name], strict=True):
            _take(free, use, rate)
    chosen: Chosen = {pair: [] for pair in wanted}
    for source, ends in _by_source(wanted).items():
        for path, rate in _widest(graph, free, source, ends):
            chosen[source, graph.head[path[-1]]].append(path)
            _take(free, arc_use(graph, path), rate)
    return chosen


def _widest(
    graph: Graph, free_bps: Sequence[float], source: int, ends: Mapping[int, int]
) -> list[tuple[ArcPath, float]]:
    """Return paths from `source` through the capacity `free_bps`, with their rates in bit/s.

    `ends` maps each destination to the wanted number of paths. The largest flow is split into at
    most this many paths. If these paths cannot carry the whole flow, the widest paths are also
    taken one after another. Of the two results, the one that carries more is returned.
    """
    flow = max_flow(graph, free_bps, source, ends)
    found = split(graph, flow, source, ends)
    if _carried(found) > (1 - LEFT_OVER) * flow.rate_bps:
        return found
    greedy = split(graph, Flow(flow.rate_bps, dict(enumerate(free_bps))), source, ends)
    return max(found, greedy, key=_carried)


def _carried(found: Iterable[tuple[ArcPath, float]]) -> float:
    return sum(rate for _, rate in found)


def _take(free_bps: list[float], use: ArcUse, rate_bps: float) -> None:
    for arc, part in use.items():
        free_bps[arc] = max(0.0, free_bps[arc] - rate_bps * part)


def _by_source(wanted: Mapping[Pair, int]) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {}
    for (source, destination), count in wanted.items():
        found.setdefault(source, {})[destination] = count
    return found


class _Competition:
    """The other connections that share arcs with a connection's candidate paths.

    `mean` is the mean rate in bit/s over these connections and all connections that share arcs with
    them, directly or through others.
    """

    def __init__(self, candidates: Chosen, sharing: Sharing, shares: Shares) -> None:
        self._rates = {name: sum(rates) for name, rates in shares.items()}
        self._users = sharing.users
        met = {name for found in candidates.values() for path in found for name in self._on(path)}
        together = sharing.together(met)
        self._total = fsum(self._rates[name] for name in together)
        self.mean = self._total / len(together) if together else 0.0

    def excess(self, path: ArcPath) -> int:
        """Return the sum of (rate - mean rate) over the connections on a path (S-MPTCP, eq (3)).

        The sum is divided by `SAME` times the total rate of all competing connections, and rounded.
        Paths with nearly the same sum therefore compare as equal.
        """
        met = self._on(path)
        above = fsum(self._rates[name] for name in met) - len(met) * self.mean
        return round(above / (SAME * self._total)) if self._total else 0

    def _on(self, path: ArcPath) -> set[str]:
        return {name for arc in path for name in self._users.get(arc, ())}


def _add_for_fairness(
    graph: Graph,
    wanted: Mapping[Pair, int],
    candidates: Mapping[Pair, list[ArcPath]],
    chosen: Chosen,
    competition: _Competition,
) -> None:
    """Add candidates to `chosen` until the chosen paths can carry `competition.mean`.

    This is the mean rate of the competing connections. What the chosen paths can carry is computed
    without any other load on them. Stop earlier if no candidate is left.
    """
    while _alone_bps(graph, chosen) < competition.mean:
        used = _times_used(chosen)
        left = [
            (
                len(candidates[pair][0]) - len(path),
                -sum(used[arc] for arc in path),
                competition.excess(path),
                pair,
                path,
            )
            for pair, count in wanted.items()
            if len(chosen[pair]) < count
            for path in candidates[pair]
            if path not in chosen[pair]
        ]
        if not left:
            return
        *_, pair, path = max(left, key=lambda each: each[:3])
        chosen[pair].append(path)


def _alone_bps(graph: Graph, chosen: Chosen) -> float:
    """Return the rate in bit/s that the chosen paths carry together without any other load."""
    free = [0.0] * len(graph.capacity_bps)
    for arc in _times_used(chosen):
        free[arc] = graph.capacity_bps[arc]
    carried = 0.0
    for source, ends in _by_source(dict.fromkeys(chosen, 1)).items():
        flow = max_flow(graph, free, source, ends)
        carried += flow.rate_bps
        for arc, rate in flow.on_arc.items():
            free[arc] = max(0.0, free[arc] - rate)
    return carried


def _fill_up(chosen: Chosen, pair: Pair, count: int, candidates: Iterable[ArcPath]) -> None:
    """Add candidates to `chosen` until `pair` has `count` paths, one for each of its subflows.

    A pair is a source and a destination. The candidate that shares the fewest arcs with the chosen
    paths comes first. A path is added a second time only if no unused candidate is left.
    """
    while len(chosen[pair]) < count:
        left = [path for path in candidates if path not in chosen[pair]] or list(candidates)
        if not left:
            return
        used = _times_used(chosen)
        chosen[pair].append(min(left, key=lambda path: sum(used[arc] for arc in path)))


def _times_used(chosen: Chosen) -> Counter[int]:
    return Counter(arc for found in chosen.values() for path in found for arc in path)


def _assigned(requests: Sequence[PathRequest], chosen: Chosen) -> list[ArcPath | None]:
    """Return a path from `chosen` for each request, or None if no path is left for it.

    A subflow keeps its present path if this path was chosen. The other subflows get the remaining
    paths in order.
    """
    left = {pair: list(found) for pair, found in chosen.items()}
    given: list[ArcPath | None] = [None] * len(requests)
    for n, each in enumerate(requests):
        if each.present in left[each.pair]:
            given[n] = each.present
            left[each.pair].remove(each.present)
    for n, each in enumerate(requests):
        if given[n] is None and left[each.pair]:
            given[n] = left[each.pair].pop(0)
    return given
