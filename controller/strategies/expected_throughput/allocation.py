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

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import fsum

from controller.graph import ArcUse
from controller.strategies.expected_throughput.estimation import (
    ROUNDING,
    Paths,
    Rates,
    Sharing,
    largest_rates,
    room_left,
)

SMALL_REST = 0.1  # of what was missing: a smaller rest is not distributed
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

    The rates are computed by water filling, see the top of this file. `paths` holds the paths of
    all connections, `shares` their present rates, one rate per path; a connection that is missing
    there has no rate yet. A connection that gets at least `fairness` times the mean rate takes no
    capacity from others. `sharing` is `Sharing(paths)`, if the caller has it.
    """
    sharing = sharing or Sharing(paths)
    return _WaterFilling(capacity_bps, paths, shares, fairness, sharing).run(first)


class _WaterFilling:
    """Compute one new allocation of rates by water filling (the steps at the top of this file).

    `load` is the load of each arc by all connections. `final_load` is its load by those connections
    that have had their turn: their rates change no more.
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
        """Return the rates of all connections after water filling that begins with `first`.

        Connections get their turns in the order of their distance from `first`: neighbours share an
        arc.
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
        """Set the rates of the connection `name`, which has its turn.

        Return True if it got enough without taking capacity from other connections. The mean rate,
        which decides what is enough, is taken over the connections in `together`.
        """
        own = self.paths[name]
        before = self.shares[name]
        self._add(self.load, name, [-rate for rate in before])
        alone = largest_rates(own, self._room(self.load, own))  # 1
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

        `alone` holds its rates if all others keep theirs, `mean` is the mean rate in bit/s. The
        total rate of the connection is raised towards the mean if its paths can carry the mean and
        are used by connections above the mean. Otherwise it shares its narrowest arcs equally
        (`_levelled`).
        """
        own = self.paths[name]
        room = self._room(self.final_load, own)
        if sum(largest_rates(own, room)) > mean:
            excess = self._excess_on_paths(name, alone, mean)
            raised = _raised(alone, mean - sum(alone), own, room, excess)
            if raised != alone:
                return raised
        return self._levelled(name, alone, room)  # 4

    def _excess_on_paths(self, name: str, alone: Rates, mean: float) -> list[float]:
        """Return for each path of `name` how far the other connections on it are above the mean.

        The result is in bit/s. Only full arcs count: the arcs on which nothing is free if `name`
        has the rates `alone`. If a path has several full arcs, the smallest value among them is the
        result; without a full arc it is 0.
        """
        own = self.paths[name]
        left = room_left(self._room(self.load, own), own, alone)
        full = {arc for arc, room in left.items() if room <= ROUNDING * self.capacity_bps[arc]}
        return [
            min((self._excess(name, arc, mean) for arc in path if arc in full), default=0.0)
            for path in own
        ]

    def _excess(self, name: str, arc: int, mean: float) -> float:
        """Return the sum, in bit/s, of (rate - `mean`) over all other connections that use the arc.

        The other connections are all except `name`.
        """
        found: list[float] = []
        for each in self.users[arc] - {name}:
            rates = self._rates_left(each)
            if any(
                rate > 0 and arc in path for path, rate in zip(self.paths[each], rates, strict=True)
            ):
                found.append(sum(rates) - mean)
        return fsum(found)

    def _levelled(self, name: str, alone: Rates, room_bps: Mapping[int, float]) -> Rates:
        """Return the rates of the connection after raising the rates `alone`, path by path.

        On each path the rate is raised until the path is full, or until the connection's total rate
        is as large as that of the poorest connections on the path's narrowest arc.
        """
        own, rates = self.paths[name], list(alone)
        for n, path in enumerate(own):
            level = min(self._level(name, arc, sum(rates) - rates[n]) for arc in path)
            rates[n] += max(
                0.0, min(_narrowest(path, room_left(room_bps, own, rates)), level - sum(rates))
            )
        return tuple(rates)

    def _level(self, name: str, arc: int, elsewhere: float) -> float:
        """Return the total rate in bit/s of the poorest connections on an arc if all share it.

        They share it so that each has the same total rate, as far as this is possible. All
        connections with a path over the arc count, among them `name`. `elsewhere` is the rate in
        bit/s that `name` has on its other paths.
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
        """Return how many bit/s of the arc's capacity one bit/s of the connection `name` takes.

        On a radio arc the result is more than 1 for a station slower than the fastest. If several
        paths of the connection cross the arc, the largest value counts.
        """
        return max(path[arc] for path in self.paths[name] if arc in path)

    def _rates_left(self, name: str) -> Rates:
        """Return the rates in bit/s that the connection can keep, one per path.

        They can be lower than its present rates, because connections that have had their turn may
        have taken capacity.
        """
        if name in self.done:
            return self.shares[name]
        room = self._room(self.final_load, self.paths[name])
        pairs = zip(self.paths[name], self.shares[name], strict=True)
        return tuple(max(0.0, min(rate, _narrowest(path, room))) for path, rate in pairs)

    def _room(self, load: Mapping[int, float], own: Iterable[ArcUse]) -> dict[int, float]:
        return {arc: self.capacity_bps[arc] - load.get(arc, 0.0) for path in own for arc in path}

    def _add(self, load: dict[int, float], name: str, rates: Iterable[float]) -> None:
        for path, rate in zip(self.paths[name], rates, strict=True):
            for arc, part in path.items():
                load[arc] = load.get(arc, 0.0) + rate * part


def _raised(
    alone: Rates,
    missing: float,
    own: Sequence[ArcUse],
    room_bps: Mapping[int, float],
    excess: Sequence[float],
) -> Rates:
    """Return the rates `alone`, raised by up to `missing` bit/s in total.

    `own` holds the paths of the connection, `room_bps` the free capacity of each arc without this
    connection. Each path gets a part of `missing` in proportion to its value in `excess`, as far as
    its arcs have room.
    """
    rates, left = list(alone), missing
    for _ in range(MOST_ROUNDS):
        spare = room_left(room_bps, own, rates)
        giving = [n for n, path in enumerate(own) if excess[n] > 0 and _narrowest(path, spare) > 0]
        if left <= SMALL_REST * missing or not giving:
            break
        whole, wanted = sum(excess[n] for n in giving), left
        for n in giving:
            room = _narrowest(own[n], room_left(room_bps, own, rates))
            added = max(0.0, min(wanted * excess[n] / whole, room))
            rates[n] += added
            left -= added
    return tuple(rates)


def _narrowest(path: ArcUse, room_bps: Mapping[int, float]) -> float:
    """Return the largest rate in bit/s that a path can carry if its arcs have this room."""
    return min(room_bps[arc] / part for arc, part in path.items())
