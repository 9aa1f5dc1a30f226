"""Estimate the rates that one connection could get on its paths.

This is Algorithm 2 of S-MPTCP, as repaired. An arc is one direction of a link. The room of an arc
is its capacity that is still free; the narrowest arc of a path is the one with the least room.

1) Each subflow takes the room of the narrowest arc of its path.
2) If several subflows of the connection share an arc and together take more than its room, each of
   them is charged an equal part of the excess.
3) Among the subflows with a rate above 0, find the one with the largest charge (the first of
   equals). It lowers its rate by what its narrowest arc lacks. Go back to 2.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from controller.graph import ArcUse

# Find the connections that share arcs. An arc is one direction of a link.
#
# A connection uses an arc if one of its paths crosses the arc. The neighbours of a connection are
# the other connections that use at least one of the same arcs.


Paths = Mapping[str, Sequence[ArcUse]]  # by connection, in the order in which they appeared


class Sharing:
    """Hold which connections use each arc, and compute neighbours when they are needed.

    `users` maps the number of each arc to the names of the connections that use it.
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
        """Return the neighbours of the connection `name`."""
        if name not in self._near:
            arcs = {arc for path in self._paths[name] for arc in path}
            self._near[name] = set[str]().union(*(self.users[arc] for arc in arcs)) - {name}
        return self._near[name]

    def together(self, start: Iterable[str]) -> set[str]:
        """Return `start` and all connections that share arcs with it, directly or through others.

        The paper (S-MPTCP) calls the result "Set".
        """
        found = set(start)
        waiting = deque(found)
        while waiting:
            more = self.near(waiting.popleft()) - found
            found |= more
            waiting.extend(more)
        return found

    def sets(self) -> Iterator[set[str]]:
        """Yield sets of connections such that only connections of the same set share arcs."""
        left = dict.fromkeys(self._paths)
        while left:
            found = self.together([next(iter(left))])
            left = {name: None for name in left if name not in found}
            yield found


ROUNDING = 1e-9  # of the largest room: a smaller overload is a rounding error
Rates = tuple[float, ...]  # bit/s of a connection's subflows, by number


def largest_rates(paths: Sequence[ArcUse], room_bps: Mapping[int, float]) -> Rates:
    """Return the rates in bit/s that the subflows of one connection get if it takes all it can.

    `paths` holds one path per subflow. `room_bps` is the free capacity of each arc, counted without
    the load of this connection. Where several of its subflows share a full arc, only the sum of
    their rates is defined; the division among them is arbitrary.
    """
    sharing = Counter(arc for path in paths for arc in path)
    room = {arc: max(room_bps[arc], 0.0) for arc in sharing}
    enough = -ROUNDING * max(room.values(), default=0.0)
    rates = [min(room[arc] / part for arc, part in path.items()) for path in paths]  # 1
    while True:
        left = room_left(room, paths, rates)
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


def room_left(
    room_bps: Mapping[int, float], paths: Iterable[ArcUse], rates: Iterable[float]
) -> dict[int, float]:
    """Return the capacity in bit/s that stays free on each arc if the paths carry these rates.

    `room_bps` is the free capacity without these rates. A negative value in the result means
    overload.
    """
    left = dict(room_bps)
    for path, rate in zip(paths, rates, strict=True):
        for arc, part in path.items():
            left[arc] -= rate * part
    return left
