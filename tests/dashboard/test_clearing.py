"""Links of a drawing run past nodes at which they do not end."""

from __future__ import annotations

import math
import random

import pytest

from dashboard.network.clearing import cleared
from dashboard.network.layout import arrange
from lab.results.explain.paths import graph_of
from lab.scenario import loading

SHAPES = [(860, None), (400, None), (800, 420), (380, 600)]
SEVERAL_DEPTHS = {
    "name": "several",
    "title": "Users at two depths",
    "topology": {
        "kind": "nodes_and_links",
        "users": [{"id": "u1"}, {"id": "u2"}],
        "servers": [{"id": "s1"}],
        "switches": ["x", "y", "z"],
        "links": [
            {"a": "x", "b": "u1"},
            {"a": "y", "b": "u1"},
            {"a": "x", "b": "u2"},
            {"a": "z", "b": "x", "rate_mbps": 15},
            {"a": "z", "b": "y", "rate_mbps": 12},
            {"a": "s1", "b": "z"},
            {"a": "s1", "b": "y", "rate_mbps": 8},
        ],
    },
    "traffic": [{"user": "all"}],
}


def passed(layout, topology):
    """The nodes that a link runs through."""
    found = []
    for a, b in graph_of(topology).edges:
        (ax, ay), (bx, by) = layout.places[a], layout.places[b]
        for name, (x, y) in layout.places.items():
            parts = [n / 200 for n in range(201)]
            near = min(math.dist((x, y), (ax + p * (bx - ax), ay + p * (by - ay))) for p in parts)
            if name not in (a, b) and near < layout.radius:
                found.append((name, a, b))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_no_link_of_a_network_with_several_depths_passes_through_a_node(shape):
    network = loading.from_data(SEVERAL_DEPTHS, "several.yaml").network
    assert passed(arrange(network, *shape), network) == []


@pytest.mark.parametrize("name", ["two_paths", "testbed_wifi_lte", "pooling", "cut_or_removed"])
def test_nor_does_one_of_a_shipped_network(name):
    network = loading.load(name).network
    for shape in SHAPES:
        assert passed(arrange(network, *shape), network) == []


def test_places_without_a_fault_stay():
    places = {"a": (0.0, 0.0), "b": (100.0, 0.0), "c": (50.0, 60.0)}
    assert cleared(places, [("a", "b")], 20, (100, 60), (100, 60)) == places


@pytest.mark.parametrize("seed", range(20))
def test_nodes_stay_in_the_room_and_faults_do_not_grow(seed):
    rng = random.Random(seed)
    places = {f"n{k}": (100.0 * (k % 4), 60.0 * (k // 4)) for k in range(12)}
    links = [tuple(rng.sample(sorted(places), 2)) for _ in range(14)]
    found = cleared(places, links, 20, (100, 60), (300, 120))
    assert found.keys() == places.keys()
    assert all(0 <= x <= 300 and 0 <= y <= 120 for x, y in found.values())
    moved = [name for name in places if found[name] != places[name]]
    assert cleared(found, links, 20, (100, 60), (300, 120)) == found
    assert len(moved) < len(places)
