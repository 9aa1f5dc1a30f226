"""Positions of the nodes of a network in a drawing, in pixels.

If the topology gives its users positions, the drawing is a map. Otherwise it has layers: servers
first, users last, and each switch as far from the servers as it is in the network. The result
depends only on the topology and the width of the drawing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from dashboard.network.clearing import cleared
from lab.results.explain.paths import graph_of
from lab.results.labels import natural
from lab.topologies.topology import Topology

Place = tuple[float, float]
Layers = list[list[str]]
WIDTH = 860.0  # default width of a drawing
NARROW = 560.0  # up to this width, servers are at the top and users at the bottom
WIDTHS = (280.0, 1600.0)  # the least and the greatest width of a drawing
HEIGHTS = (180.0, 1200.0)  # of a drawing whose height is given
HEIGHT = 520.0  # from the first layer to the last in a narrow drawing, unless it is given
ALONG = 400.0  # from the first node of the fullest layer to the last in a wide one, likewise
LEAST_GAP = {False: 36.0, True: 22.0}  # between two nodes of a layer, by `upright`
LEAST_FITTED_GAP = 19.0  # likewise, if the height is given: labels are beside the nodes then
MOST_GAP = 130.0
LAYER_GAPS = (48.0, 190.0)  # the least and greatest distance of two layers in a narrow drawing
MARGINS = {False: (64.0, 44.0), True: (30.0, 44.0)}  # left and right, above and below
FITTED_MARGINS = {False: (58.0, 30.0), True: (30.0, 36.0)}  # likewise, if the height is given
MAP_HEIGHT = 680.0  # of a map, at most, unless it is given
NAME_LETTER, SHORT_NAME = 7.5, 5  # width of a letter in pixels; letters that a margin has room for
MAP_MARGIN = 22.0
STRIPS = {False: 120.0, True: 90.0}  # beside or above the map, for nodes without a position
SWEEPS = 4  # over all layers, to reduce crossings
CLEAR = 4.0  # between a node and a link that does not end there
SMALLEST, GREATEST = 6.5, 17.0  # radius of a node
LABEL_GAP = 32.0  # between two nodes of a layer; closer ones have no space for a label between them


@dataclass(frozen=True)
class Layout:
    """The positions of all nodes, the size of the drawing and the radius of a node, in pixels.

    `area` is the square in which users move: its left edge, upper edge and side in pixels, and its
    side in metres. It is None if the drawing has layers. If `is_upright`, the servers are at the
    top.
    """

    places: Mapping[str, Place]
    width: float
    height: float
    radius: float
    area: tuple[float, float, float, float] | None = None
    is_upright: bool = False

    def radius_of(self, kind: str) -> float:
        """Return the radius of a node of this kind, in pixels. Access points on a map are
        larger."""
        return max(11.0, self.radius) if self.area and kind in ("wifi", "lte") else self.radius

    @property
    def close(self) -> frozenset[str]:
        """The nodes that have another one so near below that no label fits between them."""
        columns: dict[float, list[tuple[float, str]]] = {}
        for name, (x, y) in self.places.items():
            columns.setdefault(x, []).append((y, name))
        return frozenset(
            name
            for column in columns.values()
            for pair in itertools.pairwise(sorted(column))
            if pair[1][0] - pair[0][0] < LABEL_GAP
            for _, name in pair
        )

    @property
    def ribbon(self) -> float:
        """The largest width of a link, in pixels. It is narrower than a node, and on a map much
        narrower, to leave space for users."""
        return 9.0 if self.area else round(1.5 * self.radius, 1)


def arrange(topology: Topology, width: float = WIDTH, height: float | None = None) -> Layout:
    """Return the positions for a drawing that is `width` pixels wide and fits into `height`.

    If the scenario gives positions of nodes, the drawing is a map, as large as fits, so it may be
    narrower than `width`. In other drawings, the servers are at the left, or at the top if the
    drawing is narrow: less wide than `NARROW`, or higher than wide if `height` is given. A network
    with many nodes is larger than asked; a browser scales it down.
    """
    width = min(WIDTHS[1], max(WIDTHS[0], width))
    if height is not None:
        height = min(HEIGHTS[1], max(HEIGHTS[0], height))
    if topology.area_m and any(node.place_m for node in topology.nodes):
        return _map(topology, width, height or MAP_HEIGHT)
    upright = width <= NARROW if height is None else width < height
    layers = _layers(topology)
    gaps, steps = max(1, max(map(len, layers)) - 1), max(1, len(layers) - 1)
    left, top = MARGINS[upright] if height is None else FITTED_MARGINS[upright]
    if not upright:  # the names of servers and users are beside them
        longest = max((len(name) for name in (*topology.users, *topology.ids("server"))), default=0)
        left += NAME_LETTER * max(0, longest - SHORT_NAME)
    if upright:
        span = HEIGHT if height is None else height - 2 * top
        across = min(LAYER_GAPS[1], max(LAYER_GAPS[0], span / steps))
        along = max(LEAST_GAP[upright], (width - 2 * left) / gaps)
    else:
        span = ALONG if height is None else height - 2 * top
        across = max(LAYER_GAPS[0], (width - 2 * left) / steps)
        least = LEAST_GAP[upright] if height is None else LEAST_FITTED_GAP
        along = max(least, min(MOST_GAP, span / gaps))
    room = (across * (len(layers) - 1), along * gaps)
    links = list(graph_of(topology).edges)
    where = cleared(
        _spread(layers, across, along), links, _radius(along) + CLEAR, (across, along), room
    )
    turned = {name: (y, x) if upright else (x, y) for name, (x, y) in where.items()}
    places = {name: (round(x + left, 1), round(y + top, 1)) for name, (x, y) in turned.items()}
    size = (room[1], room[0]) if upright else room
    radius = _radius(along)
    return Layout(places, size[0] + 2 * left, size[1] + 2 * top, radius, is_upright=upright)


def _radius(gap: float) -> float:
    return round(min(GREATEST, max(SMALLEST, gap * 0.28)), 1)


def _spread(layers: Layers, across: float, along: float) -> dict[str, Place]:
    """Return the positions of all nodes. The layers are `across` pixels apart.

    All layers are equally long, and the nodes of a layer share this length equally. In the layer
    with the most nodes, neighbours are `along` pixels apart.
    """
    graph = nx.Graph()
    graph.add_nodes_from(name for layer in layers for name in layer)
    order = dict(enumerate(layers))
    found = nx.multipartite_layout(graph, subset_key=order)
    most = max(2, *map(len, layers))
    places = {}
    for n, layer in enumerate(layers):
        for k, name in enumerate(sorted(layer, key=lambda each: float(found[each][1]))):
            places[name] = (n * across, ((k + 0.5) * most / len(layer) - 0.5) * along)
    return places


def _layers(topology: Topology) -> Layers:
    graph = graph_of(topology)
    users, servers = set(topology.users), set(topology.ids("server"))
    inner = graph.subgraph(set(graph) - users)  # a user does not forward packets
    depth = nx.multi_source_dijkstra_path_length(inner, servers & set(inner)) if servers else {}
    useful = _on_a_path(graph, depth, users)
    for name in sorted(set(inner) - servers - useful, key=natural):
        near = [depth[each] for each in graph[name] if each in useful and each in depth]
        depth[name] = max(1, min(near) - 1) if near else depth.get(name, 1)
    last = max([1, *(n for name, n in depth.items() if name not in servers)]) + 1
    layers: Layers = [[] for _ in range(last + 1)]
    for name in graph:
        layers[last if name in users else depth.get(name, 1)].append(name)
    return _untangled([layer for layer in layers if layer], graph)


def _on_a_path(graph: nx.Graph, depth: Mapping[str, int], users: Iterable[str]) -> set[str]:
    """Return the nodes on shortest paths from the neighbours of users to a server.

    `depth` has the distance of each node from the nearest server.
    """
    found: set[str] = set()
    waiting = [each for user in users for each in graph[user] if each in depth]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += [each for each in graph[name] if depth.get(each, -1) == depth[name] - 1]
    return found


def _untangled(layers: Layers, graph: nx.Graph) -> Layers:
    """Reorder the nodes of each layer so that few links cross, by the barycentre method.

    A node moves to the mean position of its neighbours in the previous layer, then in the next
    layer, and so on. The order with the fewest crossings is returned. If no order is better, the
    original order stays.
    """
    best, fewest = layers, _crossings(layers, graph)
    now = layers
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        now = _swept(now, graph, forward)
        crossings = _crossings(now, graph)
        if crossings < fewest:
            best, fewest = now, crossings
    return best


def _swept(layers: Layers, graph: nx.Graph, forward: bool) -> Layers:
    ordered = [list(layer) for layer in (layers if forward else reversed(layers))]
    for before, layer in itertools.pairwise(ordered):
        place = {name: (k + 0.5) / len(before) for k, name in enumerate(before)}
        own = {name: (k + 0.5) / len(layer) for k, name in enumerate(layer)}

        def mean(
            name: str, place: Mapping[str, float] = place, own: Mapping[str, float] = own
        ) -> float:
            near = [place[each] for each in graph[name] if each in place]
            return sum(near) / len(near) if near else own[name]

        layer.sort(key=mean)
    return ordered if forward else ordered[::-1]


def _crossings(layers: Layers, graph: nx.Graph) -> int:
    """Count the crossings of links between neighbouring layers."""
    total = 0
    for before, after in itertools.pairwise(layers):
        place = {name: k for k, name in enumerate(after)}
        ends: Sequence[tuple[int, int]] = [
            (k, place[each]) for k, name in enumerate(before) for each in graph[name] & place.keys()
        ]
        total += sum(a < c and b > d for a, b in ends for c, d in ends)
    return total


def _map(topology: Topology, width: float, height: float) -> Layout:
    """Return a layout with each node at its own position.

    Nodes without a position are in a strip beside the map or above it. The side that lets the map
    be larger is chosen.
    """
    room, height = width - 2 * MAP_MARGIN, height - 2 * MAP_MARGIN
    beside = min(room - STRIPS[False], height)
    above = min(room, height - STRIPS[True])
    upright = above > beside
    side, strip = max(beside, above), STRIPS[upright]
    left, top = (MAP_MARGIN, strip) if upright else (strip + MAP_MARGIN, MAP_MARGIN)
    scale = side / topology.area_m
    places = {
        node.id: on_map(node.place_m, (left, top, scale))
        for node in topology.nodes
        if node.place_m is not None
    }
    graph = graph_of(topology)
    depth = nx.multi_source_dijkstra_path_length(graph, set(topology.ids("server")))
    others = sorted((each for each in graph if each not in places), key=natural)
    columns = sorted({depth.get(name, 0) for name in others})
    part = 0.32 if upright else 0.5  # links from above do not run through a row of access points
    for n, column in enumerate(columns):
        names = [name for name in others if depth.get(name, 0) == column]
        for k, name in enumerate(names):
            step = strip * (n + 0.5) / len(columns)
            rest = (left if upright else top) + (k + part) * side / len(names)
            places[name] = (rest, step) if upright else (step, rest)
    size = (side + 2 * left, side + top + MAP_MARGIN)
    if not upright:
        size = (side + left + MAP_MARGIN, side + 2 * top)
    radius = _radius(side / max(12.0, 1.1 * len(topology.users)))
    return Layout(places, *size, radius, (left, top, side, topology.area_m), upright)


def on_map(place_m: Place, area: tuple[float, float, float]) -> Place:
    """Convert a position in m to pixels. A larger y is further down in the drawing.

    `area` has the left edge, the upper edge, and the pixels per m.
    """
    left, top, scale = area
    return round(left + place_m[0] * scale, 1), round(top + place_m[1] * scale, 1)
