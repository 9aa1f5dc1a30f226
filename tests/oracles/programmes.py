"""Linear programmes for the rates that are possible. They share no code with the strategies."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

UNIT = 1e6  # bit/s


class Rates:
    """Rates of connections on fixed routes; `routes` has the links of each path."""

    def __init__(self, capacity, routes):
        self.names = list(routes)
        self.paths = [(name, set(path)) for name in self.names for path in routes[name]]
        wires = sorted({wire for _, path in self.paths for wire in path})
        self.room = np.array([capacity[wire] for wire in wires]) / UNIT
        self.load = np.array([[wire in path for _, path in self.paths] for wire in wires], float)
        self.sums = np.array([[own == name for own, _ in self.paths] for name in self.names], float)

    def largest(self, goal, at_least):
        """Largest `goal` x, in Mb/s, if each connection has `at_least` its rate."""
        done = linprog(
            -np.asarray(goal),
            A_ub=np.vstack([self.load, -self.sums]),
            b_ub=np.concatenate([self.room, -np.asarray(at_least)]),
            method="highs",
        )
        assert done.status == 0, done.message
        return -done.fun

    def most_equal(self, raised, level):
        """Largest rate, in Mb/s, that all in `raised` can have while the others keep their
        level."""
        column = np.vstack([np.zeros((len(self.load), 1)), np.array(raised, float)[:, None]])
        done = linprog(
            [*[0] * len(self.paths), -1],
            A_ub=np.hstack([np.vstack([self.load, -self.sums]), column]),
            b_ub=np.concatenate([self.room, np.where(raised, 0, -level)]),
            method="highs",
        )
        assert done.status == 0, done.message
        return -done.fun

    def max_min(self):
        """Max-min fair rate of each connection in bit/s.

        After each level, every connection is tested alone: can it get more while the others keep
        the level? If not, its level is final.
        """
        level, raised = np.zeros(len(self.names)), np.ones(len(self.names), bool)
        while raised.any():
            level[raised] = self.most_equal(raised, level) * (1 - 1e-7)
            for n in np.flatnonzero(raised):
                if self.largest(self.sums[n], level) <= level[n] * (1 + 1e-4) + 1e-6:
                    raised[n] = False
        return dict(zip(self.names, level * UNIT, strict=True))


def free_gain(capacity, carried, routes, own):
    """How much more a connection could get from free capacity, in bit/s.

    `carried` is the load of each link, `own` the rate of the connection on each of its routes.
    """
    free = dict(capacity)
    for wire, rate in carried.items():
        free[wire] = max(0.0, free[wire] - rate)
    for path, rate in zip(routes, own, strict=True):
        for wire in path:
            free[wire] += rate
    alone = Rates(free, {"it": routes})
    return alone.largest(alone.sums[0], [0.0]) * UNIT - sum(own)
