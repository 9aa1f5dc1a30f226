"""Read a network in GraphML, such as a file of the Internet Topology Zoo.

Source: S. Knight et al., The Internet Topology Zoo, IEEE JSAC 29(9), 2011. Its nodes are places
with a latitude and a longitude, and its links may have a capacity. A place becomes a switch.
"""

from __future__ import annotations

import io
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from lab.errors import RequestError, unknown
from lab.topologies.found import MOST_BYTES, Found, FoundLink, Value, check_size, shown

MOST_DEPTH, MOST_ELEMENTS = 32, 200_000
EARTH_RADIUS_KM = 6371
BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
OWN_KEYS = ("rate_mbps", "delay_ms", "jitter_ms", "loss", "loss_both", "queue_packets")
SPEED_KEYS = ("LinkSpeed", "LinkSpeedUnits", "LinkSpeedRaw")
Attributes = Mapping[str, Any]
Edge = tuple[Any, Any, Attributes]


@dataclass(frozen=True)
class Defaults:
    """What a link gets if the file says nothing. `km_per_ms` is the speed of light in a fibre."""

    rate_mbps: float = 1000
    km_per_ms: float = 200
    queue_packets: int = 100


def read(name: str, content: bytes, defaults: Defaults) -> Found:
    """Return the network in a GraphML file. It has no hosts (`with_hosts` adds them).

    The rate of a link is its attribute rate_mbps, LinkSpeedRaw (bit/s), or LinkSpeed with
    LinkSpeedUnits. Its delay is delay_ms, or the distance of its ends on the globe divided by
    `km_per_ms`. Raise `RequestError` if it is no GraphML, if it has a document type (entities), or
    if a value is impossible.
    """
    check_xml(name, content)
    graph = _parsed(name, content)
    labels = _labels(graph)
    links, how, ignored = [], Counter[str](), set[str]()
    edges = [edge for edge in graph.edges(data=True) if edge[0] != edge[1]]
    kept, pairs = _both_directions_once(edges) if graph.is_directed() else (edges, 0)
    for a, b, attributes in kept:
        ends = graph.nodes[a], graph.nodes[b]
        try:
            shape = dict(_shape(attributes, ends, defaults, how))
        except ValueError as error:
            raise RequestError(f"read {name}: link {labels[a]}-{labels[b]}: {error}") from error
        links.append(FoundLink(labels[a], labels[b], shape))
        ignored |= {*attributes} - {*OWN_KEYS, *SPEED_KEYS, "id", "key"}
    notes = [f"{count} of {len(links)} links: {what}" for what, count in how.items()]
    if loops := graph.number_of_edges() - len(edges):
        notes.append(f"links from a node to itself left out: {loops}")
    if pairs:
        notes.append(f"pairs of directed links that are one link each: {pairs}")
    if ignored:
        notes.append(f"attributes of links left out: {shown(sorted(ignored))}")
    found = Found((), tuple(labels.values()), tuple(links), tuple(notes))
    check_size(found, name)
    return found


def check_xml(name: str, content: bytes) -> None:
    """Raise `RequestError` if the content is no XML, or if it could exhaust the memory of a parser
    or make it read other files: no entities, limited size and depth."""
    if len(content) > MOST_BYTES:
        raise RequestError(f"read {name}: it is larger than {MOST_BYTES} bytes")
    parser, depth, elements = expat.ParserCreate(), 0, 0

    def begin(tag: str, attributes: object) -> None:
        nonlocal depth, elements
        depth, elements = depth + 1, elements + 1
        if depth > MOST_DEPTH or elements > MOST_ELEMENTS:
            raise RequestError(
                f"read {name}: it has more than {MOST_DEPTH} nested or {MOST_ELEMENTS} elements"
            )

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*declared: object) -> None:
        raise RequestError(
            f"read {name}: it declares a document type, which GraphML does not need. "
            "Delete <!DOCTYPE ...>"
        )

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise RequestError(f"read {name}: it is no XML: {error}") from error
    except (ValueError, LookupError) as error:  # an encoding that Python does not know
        raise RequestError(f"read {name}: {error}") from error


def _parsed(name: str, content: bytes) -> Any:
    """Return a networkx graph that may have several links between two nodes."""
    import networkx as nx  # takes 0.1 s, for these files only

    try:
        with warnings.catch_warnings(action="ignore"):  # a key without a type is a text, as here
            graph = nx.read_graphml(io.BytesIO(content), force_multigraph=True)
    except Exception as error:  # networkx raises whatever happens while it reads
        raise RequestError(
            f"read {name}: it is no GraphML: {str(error) or type(error).__name__}"
        ) from error
    if not graph.number_of_edges():
        raise RequestError(f"read {name}: it has no links")
    return graph


