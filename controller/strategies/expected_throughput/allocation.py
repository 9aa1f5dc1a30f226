"""Allocate rates to connections on the paths they have (S-MPTCP, Algorithms 3 and 4, as repaired).

An arc is one direction of a link. A connection uses an arc if one of its paths crosses the arc. The
neighbours of a connection are the connections that use at least one of the same arcs. The algorithm
is water filling. It begins with one connection and spreads to its neighbours, then to their
neighbours. All other connections keep their rates. Each connection that is reached gets one turn,
in the order of its distance from the first:
1) Estimate the most that the connection could get while all others keep their rates, and the mean
   rate of all connections in that case (eq (5)).
2) If the estimate is at least `fairness` times the mean, the connection takes it. Its neighbours
   then do not get a turn because of this connection.
3) Otherwise the connection may take capacity from others, except from connections that have had
   their turn. It takes the difference between the mean and the estimate (eq (6)). Each of its paths
   gets a part of this difference, in proportion to how far the other connections on the path's full
   arcs are above the mean.
4) If its paths cannot carry the mean, or no other connection on them is above the mean, the
   connection shares the narrowest arc equally with the connections that have the least. (In the
   paper, the connection takes the whole arc, and another connection that has only this arc gets
   nothing.)
5) After steps 3 and 4, its neighbours without a turn come next.
Every connection has at most one turn, so the algorithm ends. Afterwards no arc carries more than
its capacity.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import fsum

from controller.graph import ArcUse

Paths = Mapping[str, Sequence[ArcUse]]  # by connection, in the order in which they appeared


class Sharing:
    """Tells which connections share arcs. An arc is one direction of a link.

    `users` maps each arc to the names of the connections that use it.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._near: dict[str, set[str]] = {}
        self.users: dict[int, set[str]] = {}
        for name, own in paths.items():
            for path in own:
                for arc in path:
                    self.users.setdefault(arc, set()).add(name)

    def near(self, name: str) -> set[str]:
        if name not in self._near:
            arcs = {arc for path in self._paths[name] for arc in path}
            self._near[name] = set[str]().union(*(self.users[arc] for arc in arcs)) - {name}
        return self._near[name]

    def together(self, start: Iterable[str]) -> set[str]:
        """Return the connections in `start` and all that share arcs with them.

        Connections that share arcs with them only through others are included too. S-MPTCP calls
        the result "Set". An arc is one direction of a link.
        """
        found = set(start)
        waiting = deque(found)
        while waiting:
            more = self.near(waiting.popleft()) - found
            found |= more
            waiting.extend(more)
        return found

    def sets(self) -> Iterator[set[str]]:
        """Divide the connections into sets. Connections of different sets share no arc."""
        left = dict.fromkeys(self._paths)
        while left:
            found = self.together([next(iter(left))])
            left = {name: None for name in left if name not in found}
            yield found


# Rates that one connection could get on its paths (Algorithm 2 of S-MPTCP, as repaired)
#
# The narrowest arc of a path is the one with the least free capacity.
# 1) Each subflow takes the free capacity of the narrowest arc of its path.
# 2) If several subflows of the connection share an arc and together take more than is free, each
#    of them is charged an equal part of the excess.
# 3) Among the subflows with a rate above 0, find the one with the largest charge (the first of
#    equals). It lowers its rate by what its narrowest arc lacks. Go back to 2.


ROUNDING = 1e-9  # of the largest free capacity; a smaller overload is a rounding error
Rates = tuple[float, ...]  # bit/s of a connection's subflows, by number


def largest_rates(paths: Sequence[ArcUse], free_bps: Mapping[int, float]) -> Rates:
    """Return the rates in bit/s of one connection's subflows if the connection takes all it can.

    `paths` has one path per subflow. `free_bps` is the free capacity of each arc (direction of a
    link), without the load of this connection. If several of the subflows share a full arc, only
    the sum of their rates is defined; the division among them is arbitrary.
    """
    sharing = Counter(arc for path in paths for arc in path)
    free = {arc: max(free_bps[arc], 0.0) for arc in sharing}
    enough = -ROUNDING * max(free.values(), default=0.0)
    rates = [min(free[arc] / part for arc, part in path.items()) for path in paths]  # 1
    while True:
        left = remaining_capacity(free, paths, rates)
        if min(left.values(), default=0.0) >= enough:
            return tuple(rates)
        charged = [
            sum(min(left[arc], 0.0) / part / sharing[arc] for arc, part in path.items())
            for path in paths
        ]  # 2
        worst = min((n for n, rate in enumerate(rates) if rate > 0), key=charged.__getitem__)  # 3
        rates[worst] = max(
            rates[worst] + min(left[arc] / part for arc, part in paths[worst].items()), 0.0
        )


