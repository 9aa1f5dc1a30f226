"""Who gets how much on the ways there are: water filling (S-MPTCP, Algorithms 3 and 4, as repaired).

It begins with one connection and spreads over shared arcs; it touches nobody else. For each connection, nearest first:
1) the most it could get beside all others as they are; and the mean of all of them if it got that (eq (5))
2) if that most is at least `fairness` times the mean, it takes it, and its neighbours are left alone
3) else it may push others back: only those that had their turn are beside it now. What is missing to the mean (eq (6)) it takes
   from its ways in proportion to how far the other users of their full arcs are above the mean
4) where its ways do not carry the mean, or nobody there is above it, it shares the narrowest arc with the poorest instead (the
   paper lets it take all there is, and who has only that arc would be left with nothing)
5) its neighbours that had no turn yet come next
Every connection has one turn at most, so that this ends; then no arc is asked for more than it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from controller.graph import Use
from controller.strategies.expected_throughput.estimation import ROUNDING, Rates, most, without

FILLED = 0.1  # of what was missing: less need not be handed out
MOST_ROUNDS = 20

Ways = Mapping[str, Sequence[Use]]  # of connections, in the order in which they appeared
Shares = Mapping[str, Rates]


def users(ways: Ways) -> dict[int, set[str]]:
    """The connections on every arc."""
    found: dict[int, set[str]] = {}
    for name, own in ways.items():
        for way in own:
            for arc in way:
                found.setdefault(arc, set()).add(name)
    return found


def neighbours(ways: Ways) -> dict[str, set[str]]:
    """Which connections share an arc."""
    found: dict[str, set[str]] = {name: set() for name in ways}
    for sharing in users(ways).values():
        for name in sharing:
            found[name] |= sharing
    return {name: sharing - {name} for name, sharing in found.items()}


def reached(near: Mapping[str, Iterable[str]], start: Iterable[str]) -> set[str]:
    """These connections and all that share arcs with them, directly or through others: the paper's Set."""
    found = set(start)
    waiting = deque(found)
    while waiting:
        for name in near[waiting.popleft()]:
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def arrive(
    capacity_bps: Sequence[float], ways: Ways, shares: Shares, first: str, fairness: float = 0.9
) -> dict[str, Rates]:
    """The shares in bit/s after connection `first` came, or found new ways; a connection without a share has none yet."""
    return _Filling(capacity_bps, ways, shares, fairness).run(first)


