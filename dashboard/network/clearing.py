"""Move the nodes of a drawing off links that do not end at them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import dist

Place = tuple[float, float]
Ends = tuple[str, str]
MOST = 40_000  # pairs of a node and a link; drawings with more are left as they are
STEPS = (0.25, -0.25, 0.5, -0.5, 0.75, -0.75, 1.0, -1.0)


def cleared(
    places: Mapping[str, Place], links: Sequence[Ends], clearance: float, gaps: Place, room: Place
) -> dict[str, Place]:
    """Return places in which fewer links pass a node within `clearance`, none if that is found.

    One node after the other moves, the least way that helps, by parts of `gaps` (the usual distance
    of two nodes along x and y), and stays between (0, 0) and `room`.
    """
    places = dict(places)
    if len(places) * len(links) > MOST:
        return places
    faults = list(_faults(places, links, clearance))
    while faults:
        trials = (
            places | {name: place}
            for name in dict.fromkeys(itertools.chain(*faults))
            for place in _moved(places[name], gaps, room)
        )
        rated = ((sum(1 for _ in _faults(each, links, clearance)), each) for each in trials)
        fewest, best = min(rated, key=lambda each: each[0], default=(len(faults), places))
        if fewest >= len(faults):
            break
        places, faults = best, list(_faults(best, links, clearance))
    return places


def _moved(place: Place, gaps: Place, room: Place) -> Iterator[Place]:
    """Yield places near by, the nearest first."""
    for step in STEPS:
        for axis in (1, 0):
            at = list(place)
            at[axis] += step * gaps[axis] * (0.5 if axis == 0 else 1)  # layers stay layers
            if 0 <= at[axis] <= room[axis]:
                yield at[0], at[1]


def _faults(
    places: Mapping[str, Place], links: Sequence[Ends], clearance: float
) -> Iterator[tuple[str, ...]]:
    """Yield each node that is in the way of a link with the ends of that link, and each two nodes
    that are too near each other."""
    for a, b in links:
        for name, place in places.items():
            if name not in (a, b) and _distance(place, places[a], places[b]) < clearance:
                yield name, a, b
    for one, other in itertools.combinations(places, 2):
        if dist(places[one], places[other]) < 2 * clearance:
            yield one, other


def _distance(place: Place, a: Place, b: Place) -> float:
    """Return the distance of a place from the line between two others."""
    along = (b[0] - a[0], b[1] - a[1])
    length = along[0] ** 2 + along[1] ** 2
    if length == 0:
        return dist(place, a)
    part = ((place[0] - a[0]) * along[0] + (place[1] - a[1]) * along[1]) / length
    part = min(1.0, max(0.0, part))
    return dist(place, (a[0] + part * along[0], a[1] + part * along[1]))
