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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from controller.graph import ArcUse

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
