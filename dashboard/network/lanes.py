"""Draw subflows that share a link as parallel lanes.

`dashboard/static/network_lanes.js` does the same in the browser.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import hypot

from dashboard.network.layout import Place

LANE = 4.0  # greatest distance of two lanes, in pixels


def polylines(
    paths: Mapping[str, Sequence[str]], places: Mapping[str, Place], ribbon: float
) -> dict[str, list[Place]]:
    """Return the points of each path, so that paths that share a link do not cover each other.

    `paths` maps a subflow to its nodes, and `places` maps a node to its place. The lanes of a link
    are in the order of `paths`, and together `ribbon` pixels wide at most.
    """
    users: dict[tuple[str, str], list[str]] = {}
    for name, path in paths.items():
        for a, b in itertools.pairwise(path):
            users.setdefault((min(a, b), max(a, b)), []).append(name)
    found: dict[str, list[Place]] = {}
    for name, path in paths.items():
        points: list[Place] = []
        for a, b in itertools.pairwise(path):
            ends = (min(a, b), max(a, b))
            sharing = users[ends]
            gap = min(LANE, ribbon / len(sharing))
            offset = (sharing.index(name) - (len(sharing) - 1) / 2) * gap
            dx, dy = normal(places[ends[0]], places[ends[1]])
            points += [
                (round(places[each][0] + dx * offset, 1), round(places[each][1] + dy * offset, 1))
                for each in (a, b)
            ]
        found[name] = points
    return found


def normal(a: Place, b: Place) -> Place:
    """Return the vector of length 1 at a right angle to the line from `a` to `b`."""
    x, y = b[0] - a[0], b[1] - a[1]
    length = hypot(x, y) or 1.0
    return -y / length, x / length