def _both_directions_once(edges: list[Edge]) -> tuple[list[Edge], int]:
    """Return the edges of a directed graph, without those that are the way back of another one with
    the same attributes, and the number of edges left out."""
    waiting, kept = Counter[Any](), []
    for a, b, attributes in edges:
        of_link = frozenset((key, str(attributes.get(key))) for key in (*OWN_KEYS, *SPEED_KEYS))
        if waiting[b, a, of_link]:
            waiting[b, a, of_link] -= 1
        else:
            waiting[a, b, of_link] += 1
            kept.append((a, b, attributes))
    return kept, len(edges) - len(kept)


def _labels(graph: Any) -> dict[Any, str]:
    """Return a name for each node: its label, with its id if several nodes have this label."""
    labels = {node: str(data.get("label") or node) for node, data in graph.nodes(data=True)}
    times = Counter(labels.values())
    return {node: text if times[text] == 1 else f"{text} {node}" for node, text in labels.items()}


def _shape(
    attributes: Attributes, ends: Sequence[Attributes], defaults: Defaults, how: Counter[str]
) -> Iterator[tuple[str, Value]]:
    """Yield keys of `nodes_and_links.Wire` and values. Count in `how` where they are from."""
    own = {key: _number(attributes, key) for key in OWN_KEYS if key in attributes}
    if "rate_mbps" not in own:
        rate_mbps, said = _rate_mbps(attributes)
        how[said or f"rate {defaults.rate_mbps:g} Mb/s (rate_mbps), because none is given"] += 1
        own["rate_mbps"] = rate_mbps or defaults.rate_mbps
    if "delay_ms" not in own:
        km = _distance_km(*ends)
        how[
            "delay 0, because a place is missing"
            if km is None
            else f"delay from the distance at {defaults.km_per_ms:g} km/ms (km_per_ms)"
        ] += 1
        own["delay_ms"] = round((km or 0) / defaults.km_per_ms, 3)
    yield from own.items()
    yield "queue_packets", int(own.get("queue_packets", defaults.queue_packets))


def _rate_mbps(attributes: Attributes) -> tuple[float | None, str]:
    """Return the capacity of a link, and from which attributes it is; (None, "") if it has none."""
    if attributes.get("LinkSpeedRaw"):
        return _number(attributes, "LinkSpeedRaw") / 1e6, "rate from LinkSpeedRaw"
    if attributes.get("LinkSpeed") and "LinkSpeedUnits" in attributes:
        units = str(attributes["LinkSpeedUnits"]).strip().upper()[:1]
        if units not in BITS:
            raise ValueError(f"LinkSpeedUnits {unknown(units, BITS)}")
        mbps = _number(attributes, "LinkSpeed") * BITS[units] / 1e6
        return mbps, "rate from LinkSpeed and LinkSpeedUnits"
    return None, ""


def _number(attributes: Attributes, key: str) -> float:
    try:
        value = float(attributes[key])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{key} {attributes[key]!r} is not a number") from error
    if not 0 <= value < 1e15 or (key in ("rate_mbps", "LinkSpeed", "LinkSpeedRaw") and not value):
        raise ValueError(f"{key} {value:g} is out of range")
    return value


def _distance_km(a: Attributes, b: Attributes) -> float | None:
    """Return the great-circle distance of two nodes (haversine), or None without their places."""
    try:
        places = [
            [math.radians(_degrees(each, key)) for key in ("Latitude", "Longitude")]
            for each in (a, b)
        ]
    except KeyError:
        return None
    (lat1, long1), (lat2, long2) = places
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin((long2 - long1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half)))


def _degrees(node: Attributes, key: str) -> float:
    try:
        value = float(node[key])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{key} {node[key]!r} is not a number of degrees") from error
    if not -360 <= value <= 360:
        raise ValueError(f"{key} {value:g} is not a number of degrees")
    return value


Places = tuple[str, ...]


def with_hosts(
    found: Found, users: Sequence[Places], servers: Sequence[str], what: str
) -> tuple[Found, Places, Places]:
    """Add a host for each user and server, and return the network and their names.

    The users are ue1, ue2, ..., each at one or several places; the servers are srv1, srv2, ...
    Links of hosts have no limit. Raise `RequestError` if a place is unknown, or if none is given.
    """
    if not users or not servers:
        raise RequestError(
            f"{'servers' if users else 'users'}: at which nodes of {what} are users and servers? "
            f"Write for example 'users: [{found.switches[0]}], servers: [{found.switches[-1]}]', "
            f"or 'users: [[A, B]]' for a user with a link to each. Its nodes are "
            f"{shown(found.switches)}"
        )
    links = list(found.links)
    for kind, stem, all_places in (
        ("users", "ue", users),
        ("servers", "srv", [(s,) for s in servers]),
    ):
        for n, places in enumerate(all_places, 1):
            for place in places:
                if place not in found.switches:
                    raise RequestError(f"{kind}: node {unknown(place, found.switches)}")
                links.append(FoundLink(f"{stem}{n}", place, {}))
    named = tuple(f"ue{n}" for n in range(1, len(users) + 1))
    serving = tuple(f"srv{n}" for n in range(1, len(servers) + 1))
    placed = Found((*named, *serving), found.switches, tuple(links), found.notes)
    return placed, named, serving
