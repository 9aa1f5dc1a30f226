"""Compute the max-min fair rates of connections on the paths they have.

Used instead of S-MPTCP's own allocation with `allocation: max_min`. Rates are max-min fair if no
connection can get more without taking from one that has no more than it. Only the total rate of a
connection counts; these totals are unique. They are found by progressive filling:

1) Sort the connections into groups that compete for arcs (directions of links). An arc that can
   carry all its paths at their largest rates at once causes no competition.
2) Raise the rates of all connections of a group together, as far as possible. This is a linear
   programme, because a connection may divide its rate over its paths in any way.
3) The connections with a positive dual value (the price of a little more for this connection) can
   get no more, whatever the others do. Their rate is final.
4) Raise the others further, with what is final as a lower bound. End when all rates are final.

Then choose the rate of each subflow:
5) If the present rates almost reach these totals, keep them.
6) Else take the rates with these totals that differ least from the present ones (the sum of the
   differences is smallest), so that few subflows change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog

from controller.graph import ArcUse
from controller.strategies.expected_throughput.allocation import Paths, Rates, Shares

ALMOST = 0.998  # of its max-min fair rate; a connection with less gets new rates
ROUNDING = 1e-6  # relative; smaller overloads and differences are rounding errors
MOST_GROUPS = 1024  # in the cache of `levels`

Array = NDArray[np.float64]
Columns = tuple[tuple[tuple[int, float], ...], ...]  # for each path: (row of an arc, its part)


@dataclass(frozen=True)
class _Group:
    """Connections that compete for scarce arcs; a hashable key for the cache of `levels`.

    An arc is scarce if it cannot carry all paths that cross it at their largest rates. Entry n of
    `owner`, `most` and `columns` belongs to path n. `owner` has the number of the path's connection
    within the group, from 0. `most` has the largest rate of the path in bit/s, and `columns` the
    scarce arcs that the path crosses. `capacity_bps` has the capacities of the scarce arcs.
    """

    owner: tuple[int, ...]
    most: tuple[float, ...]
    columns: Columns
    capacity_bps: tuple[float, ...]

    @property
    def unit(self) -> float:
        """The rate in bit/s that counts as 1 in the linear programmes."""
        return min((rate for rate in self.most if rate > 0), default=1.0)

    def matrix(self) -> Array:
        """Return the matrix that converts rates of paths to loads of the scarce arcs."""
        found = np.zeros((len(self.capacity_bps), len(self.most)))
        for n, column in enumerate(self.columns):
            for row, part in column:
                found[row, n] += part
        return found

    def totals(self) -> Array:
        """Return the matrix that converts rates of paths to total rates of connections."""
        found = np.zeros((self.owner[-1] + 1, len(self.owner)))
        found[list(self.owner), range(len(self.owner))] = 1.0
        return found


def max_min_rates(capacity_bps: Sequence[float], paths: Paths, present: Shares) -> dict[str, Rates]:
    """Return the max-min fair rates in bit/s of all connections, one rate per path.

    If the rates in `present` are already fair, they are kept.
    """
    rates: dict[str, Rates] = {}
    for names, group in _groups(capacity_bps, paths):
        now = np.array([rate for name in names for rate in present[name]])
        found = iter(_divided(group, np.array(levels(group)), now))
        rates |= {name: tuple(float(next(found)) for _ in paths[name]) for name in names}
    return rates


def competing(capacity_bps: Sequence[float], paths: Paths) -> list[list[str]]:
    """Divide the connections into lists. Those in one list share scarce arcs, directly or through
    others in it."""
    return [names for names, _ in _groups(capacity_bps, paths)]


def _groups(capacity_bps: Sequence[float], paths: Paths) -> Iterator[tuple[list[str], _Group]]:
    """Yield a pair for each group of competing connections: their names, and the group."""  # 1
    most = {
        name: [min(capacity_bps[arc] / part for arc, part in path.items()) for path in own]
        for name, own in paths.items()
    }
    largest: dict[int, float] = {}
    for name, own in paths.items():
        for path, rate in zip(own, most[name], strict=True):
            for arc, part in path.items():
                largest[arc] = largest.get(arc, 0.0) + rate * part
    scarce = {arc for arc, rate in largest.items() if rate > (1 + ROUNDING) * capacity_bps[arc]}
    for names in _competing(paths, scarce):
        row: dict[int, int] = {}
        columns = tuple(
            tuple(
                (row.setdefault(arc, len(row)), part) for arc, part in path.items() if arc in scarce
            )
            for name in names
            for path in paths[name]
        )
        owner = tuple(n for n, name in enumerate(names) for _ in paths[name])
        yield (
            names,
            _Group(
                owner,
                tuple(rate for name in names for rate in most[name]),
                columns,
                tuple(capacity_bps[arc] for arc in row),
            ),
        )


def _competing(paths: Mapping[str, Sequence[ArcUse]], scarce: set[int]) -> list[list[str]]:
    """Divide the connections into lists. Connections in different lists share no scarce arc.

    `scarce` has the arcs that cannot carry all their paths at full rate.
    """
    leader: dict[int | str, int | str] = {}

    def find(each: int | str) -> int | str:
        while leader.setdefault(each, each) != each:
            leader[each] = leader[leader[each]]
            each = leader[each]
        return each

    for name, own in paths.items():
        for path in own:
            for arc in path:
                if arc in scarce:
                    leader[find(arc)] = find(name)
    found: dict[int | str, list[str]] = {}
    for name in paths:
        found.setdefault(find(name), []).append(name)
    return list(found.values())


@lru_cache(MOST_GROUPS)
def levels(group: _Group) -> tuple[float, ...]:
    """Return the max-min fair total rate in bit/s of each connection of a group."""  # 2, 3, 4
    totals = group.totals()
    if not group.capacity_bps:
        return tuple(float(rate) for rate in totals @ np.array(group.most))
    final = np.full(len(totals), -1.0)
    matrix, capacity = group.matrix(), np.array(group.capacity_bps) / group.unit
    bounds = [(0.0, rate / group.unit) for rate in group.most]
    while (raised := final < 0).any():
        rows = np.vstack(
            [
                np.hstack([matrix, np.zeros((len(matrix), 1))]),
                np.hstack([-totals, raised[:, None].astype(float)]),
            ]
        )
        limits = np.concatenate([capacity, np.where(raised, 0.0, -final)])
        cost = np.zeros(len(bounds) + 1)
        cost[-1] = -1.0
        best = _solved(cost, rows, limits, [*bounds, (0.0, None)])
        price = -best.ineqlin.marginals[len(matrix) :]
        done = raised & (price > ROUNDING)
        final[done if done.any() else raised] = max(0.0, best.x[-1] * (1 - ROUNDING))
    return tuple(float(level) * group.unit for level in final)


def _divided(group: _Group, level: Array, present: Array) -> Array:
    """Return the rate in bit/s of each path of a group.

    The rates of a connection's paths add up to its rate in `level`. They differ as little as
    possible from the rates of the paths in `present`.
    """  # 5, 6
    unit, most = group.unit, np.array(group.most)
    if _is_good(group, level, present):
        return present
    if not group.capacity_bps:
        return most
    start = np.minimum(present, most) / unit
    matrix, totals = group.matrix(), group.totals()
    rows = np.vstack([matrix, -totals])
    limits = np.concatenate([np.array(group.capacity_bps) / unit, -level / unit])
    bounds = [(0.0, rate) for rate in (*(most / unit - start), *start)]
    less = _solved(
        np.ones(len(bounds)),
        np.hstack([rows, -rows]),
        limits - rows @ start,
        bounds,
    )
    up, down = np.split(less.x, 2)
    rates: Array = np.clip(start + up - down, 0.0, most / unit) * unit
    return rates


def _is_good(group: _Group, level: Array, rates: Array) -> bool:
    """Return whether `rates` overload no arc and almost reach the total rates in `level`.

    `rates` has one entry per path, and `level` one entry per connection.
    """
    return bool(
        (rates <= (1 + ROUNDING) * np.array(group.most)).all()
        and (group.matrix() @ rates <= (1 + ROUNDING) * np.array(group.capacity_bps)).all()
        and (group.totals() @ rates >= ALMOST * level).all()
    )


def _solved(
    cost: Array, rows: Array, limits: Array, bounds: list[tuple[float, float | None]]
) -> OptimizeResult:
    """Find the vector x that minimises `cost` times x.

    The conditions are `rows` times x <= `limits`, and x within `bounds`. Raise `ArithmeticError` if
    the solver finds no solution.
    """
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    if found.status != 0:
        raise ArithmeticError(f"compute max-min fair rates: {found.message}")
    return found