def remaining_capacity(
    free_bps: Mapping[int, float], paths: Iterable[ArcUse], rates: Iterable[float]
) -> dict[int, float]:
    """Return the capacity in bit/s that stays free on each arc if the paths carry these rates.

    An arc is one direction of a link. `free_bps` is the free capacity without these rates. A
    negative result means overload.
    """
    left = dict(free_bps)
    for path, rate in zip(paths, rates, strict=True):
        for arc, part in path.items():
            left[arc] -= rate * part
    return left


SMALL_REST = 0.1  # of the missing rate; a smaller rest is not distributed
MOST_ROUNDS = 20

Shares = Mapping[str, Rates]


def reallocate(
    capacity_bps: Sequence[float],
    paths: Paths,
    shares: Shares,
    first: str,
    fairness: float = 0.9,
    sharing: Sharing | None = None,
) -> dict[str, Rates]:
    """Return new rates in bit/s for all connections after `first` has arrived or got new paths.

    The method is water filling, S-MPTCP's Algorithms 3 and 4 (see the module's docstring). `shares`
    has the present rates of each connection, one per path; a new connection is missing there. A
    connection that gets at least `fairness` times the mean rate takes no capacity from others.
    `sharing` must be `Sharing(paths)`; it is computed if it is None.
    """
    sharing = sharing or Sharing(paths)
    return _WaterFilling(capacity_bps, paths, shares, fairness, sharing).run(first)


