"""The names of links in a drawing cover no node and no other name."""

from __future__ import annotations

import itertools
import random

import pytest

from dashboard.network.drawing import boxes_of, drawing, line_ends
from dashboard.network.names import Box, Named, box_of, places_of_names
from lab.scenario import loading
from lab.scenario.loading import Overrides


def boxes(drawn):
    """The space of each name that is drawn."""
    for line in drawn.lines:
        if line.named:
            places = {spot.id: (spot.x, spot.y) for spot in drawn.spots}
            link = Named(line.id, *line_ends(line, places), len(line.id), line.colour >= 0)
            yield [
                box_of(link, line.name_at, line.name_side, width)
                for width in (3, drawn.layout.ribbon)
            ]


@pytest.mark.parametrize(("width", "height"), [(560, 330), (860, None), (380, 300)])
@pytest.mark.parametrize("name", loading.names())
def test_names_of_shipped_networks_cover_nothing(name, width, height):
    drawn = drawing(loading.load(name, Overrides()).network, 1.0, width, height)
    names = list(boxes(drawn))
    taken = [box for spot in drawn.spots for box in boxes_of(spot)]
    assert not any(
        a.overlaps(b) for one, other in itertools.combinations(names, 2) for a in one for b in other
    )
    assert not any(a.overlaps(box) for name in names for a in name for box in taken)


def test_a_link_with_space_around_it_keeps_its_name_above_its_middle():
    links = [Named("a", (0, 0), (200, 0), 8, False), Named("b", (0, 100), (200, 100), 8, True)]
    assert places_of_names(links, [], [], (3, 9)) == {"a": (0.4, 1), "b": (0.4, 1)}


def test_a_name_avoids_a_link_that_crosses_and_is_left_out_without_space():
    flat = Named("a", (0, 0), (200, 0), 4, False)
    crossing = [((80, -50), (80, 50))]
    part, side = places_of_names([flat], crossing, [], (3, 9))["a"]
    assert (part, side) != (0.4, 1)
    everywhere = [Box(100, 0, 200, 200)]
    assert places_of_names([flat], [], everywhere, (3, 9)) == {}


def test_random_links_never_share_space():
    chance = random.Random(5)
    for _ in range(50):
        links = [
            Named(
                f"n{n}", *((chance.uniform(0, 500), chance.uniform(0, 300)) for _ in "ab"), 9, True
            )
            for n in range(15)
        ]
        found = places_of_names(links, [], [], (3, 9))
        drawn = [box_of(each, *found[each.id], 9) for each in links if each.id in found]
        assert len(drawn) > 3
        assert not any(a.overlaps(b) for a, b in itertools.combinations(drawn, 2))
