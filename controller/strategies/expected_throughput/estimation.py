"""What one connection could get on the ways it has (S-MPTCP, Algorithm 2, as repaired).

1) each subflow takes what the narrowest arc of its way has room for
2) where its subflows share an arc that has not as much, the overload is charged to them in equal parts
3) of those that still take something, the one that is charged most (of equals the first) gives way by what its narrowest arc
   lacks; go on at 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from controller.graph import Use

ROUNDING = 1e-9  # of the largest room: less is no overload
Rates = tuple[float, ...]  # of a connection's subflows, by number


def most(ways: Sequence[Use], room_bps: Mapping[int, float]) -> Rates:
    """The rates in bit/s of a connection's subflows when it takes all it can; `room_bps` leaves its own share out.

    Subflows that share a tight arc get the right sum, and which of them gets it is of no consequence.
    """
    sharing = Counter(arc for way in ways for arc in way)
    room = {arc: max(room_bps[arc], 0.0) for arc in sharing}
    enough = -ROUNDING * max(room.values(), default=0.0)
    rates = [min(room[arc] / part for arc, part in way.items()) for way in ways]  # 1
    while True:
        left = without(room, ways, rates)
        if min(left.values(), default=0.0) >= enough:
            return tuple(rates)
        charged = [
            sum(min(left[arc], 0.0) / part / sharing[arc] for arc, part in way.items())
            for way in ways
        ]  # 2
        worst = min((n for n, rate in enumerate(rates) if rate > 0), key=charged.__getitem__)  # 3
        rates[worst] = max(
            rates[worst] + min(left[arc] / part for arc, part in ways[worst].items()), 0.0
        )


def without(
    room_bps: Mapping[int, float], ways: Iterable[Use], rates: Iterable[float]
) -> dict[int, float]:
    """The room that is left when these ways carry these rates."""
    left = dict(room_bps)
    for way, rate in zip(ways, rates, strict=True):
        for arc, part in way.items():
            left[arc] -= rate * part
    return left
