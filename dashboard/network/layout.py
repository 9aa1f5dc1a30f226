"""Place the nodes of a topology on a drawing, in pixels.

If the topology gives its users positions, the drawing is a map. Otherwise it has layers: servers
first, users last, and each switch in between as far from the servers as it is in the network. The
result depends on nothing but the topology.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from dashboard.palette import natural
from lab.topologies.topology import Topology

Place = tuple[float, float]
Layers = list[list[str]]
ACROSS = {False: 660.0, True: 520.0}  # from the first layer to the last, by `upright`
ALONG = {False: 400.0, True: 300.0}  # from the first node of a layer to the last
LEAST_GAP = {False: 36.0, True: 22.0}  # between two nodes of a layer
LAYER_GAPS = (64.0, 190.0)  # the least and greatest distance of two layers
MARGINS = {False: (74.0, 46.0), True: (26.0, 48.0)}  # left and right, above and below
MAP_SIDE = {False: 600.0, True: 316.0}  # the side of the area in which users move
STRIP = {False: 150.0, True: 90.0}  # beside the map, for nodes without a position
SWEEPS = 4  # over all layers, to reduce crossings
SMALLEST, GREATEST = 6.5, 17.0  # radius of a node


@dataclass(frozen=True)
class Layout:
    """Hold the places of all nodes, the size of the drawing and the radius of a node, in pixels.

    `area` is the square in which users move: its left and upper edge and its side in pixels, and
    its side in metres. It is None for a drawing with layers.
    """

    places: Mapping[str, Place]
    width: float
    height: float
    radius: float
    area: tuple[float, float, float, float] | None = None

    def radius_of(self, kind: str) -> float:
        """Return the radius of a node of this kind; access points stand out on a map."""
        return max(11.0, self.radius) if self.area and kind in ("wifi", "lte") else self.radius

    @property
    def ribbon(self) -> float:
        """Return the greatest width of a link in pixels; on a map, links leave room for users."""
        return 9.0 if self.area else 19.0


def graph_of(topology: Topology) -> nx.Graph:
    """Return the nodes of a topology, joined by its links and by the air of its cells."""
    graph = nx.Graph()
    graph.add_nodes_from(node.id for node in topology.nodes)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    graph.add_edges_from((cell.ap, each.user) for cell in topology.cells for each in cell.stations)
    return graph


def arrange(topology: Topology, upright: bool = False) -> Layout:
    """Return the layout of a topology; `upright` fits a narrow screen, with servers at the top."""
    if topology.area_m and any(node.place_m for node in topology.nodes):
        return _map(topology, upright)
    layers = _layers(topology)
    most = max(len(layer) for layer in layers)
    across = min(LAYER_GAPS[1], max(LAYER_GAPS[0], ACROSS[upright] / max(1, len(layers) - 1)))
    along = max(LEAST_GAP[upright], min(96.0, ALONG[upright] / most))
    left, top = MARGINS[upright]
    where = _spread(layers, across, along * most)
    turned = {name: (y, x) if upright else (x, y) for name, (x, y) in where.items()}
    places = {name: (round(x + left, 1), round(y + top, 1)) for name, (x, y) in turned.items()}
    span, breadth = across * (len(layers) - 1), along * most
    size = (breadth, span) if upright else (span, breadth)
    return Layout(places, size[0] + 2 * left, size[1] + 2 * top, _radius(along))


def _radius(gap: float) -> float:
    return round(min(GREATEST, max(SMALLEST, gap * 0.28)), 1)


def _spread(layers: Layers, across: float, breadth: float) -> dict[str, Place]:
    """Return the places of all nodes; the nodes of each layer share `breadth` equally."""
    graph = nx.Graph()
    graph.add_nodes_from(name for layer in layers for name in layer)
    order = dict(enumerate(layers))
    found = nx.multipartite_layout(graph, subset_key=order)
    places = {}
    for n, layer in enumerate(layers):
        for k, name in enumerate(sorted(layer, key=lambda each: float(found[each][1]))):
            places[name] = (n * across, (k + 0.5) * breadth / len(layer))
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
    """Return the nodes on shortest paths to a server from the neighbours of users."""
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
    """Return the layers in an order with few crossings, by the barycentre method.

    A node moves to the mean place of its neighbours in the layer before it, then after it, and so
    on. The order with the fewest crossings is kept; the order of the topology wins a tie.
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


def _map(topology: Topology, upright: bool) -> Layout:
    """Return a layout with the nodes at their positions, and the others in a strip beside."""
    side, strip = MAP_SIDE[upright], STRIP[upright]
    left, top = (22.0, strip) if upright else (strip, 22.0)
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
    for n, column in enumerate(columns):
        names = [name for name in others if depth.get(name, 0) == column]
        for k, name in enumerate(names):
            step = strip * (n + 0.5) / len(columns)
            rest = (left if upright else top) + (k + 0.5) * side / len(names)
            places[name] = (rest, step) if upright else (step, rest)
    size = (side + 44, side + strip + 22) if upright else (side + strip + 44, side + 44)
    crowd = len(topology.users)
    radius = _radius(side / max(12.0, 1.1 * crowd))
    return Layout(places, *size, radius, (left, top, side, topology.area_m))


def on_map(place_m: Place, area: tuple[float, float, float]) -> Place:
    """Return a position in m as a place in pixels; `area` is left edge, upper edge, pixels per m.

    The y axis of the drawing points down.
    """
    left, top, scale = area
    return round(left + place_m[0] * scale, 1), round(top + place_m[1] * scale, 1)
