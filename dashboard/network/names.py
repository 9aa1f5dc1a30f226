"""Where the names of links are in a drawing: beside their links, clear of nodes and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from dashboard.network.layout import Place

LETTER = 3.0  # half the width of a letter of a link's name, in pixels
TALL = 12.0  # height of a name
SWATCH = 12.0  # width of the coloured square before a name
PARTS = (0.4, 0.5, 0.6, 0.3, 0.7, 0.2, 0.8)  # of a link's length, the best place for a name first
ABOVE, BELOW = 1, -1


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels, by its middle and half its width and height."""

    x: float
    y: float
    wide: float
    high: float

    def overlaps(self, other: Box) -> bool:
        return (
            abs(self.x - other.x) < self.wide + other.wide
            and abs(self.y - other.y) < self.high + other.high
        )

    def is_crossed(self, a: Place, b: Place) -> bool:
        """Return whether the line from `a` to `b` runs through this box (Liang and Barsky)."""
        first, last = 0.0, 1.0
        for start, end, middle, half in (
            (a[0], b[0], self.x, self.wide),
            (a[1], b[1], self.y, self.high),
        ):
            if start == end:
                if abs(start - middle) >= half:
                    return False
                continue
            near, far = sorted((middle + side * half - start) / (end - start) for side in (-1, 1))
            first, last = max(first, near), min(last, far)
        return first < last


@dataclass(frozen=True)
class Named:
    """A link with a name: its ends in pixels, and how many letters the name has."""

    id: str
    a: Place
    b: Place
    letters: int
    has_swatch: bool


def normal(a: Place, b: Place) -> Place:
    """Return the unit vector perpendicular to the line from `a` to `b`."""
    x, y = b[0] - a[0], b[1] - a[1]
    length = hypot(x, y) or 1.0
    return -y / length, x / length


def beside(a: Place, b: Place, width: float, letters: int, side: int) -> Place:
    """Return how far the middle of a text is from a point of the link from `a` to `b`.

    The text is above a link that is `width` pixels wide, or below it.
    """
    x, y = normal(a, b)
    x, y = (-x, -y) if y > 0 else (x, y)
    away = side * (width / 2 + 3 + abs(x) * LETTER * letters + abs(y) * 4)
    return x * away, y * away + 4


def places_of_names(
    links: Sequence[Named],
    others: Sequence[tuple[Place, Place]],
    taken: Sequence[Box],
    widths: tuple[float, float],
) -> dict[str, tuple[float, int]]:
    """Return where each name is: the part of the link's length, and `ABOVE` or `BELOW` the link.

    `others` are the ends of links without a name, `taken` the boxes of nodes and their labels, and
    `widths` the least and greatest width of a link, with which its name moves. A name that would
    cover a node or another name wherever it is put is left out. Of the places that are free, one
    that no other link crosses is better.
    """
    found: dict[str, tuple[float, int]] = {}
    boxes = list(taken)
    lines = {each.id: (each.a, each.b) for each in links}
    for each in links:
        crossing = [ends for name, ends in lines.items() if name != each.id] + list(others)
        best: tuple[int, tuple[float, int], list[Box]] | None = None
        for side in (ABOVE, BELOW):
            for part in PARTS:
                own = [box_of(each, part, side, width) for width in widths]
                if any(box.overlaps(other) for box in own for other in boxes):
                    continue
                crossed = sum(own[-1].is_crossed(*ends) for ends in crossing)
                if best is None or crossed < best[0]:
                    best = crossed, (part, side), own
        if best:
            found[each.id] = best[1]
            boxes += best[2]
    return found


def box_of(link: Named, part: float, side: int, width: float) -> Box:
    """Return the rectangle that a name takes up beside a link that is `width` pixels wide."""
    left, above = beside(link.a, link.b, width, link.letters, side)
    (x1, y1), (x2, y2) = link.a, link.b
    wide = LETTER * link.letters + (SWATCH / 2 if link.has_swatch else 0.0)
    x, y = x1 + part * (x2 - x1) + left, y1 + part * (y2 - y1) + above
    return Box(x, y - 4, wide, TALL / 2)
