"""How large the flows of a workload are: published distributions, or one in the scenario file.

A distribution is a list of points (size in kB, fraction of flows that are at most as large).
Between two points the fraction grows linearly. The published ones are measurements of data centres,
with the points that pFabric's simulations use (M. Alizadeh et al., SIGCOMM 2013), in packets of
1460 bytes:

- `web_search`: M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, figure 4
- `data_mining`: A. Greenberg et al., VL2, SIGCOMM 2009, figure 2
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

Points = Sequence[tuple[float, float]]

PACKET_KB = 1.46
IN_PACKETS: dict[str, Points] = {
    "web_search": (
        (6, 0.0),
        (6, 0.15),
        (13, 0.2),
        (19, 0.3),
        (33, 0.4),
        (53, 0.53),
        (133, 0.6),
        (667, 0.7),
        (1333, 0.8),
        (3333, 0.9),
        (6667, 0.97),
        (20_000, 1.0),
    ),
    "data_mining": (
        (1, 0.0),
        (1, 0.5),
        (2, 0.6),
        (3, 0.7),
        (7, 0.8),
        (267, 0.9),
        (2107, 0.95),
        (66_667, 0.99),
        (666_667, 1.0),
    ),
}
PUBLISHED = tuple(IN_PACKETS)


def points(sizes: str | Points) -> Points:
    """Return the points of a distribution: a published one by its name, or those of a file."""
    if isinstance(sizes, str):
        return tuple((packets * PACKET_KB, part) for packets, part in IN_PACKETS[sizes])
    return sizes if sizes[0][1] == 0 else ((sizes[0][0], 0.0), *sizes)


def problem(sizes: Points) -> str:
    """Return what is wrong with the points of a file, or ""."""
    kb, parts = zip(*sizes, strict=True)
    rises = all(a <= b for each in (kb, parts) for a, b in pairwise(each))
    if rises and kb[0] > 0 and parts[0] >= 0 and parts[-1] == 1:
        return ""
    return (
        "write points [size in kB, fraction of flows that are at most as large], both growing, "
        "the last fraction 1, such as [[10, 0.5], [100, 1]]"
    )


def mean_kb(sizes: str | Points) -> float:
    return sum((b - a) * (x + y) / 2 for (x, a), (y, b) in pairwise(points(sizes)))


def draw_kb(sizes: str | Points, chance: random.Random) -> float:
    found, part = points(sizes), chance.random()
    above = max(1, bisect_left([each for _, each in found], part))
    (low, a), (high, b) = found[above - 1], found[above]
    return high if a == b else low + (high - low) * (part - a) / (b - a)
