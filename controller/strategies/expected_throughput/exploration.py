"""Which ways the subflows of one connection should take (S-MPTCP, Algorithm 1, as repaired).

Its own share is left out of what the network carries. A pair is where subflows of the connection begin and end: a pair takes
as many ways as it has subflows, so that each subflow has one.
1) the largest flow over what others leave free, split into ways; it may be spread over more ways than there are subflows, and
   then the widest ways one after another may carry more
2) where these ways would not carry the mean of the connections beside it even if they were empty, the candidate is added from
   whose users most can be taken: what they have above their part of the whole (eq (3)). That adds up all users of a way and
   so favours detours, and ways that share an arc with one chosen already: shorter and separate candidates come first
3) a subflow that is left over shares the fewest arcs with the ways chosen; it carries what becomes free later
4) a subflow keeps the way it has if that is one of the pair's; the others are given out by number
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.graph import Graph, Use, Way, use, ways
from controller.strategies.expected_throughput.allocation import (
    Shares,
    Ways,
    neighbours,
    reached,
    users,
)
from controller.strategies.expected_throughput.max_flow import LEFT_OVER, Flow, max_flow, split

Pair = tuple[int, int]  # places
Chosen = dict[Pair, list[Way]]
SAME = 1e-6  # of the whole: a smaller difference between two candidates is none


@dataclass(frozen=True)
class Asking:
    """A subflow that needs a way: the places it joins, and the way it has now, if any."""

    pair: Pair
    now: Way | None = None


def explore(on: Graph, asking: Sequence[Asking], others: Ways, shares: Shares) -> list[Way | None]:
    """A way for each subflow of a connection beside the others with their shares in bit/s; None where no way leads."""
    wanted = Counter(each.pair for each in asking)
    candidates = {pair: ways(on, *pair) for pair in wanted}
    chosen = _over_what_is_free(on, wanted, others, shares)  # 1
    _add_for_fairness(on, wanted, candidates, chosen, _Beside(candidates, others, shares))  # 2
    for pair, count in wanted.items():
        _fill_up(chosen, pair, count, candidates[pair])  # 3
    return _given_out(asking, chosen)  # 4


def _over_what_is_free(
    on: Graph, wanted: Mapping[Pair, int], others: Ways, shares: Shares
) -> Chosen:
    """The ways of the largest flow over what the others leave, from each source to all that it sends to."""
    free = list(on.capacity_bps)
    for name, own in others.items():
        for way, rate in zip(own, shares[name], strict=True):
            _take(free, way, rate)
    chosen: Chosen = {pair: [] for pair in wanted}
    for source, ends in _by_source(wanted).items():
        for over, rate in _widest(on, free, source, ends):
            chosen[source, on.head[over[-1]]].append(over)
            _take(free, use(on, over), rate)
    return chosen


def _widest(
    on: Graph, free_bps: Sequence[float], source: int, ends: Mapping[int, int]
) -> list[tuple[Way, float]]:
    """The ways of the largest flow; where it needs more ways than are wanted, one after another the widest, if that is more."""
    whole = max_flow(on, free_bps, source, ends)
    found = split(on, whole, source, ends)
    if _carried(found) > (1 - LEFT_OVER) * whole.rate_bps:
        return found
    greedy = split(on, Flow(whole.rate_bps, dict(enumerate(free_bps))), source, ends)
    return max(found, greedy, key=_carried)


def _carried(found: Iterable[tuple[Way, float]]) -> float:
    return sum(rate for _, rate in found)


def _take(free_bps: list[float], way: Use, rate_bps: float) -> None:
    for arc, part in way.items():
        free_bps[arc] = max(0.0, free_bps[arc] - rate_bps * part)


def _by_source(wanted: Mapping[Pair, int]) -> dict[int, dict[int, int]]:
    """For each source how many ways are wanted to each destination."""
    found: dict[int, dict[int, int]] = {}
    for (source, destination), count in wanted.items():
        found.setdefault(source, {})[destination] = count
    return found


class _Beside:
    """The connections on the candidates, and all that share arcs with them directly or through others."""

    def __init__(self, candidates: Chosen, others: Ways, shares: Shares) -> None:
        self._rates = {name: sum(rates) for name, rates in shares.items()}
        self._users = users(others)
        met = {name for found in candidates.values() for way in found for name in self._on(way)}
        together = reached(neighbours(others), met)
        self._total = sum(self._rates[name] for name in together)
        self.mean = self._total / len(together) if together else 0.0

    def to_take(self, way: Way) -> int:
        """How much the users of a way have above their part of the whole (eq (3)), in steps that count as different."""
        met = self._on(way)
        above = sum(self._rates[name] for name in met) - len(met) * self.mean
        return round(above / (SAME * self._total)) if self._total else 0

    def _on(self, way: Way) -> set[str]:
        return {name for arc in way for name in self._users.get(arc, ())}


def _add_for_fairness(
    on: Graph,
    wanted: Mapping[Pair, int],
    candidates: Mapping[Pair, list[Way]],
    chosen: Chosen,
    beside: _Beside,
) -> None:
    """Add candidates to the chosen ways until these could carry the mean of the connections beside, or nothing is left to add."""
    while _alone_bps(on, chosen) < beside.mean:
        used = _times_used(chosen)
        left = [
            (
                len(candidates[pair][0]) - len(way),
                -sum(used[arc] for arc in way),
                beside.to_take(way),
                pair,
                way,
            )
            for pair, count in wanted.items()
            if len(chosen[pair]) < count
            for way in candidates[pair]
            if way not in chosen[pair]
        ]
        if not left:
            return
        *_, pair, way = max(left, key=lambda each: each[:3])
        chosen[pair].append(way)


def _alone_bps(on: Graph, chosen: Chosen) -> float:
    """What the chosen ways carry together when nobody else is there; they may share arcs."""
    free = [0.0] * len(on.capacity_bps)
    for arc in _times_used(chosen):
        free[arc] = on.capacity_bps[arc]
    carried = 0.0
    for source, ends in _by_source(dict.fromkeys(chosen, 1)).items():
        flow = max_flow(on, free, source, ends)
        carried += flow.rate_bps
        for arc, rate in flow.over.items():
            free[arc] = max(0.0, free[arc] - rate)
    return carried


def _fill_up(chosen: Chosen, pair: Pair, count: int, candidates: Iterable[Way]) -> None:
    """Ways for the subflows of a pair that have none yet; one that is taken already only when there is no other."""
    while len(chosen[pair]) < count:
        left = [way for way in candidates if way not in chosen[pair]] or list(candidates)
        if not left:
            return
        used = _times_used(chosen)
        chosen[pair].append(min(left, key=lambda way: sum(used[arc] for arc in way)))


def _times_used(chosen: Chosen) -> Counter[int]:
    """How many of the chosen ways lead over each arc."""
    return Counter(arc for found in chosen.values() for way in found for arc in way)


def _given_out(asking: Sequence[Asking], chosen: Chosen) -> list[Way | None]:
    left = {pair: list(found) for pair, found in chosen.items()}
    given: list[Way | None] = [None] * len(asking)
    for n, each in enumerate(asking):
        if each.now in left[each.pair]:
            given[n] = each.now
            left[each.pair].remove(each.now)
    for n, each in enumerate(asking):
        if given[n] is None and left[each.pair]:
            given[n] = left[each.pair].pop(0)
    return given