class _WaterFilling:
    """Computes new rates by water filling (see the module's docstring).

    Connections get their new rates one after the other. `load` is the load of each arc by all
    connections. `final_load` is the load by those connections that have their new rates already.
    """

    def __init__(
        self,
        capacity_bps: Sequence[float],
        paths: Paths,
        shares: Shares,
        fairness: float,
        sharing: Sharing,
    ) -> None:
        self.capacity_bps, self.paths, self.fairness = capacity_bps, paths, fairness
        self.sharing, self.users = sharing, sharing.users
        self.shares = {name: shares.get(name) or (0.0,) * len(own) for name, own in paths.items()}
        self.load: dict[int, float] = {}
        self.final_load: dict[int, float] = {}
        self.done: set[str] = set()
        for name in paths:
            self._add(self.load, name, self.shares[name])

    def run(self, first: str) -> dict[str, Rates]:
        """Give connections new rates one after the other, and return the rates of all connections.

        The connection `first` is the first one. Whenever a connection cannot get enough without
        taking capacity, the connections that share arcs with it get new rates after it.
        """
        order = {name: n for n, name in enumerate(self.paths)}
        together = self.sharing.together([first])
        waiting, met = [(1, order[first], first)], {first}
        while waiting:
            level, _, name = heappop(waiting)
            if not self._turn(name, together):
                near = self.sharing.near(name)
                for each in near - met:  # 5
                    heappush(waiting, (level + 1, order[each], each))
                met |= near
        return self.shares

    def _turn(self, name: str, together: set[str]) -> bool:
        """Give the connection `name` its new rates.

        Return True if it gets enough without taking capacity from others. Enough is `fairness`
        times the mean rate of the connections in `together`.
        """
        own = self.paths[name]
        before = self.shares[name]
        self._add(self.load, name, [-rate for rate in before])
        alone = largest_rates(own, self._free_capacity(self.load, own))  # 1
        others = fsum(sum(self.shares[each]) for each in together if each != name)
        mean = (others + sum(alone)) / len(together)
        fair = sum(alone) >= self.fairness * mean  # 2
        self.shares[name] = alone if fair else self._filled(name, alone, mean)  # 3
        for load in (self.load, self.final_load):
            self._add(load, name, self.shares[name])
        self.done.add(name)
        return fair

    def _filled(self, name: str, alone: Rates, mean: float) -> Rates:
        """Return the rates of the connection `name`, which may take capacity from others.

        `alone` has the rates that the connection gets without taking capacity. `mean` is the mean
        rate in bit/s. The total rate rises towards the mean under two conditions: the connection's
        paths can carry more than the mean, and other connections on these paths have more than the
        mean. Otherwise the connection shares its narrowest arcs equally (`_levelled`).
        """
        own = self.paths[name]
        free = self._free_capacity(self.final_load, own)
        if sum(largest_rates(own, free)) > mean:
            excess = self._excess_on_paths(name, alone, mean)
            raised = _raised(alone, mean - sum(alone), own, free, excess)
            if raised != alone:
                return raised
        return self._levelled(name, alone, free)  # 4

    def _excess_on_paths(self, name: str, alone: Rates, mean: float) -> list[float]:
        """Return for each path of `name` by how many bit/s other connections exceed the mean.

        For each path this is the smallest value of `_excess` over the full arcs of the path. It is
        0 if no arc is full. An arc is full if it has no free capacity when `name` has the rates
        `alone`.
        """
        own = self.paths[name]
        left = remaining_capacity(self._free_capacity(self.load, own), own, alone)
        full = {arc for arc, rest in left.items() if rest <= ROUNDING * self.capacity_bps[arc]}
        return [
            min((self._excess(name, arc, mean) for arc in path if arc in full), default=0.0)
            for path in own
        ]

    def _excess(self, name: str, arc: int, mean: float) -> float:
        """Return the sum of (rate - `mean`) in bit/s over all other connections on an arc."""
        found: list[float] = []
        for each in self.users[arc] - {name}:
            rates = self._rates_left(each)
            if any(
                rate > 0 and arc in path for path, rate in zip(self.paths[each], rates, strict=True)
            ):
                found.append(sum(rates) - mean)
        return fsum(found)

    def _levelled(self, name: str, alone: Rates, free_bps: Mapping[int, float]) -> Rates:
        """Return the rates `alone`, raised on one path after the other towards equal shares.

        On each path the rate rises until the path is full. It stops earlier when the connection's
        total rate reaches the equal share of the path's narrowest arc (`_level`).
        """
        own, rates = self.paths[name], list(alone)
        for n, path in enumerate(own):
            level = min(self._level(name, arc, sum(rates) - rates[n]) for arc in path)
            rates[n] += max(
                0.0,
                min(_narrowest(path, remaining_capacity(free_bps, own, rates)), level - sum(rates)),
            )
        return tuple(rates)

    def _level(self, name: str, arc: int, elsewhere: float) -> float:
        """Return the total rate in bit/s that connections get if they share an arc equally.

        The total rates of the connections become equal, not their rates on this arc. A connection
        whose rate on other paths is already larger gets nothing on this arc. The connection `name`
        has `elsewhere` bit/s on its other paths.
        """
        beside = [(elsewhere, self._part(name, arc))]
        for each in self.users[arc] - {name}:
            pairs = zip(self.paths[each], self._rates_left(each), strict=True)
            beside.append(
                (sum(rate for path, rate in pairs if arc not in path), self._part(each, arc))
            )
        beside.sort()
        filled, parts, levels = self.capacity_bps[arc], 0.0, []
        for rate, part in beside:
            filled, parts = filled + part * rate, parts + part
            levels.append(filled / parts)
        return min(levels)

    def _part(self, name: str, arc: int) -> float:
        """Return the capacity in bit/s of an arc that one bit/s of the connection `name` takes.

        On a radio channel this is more than 1 for a station that is slower than the fastest one. If
        several paths of the connection cross the arc, the largest value counts.
        """
        return max(path[arc] for path in self.paths[name] if arc in path)

    def _rates_left(self, name: str) -> Rates:
        """Return the rates in bit/s that the connection can keep, one per path.

        They can be lower than its present rates, because connections that already have new rates
        may have taken capacity.
        """
        if name in self.done:
            return self.shares[name]
        free = self._free_capacity(self.final_load, self.paths[name])
        pairs = zip(self.paths[name], self.shares[name], strict=True)
        return tuple(max(0.0, min(rate, _narrowest(path, free))) for path, rate in pairs)

    def _free_capacity(self, load: Mapping[int, float], own: Iterable[ArcUse]) -> dict[int, float]:
        return {arc: self.capacity_bps[arc] - load.get(arc, 0.0) for path in own for arc in path}

    def _add(self, load: dict[int, float], name: str, rates: Iterable[float]) -> None:
        for path, rate in zip(self.paths[name], rates, strict=True):
            for arc, part in path.items():
                load[arc] = load.get(arc, 0.0) + rate * part


def _raised(
    alone: Rates,
    missing: float,
    own: Sequence[ArcUse],
    free_bps: Mapping[int, float],
    excess: Sequence[float],
) -> Rates:
    """Return the rates `alone`, raised by up to `missing` bit/s in total.

    `own` lists the paths of the connection. Each path gets a part of `missing` in proportion to its
    value in `excess`, if its arcs have enough free capacity. `free_bps` is the free capacity of
    each arc without the load of this connection.
    """
    rates, left = list(alone), missing
    for _ in range(MOST_ROUNDS):
        spare = remaining_capacity(free_bps, own, rates)
        giving = [n for n, path in enumerate(own) if excess[n] > 0 and _narrowest(path, spare) > 0]
        if left <= SMALL_REST * missing or not giving:
            break
        whole, wanted = sum(excess[n] for n in giving), left
        for n in giving:
            possible = _narrowest(own[n], remaining_capacity(free_bps, own, rates))
            added = max(0.0, min(wanted * excess[n] / whole, possible))
            rates[n] += added
            left -= added
    return tuple(rates)


def _narrowest(path: ArcUse, free_bps: Mapping[int, float]) -> float:
    """Return the largest rate in bit/s that a path can carry with this free capacity per arc."""
    return min(free_bps[arc] / part for arc, part in path.items())