class _Filling:
    """One event: `judged` counts everybody's share against the arcs, `taken` only of those that had their turn."""

    def __init__(
        self, capacity_bps: Sequence[float], ways: Ways, shares: Shares, fairness: float
    ) -> None:
        self.capacity_bps, self.ways, self.fairness = capacity_bps, ways, fairness
        self.users, self.near = users(ways), neighbours(ways)
        self.shares = {name: shares.get(name) or (0.0,) * len(own) for name, own in ways.items()}
        self.judged: dict[int, float] = {}
        self.taken: dict[int, float] = {}
        self.done: set[str] = set()
        for name in ways:
            self._add(self.judged, name, self.shares[name])

    def run(self, first: str) -> dict[str, Rates]:
        """Every connection reached, in its turn."""
        order = {name: n for n, name in enumerate(self.ways)}
        together = reached(self.near, [first])
        waiting, met = [(1, order[first], first)], {first}
        while waiting:
            level, _, name = heappop(waiting)
            if not self._turn(name, together):
                for each in self.near[name] - met:  # 5
                    heappush(waiting, (level + 1, order[each], each))
                met |= self.near[name]
        return self.shares

    def _turn(self, name: str, together: set[str]) -> bool:
        """Set the share of one connection; whether its neighbours may be left alone."""
        own = self.ways[name]
        before = self.shares[name]
        self._add(self.judged, name, [-rate for rate in before])
        alone = most(own, self._room(self.judged, own))  # 1
        others = sum(sum(self.shares[each]) for each in together if each != name)
        mean = (others + sum(alone)) / len(together)
        fair = sum(alone) >= self.fairness * mean  # 2
        self.shares[name] = alone if fair else self._filled(name, alone, mean)  # 3
        for load in (self.judged, self.taken):
            self._add(load, name, self.shares[name])
        self.done.add(name)
        return fair

    def _filled(self, name: str, alone: Rates, mean: float) -> Rates:
        """What a connection takes when it may push others back."""
        own = self.ways[name]
        room = self._room(self.taken, own)
        if sum(most(own, room)) > mean:
            raised = _raised(alone, mean - sum(alone), own, room, self._to_take(name, alone, mean))
            if raised != alone:
                return raised
        return self._levelled(name, alone, room)  # 4

    def _to_take(self, name: str, alone: Rates, mean: float) -> list[float]:
        """For each way how far the users of its full arcs are above the mean; the arc with the least counts."""
        own = self.ways[name]
        left = without(self._room(self.judged, own), own, alone)
        full = {arc for arc, room in left.items() if room <= ROUNDING * self.capacity_bps[arc]}
        return [
            min((self._above(name, arc, mean) for arc in way if arc in full), default=0.0)
            for way in own
        ]

    def _levelled(self, name: str, alone: Rates, room_bps: Mapping[int, float]) -> Rates:
        """On each way as much as makes its rate equal to that of the poorest who share the narrowest arc with it."""
        own, rates = self.ways[name], list(alone)
        for n, way in enumerate(own):
            level = min(self._level(name, arc, sum(rates) - rates[n]) for arc in way)
            rates[n] += max(
                0.0, min(_narrowest(way, without(room_bps, own, rates)), level - sum(rates))
            )
        return tuple(rates)

    def _level(self, name: str, arc: int, elsewhere: float) -> float:
        """The rate that all users of an arc reach when it is shared out from the poorest up; `elsewhere` is one's own beside it."""
        beside = [(elsewhere, self._part(name, arc))]
        for each in self.users[arc] - {name}:
            pairs = zip(self.ways[each], self._left_to(each), strict=True)
            beside.append(
                (sum(rate for way, rate in pairs if arc not in way), self._part(each, arc))
            )
        beside.sort()
        filled, parts, levels = self.capacity_bps[arc], 0.0, []
        for rate, part in beside:
            filled, parts = filled + part * rate, parts + part
            levels.append(filled / parts)
        return min(levels)

    def _part(self, name: str, arc: int) -> float:
        """What a bit of this connection takes of an arc, at most: a slow station takes more of the air."""
        return max(way[arc] for way in self.ways[name] if arc in way)

    def _above(self, name: str, arc: int, mean: float) -> float:
        """How far the other users of an arc are above the mean, all together; only those that carry something there."""
        found = 0.0
        for each in self.users[arc] - {name}:
            rates = self._left_to(each)
            if any(
                rate > 0 and arc in way for way, rate in zip(self.ways[each], rates, strict=True)
            ):
                found += sum(rates) - mean
        return found

    def _left_to(self, name: str) -> Rates:
        """A connection's rates, as far as those that had their turn have not taken them."""
        if name in self.done:
            return self.shares[name]
        room = self._room(self.taken, self.ways[name])
        pairs = zip(self.ways[name], self.shares[name], strict=True)
        return tuple(max(0.0, min(rate, _narrowest(way, room))) for way, rate in pairs)

    def _room(self, load: Mapping[int, float], own: Iterable[Use]) -> dict[int, float]:
        return {arc: self.capacity_bps[arc] - load.get(arc, 0.0) for way in own for arc in way}

    def _add(self, load: dict[int, float], name: str, rates: Iterable[float]) -> None:
        for way, rate in zip(self.ways[name], rates, strict=True):
            for arc, part in way.items():
                load[arc] = load.get(arc, 0.0) + rate * part


def _raised(
    alone: Rates,
    missing: float,
    own: Sequence[Use],
    room_bps: Mapping[int, float],
    above: Sequence[float],
) -> Rates:
    """The rates after what is missing was handed out to the ways whose users are above the mean, as far as there is room."""
    rates, left = list(alone), missing
    for _ in range(MOST_ROUNDS):
        spare = without(room_bps, own, rates)
        giving = [n for n, way in enumerate(own) if above[n] > 0 and _narrowest(way, spare) > 0]
        if left <= FILLED * missing or not giving:
            break
        whole, asked = sum(above[n] for n in giving), left
        for n in giving:
            added = max(
                0.0,
                min(asked * above[n] / whole, _narrowest(own[n], without(room_bps, own, rates))),
            )
            rates[n] += added
            left -= added
    return tuple(rates)


def _narrowest(way: Use, room_bps: Mapping[int, float]) -> float:
    """The rate that a way has room for."""
    return min(room_bps[arc] / part for arc, part in way.items())
