"""The drawing of a network as objects with positions: nodes, links and subflows. `svg.py` makes SVG
from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from string import ascii_letters
from typing import Any

from controller.units import fraction_from_ppm, ms_from_ns, scenario_mbps
from dashboard.base.errors import Problem
from dashboard.network.layout import WIDTH, Layout, Place, arrange, on_map
from dashboard.network.names import (
    ABOVE,
    LETTER,
    PARTS,
    TALL,
    Box,
    Named,
    normal,
    places_of_names,
)
from dashboard.palette import place_colours, subflow_colour, subflow_style, user_colours
from lab.results.explain import paths as network_paths
from lab.results.explain.paths import Event, NodePath, Paths
from lab.topologies.topology import Direction, Link, Topology, down_directions, wire

MOST_NODES = 300
MOST_NAMED = 20  # links; with more, a name appears only when the mouse is over its link
LABEL_PX = 30.0 * 28.0  # area of a user on a map, with its label
MOST_LABELLED = 0.12  # part of a map that users and labels may cover
UNKNOWN_MBPS = 100.0  # width of subflows in a network without rates
INSIDE_RADIUS = 8.0  # of a user with its number inside
BESIDE = 3.0  # width of a link around its subflows, in pixels
LABEL_AWAY = 6.0  # between a node, or the ring around it, and its label, in pixels
RING = 5.5  # from the edge of an access point to the ring around it, in pixels
PARALLEL = 14.0  # distance in pixels of two links between the same nodes
Frame = Mapping[str, Any]  # a line of samples.jsonl


@dataclass(frozen=True)
class Spot:
    """A drawn node. `x`, `y` and `radius` are in pixels.

    `kind` is the kind of the node, such as "wifi". `side` is the position of its label: "left",
    "right", "below" or "inside". `colour` is the palette index of a user or an access point, and -1
    for any other node.
    """

    id: str
    kind: str
    x: float
    y: float
    side: str
    radius: float
    colour: int = -1

    @property
    def label_away(self) -> float:
        """How far the label is from the middle of the node, in pixels."""
        return self.radius + LABEL_AWAY + (RING if self.kind in ("wifi", "lte") else 0.0)


@dataclass(frozen=True)
class Line:
    """A drawn link between the nodes `a` and `b`.

    `air` is True for a radio link between an access point and a user. `rate_mbps` is the rate in
    the scenario, not multiplied by the rate scale of a run. It is None if the scenario sets no
    rate. `rate_back_mbps` is the rate from `b` to `a` if it differs. `down` is the direction that
    leads to the users, "ab" or "ba", or empty if both do. `loss` is the loss of the worse
    direction, as a fraction. `shift` moves the line sideways, in pixels, if several links join the
    same nodes. `colour` is a palette index, or -1. If `named`, the name of the link is written
    beside it: `name_at` of its length from `a`, above it if `name_side` is 1, below it if -1.
    `words` say where the link is, if its id does not. `interface` is the target that switches the
    host's end of it, such as `iface.ue1.wlan0.up`. A run may not have this target.
    """

    id: str
    a: str
    b: str
    air: bool = False
    rate_mbps: float | None = None
    delay_ms: float = 0.0
    loss: float = 0.0
    shift: float = 0.0
    colour: int = -1
    named: bool = False
    words: str = ""
    interface: str = ""
    rate_back_mbps: float | None = None
    down: str = ""
    name_at: float = PARTS[0]
    name_side: int = ABOVE


@dataclass(frozen=True)
class Drawing:
    """The parts of the drawing of a network that do not change during a run."""

    name: str
    layout: Layout
    spots: tuple[Spot, ...]
    lines: tuple[Line, ...]
    by_subflow: bool  # with one user, each subflow has a colour; else each user
    full_mbps: float  # rate at which a subflow has its greatest width


@dataclass(frozen=True)
class Subflow:
    """A drawn subflow.

    `path` has the nodes from the server to the user. `style` is that of its line
    (`dashboard.palette.subflow_style`). `colour` is a palette index.
    """

    id: str
    user: str
    path: NodePath
    style: int
    colour: int
    backup: bool
    mbps: float


@dataclass(frozen=True)
class Activity:
    """The state of a network at one time of a run.

    `frame` is the sample of that time. `down` has the ids of the links that are down. `moved` maps
    each user that moves to its position in pixels.
    """

    frame: Frame
    subflows: tuple[Subflow, ...]
    down: frozenset[str]
    moved: Mapping[str, Place]


def drawing(
    topology: Topology,
    rate_scale: float = 1.0,
    width: float = WIDTH,
    height: float | None = None,
) -> Drawing:
    """Return the drawing of a network, `width` pixels wide and, if possible, `height` high.

    The rates in `topology` are those of the scenario multiplied by `rate_scale`. The drawing shows
    the rates of the scenario. Raise a `Problem` with status 422 if there are too many nodes.
    """
    if len(topology.nodes) > MOST_NODES:
        text = f"draw the network: it has {len(topology.nodes)} nodes, and {MOST_NODES} can be read"
        raise Problem(422, f"{text}. Choose smaller parameters, or read the table")
    layout = arrange(topology, width, height)
    colours, by_subflow = user_colours(topology.users), len(topology.users) == 1
    colours |= place_colours(topology.ids("wifi", "lte"))
    crowded, close = is_crowded(layout, topology.users), layout.close
    spots = tuple(
        Spot(
            node.id,
            node.kind,
            *layout.places[node.id],
            _side(node.kind, layout, crowded, node.id in close),
            INSIDE_RADIUS if crowded and node.kind == "user" else layout.radius_of(node.kind),
            colours.get(node.id, -1),
        )
        for node in topology.nodes
    )
    lines = _with_names(tuple(_lines(topology, rate_scale)), spots, layout)
    return Drawing(topology.name, layout, spots, lines, by_subflow, _fastest_mbps(lines))


def _with_names(lines: Sequence[Line], spots: Sequence[Spot], layout: Layout) -> tuple[Line, ...]:
    """Give the names of links their places; names that find none are not drawn."""
    ends = {each.id: line_ends(each, layout.places) for each in lines}
    wanted = [
        Named(each.id, *ends[each.id], len(each.id), each.colour >= 0)
        for each in lines
        if each.named
    ]
    others = [ends[each.id] for each in lines if not each.named]
    taken = [box for spot in spots for box in boxes_of(spot)]
    found = places_of_names(wanted, others, taken, (BESIDE, BESIDE + layout.ribbon))
    return tuple(
        replace(each, name_at=found[each.id][0], name_side=found[each.id][1])
        if each.id in found
        else replace(each, named=False)
        for each in lines
    )


def line_ends(line: Line, places: Mapping[str, Place]) -> tuple[Place, Place]:
    """Return where a link begins and ends, in pixels."""
    dx, dy = (each * line.shift for each in normal(places[line.a], places[line.b]))
    (x1, y1), (x2, y2) = places[line.a], places[line.b]
    return (x1 + dx, y1 + dy), (x2 + dx, y2 + dy)


def boxes_of(spot: Spot) -> Iterable[Box]:
    """Yield the rectangles that a node and its label take up."""
    reach = spot.label_away - LABEL_AWAY + 1.0
    yield Box(spot.x, spot.y, reach, reach)
    half = LETTER * len(spot.id)
    match spot.side:
        case "left":
            yield Box(spot.x - spot.label_away - half, spot.y, half, TALL / 2)
        case "right":
            yield Box(spot.x + spot.label_away + half, spot.y, half, TALL / 2)
        case "below":
            yield Box(spot.x, spot.y + spot.label_away + 3, half, TALL / 2)


def activity(
    drawn: Drawing, topology: Topology, frame: Frame | None, events: Iterable[Event]
) -> Activity:
    """Return the state of a network at the time of the sample `frame`, after `events`.

    If `frame` is None, there are no subflows.
    """
    known = Paths(topology)
    known.follow(events)
    frame = frame or {}
    colours = user_colours(topology.users)
    subflows = []
    for name, sample in frame.get("sf", {}).items():
        user, _ = network_paths.owner(name, sample)
        path = known.of(name, sample)
        if path:
            number = int(name.rpartition("/")[2]) if name.rpartition("/")[2].isdigit() else 1
            colour = subflow_colour(colours[user], number, drawn.by_subflow)
            style = subflow_style(number, sample.get("tier") or 1 if frame.get("ap") else None)
            backup, mbps = bool(sample.get("backup")), sample.get("mbps") or 0.0
            subflows.append(Subflow(name, user, path, style, colour, backup, mbps))
    return Activity(frame, tuple(subflows), frozenset(known.down), _moved(drawn.layout, frame))


def to_json(drawn: Drawing, topology: Topology) -> dict[str, Any]:
    """Return a drawing as a JSON object, with which scripts in the browser update the SVG."""
    layout = drawn.layout
    return {
        "name": drawn.name,
        "width": layout.width,
        "height": layout.height,
        "ribbon": layout.ribbon,
        "area": layout.area,
        "by_subflow": drawn.by_subflow,
        "full_mbps": drawn.full_mbps,
        "nodes": [asdict(each) for each in drawn.spots],
        "lines": [asdict(each) for each in drawn.lines],
        "server_of": {user: topology.server_of(user) for user in topology.users},
        "home_of": {node.id: node.home for node in topology.nodes if node.kind == "user"},
        "doors": network_paths.attached_switches(topology),
        "reach": network_paths.shortest_paths(topology),
    }


def _fastest_mbps(lines: Iterable[Line]) -> float:
    """Return the greatest rate of all links and stations, in Mb/s."""
    return max((each.rate_mbps for each in lines if each.rate_mbps), default=UNKNOWN_MBPS)


def _moved(layout: Layout, frame: Frame) -> dict[str, Place]:
    if layout.area is None:
        return {}
    left, top, side, side_m = layout.area
    return {
        user: on_map((sample["x_m"], sample["y_m"]), (left, top, side / side_m))
        for user, sample in frame.get("user", {}).items()
        if sample.get("x_m") is not None
    }


def is_crowded(layout: Layout, users: Sequence[str]) -> bool:
    """Return whether a map shows the number in each user's id instead of the user's name.

    This is so if there is too little space for the names. The numbers at the end of the ids must
    also differ; otherwise the names stay.
    """
    if layout.area is None or len(users) * LABEL_PX <= MOST_LABELLED * layout.area[2] ** 2:
        return False
    numbers = {user.lstrip(ascii_letters) for user in users}
    return len(numbers) == len(users) and all(each.isdigit() for each in numbers)


def _side(kind: str, layout: Layout, crowded: bool, is_close: bool) -> str:
    if crowded and kind == "user":
        return "inside"
    if layout.is_upright or layout.area is not None:
        return "below"
    return {"server": "left", "user": "right"}.get(kind, "right" if is_close else "below")


SIDES: tuple[Direction, Direction] = ("ab", "ba")


def _way_mbps(link: Link, rate_scale: float) -> float | None:
    return None if link.rate_bps is None else scenario_mbps(link.rate_bps, rate_scale)


def _lines(topology: Topology, rate_scale: float) -> Iterable[Line]:
    on_the_air = {
        frozenset((cell.ap, each.user)) for cell in topology.cells for each in cell.stations
    }
    parallel = Counter(frozenset((link.a, link.b)) for link in topology.links)
    down = down_directions(topology)
    interfaces = {
        (each.node, each.link): f"iface.{each.node}.{each.name.removeprefix(f'{each.node}-')}.up"
        for each in wire(topology).interfaces
    }
    drawn: Counter[frozenset[str]] = Counter()
    shaped = [link.id for link in topology.links if link.rate_bps is not None]
    colours = {} if topology.ids("wifi", "lte") else place_colours(shaped)
    for link in topology.links:
        ends = frozenset((link.a, link.b))
        rate, back = (_way_mbps(link.way(side), rate_scale) for side in SIDES)
        yield Line(
            link.id,
            link.a,
            link.b,
            ends in on_the_air,
            rate,
            ms_from_ns(link.delay_ns),
            fraction_from_ppm(max(link.loss_ppm, link.loss_back_ppm)),
            (drawn[ends] - (parallel[ends] - 1) / 2) * PARALLEL * (1 if link.a < link.b else -1),
            colours.get(link.id, -1),
            ends not in on_the_air and len(topology.links) <= MOST_NAMED,
            link.words,
            interfaces.get((link.a, link.id)) or interfaces.get((link.b, link.id), ""),
            back if back != rate else None,
            down.get(link.id, ""),
        )
        drawn[ends] += 1
    for cell in topology.cells:
        for each in cell.stations:
            if not parallel[frozenset((cell.ap, each.user))]:
                rate = scenario_mbps(each.rate_bps, rate_scale)
                delay_ms = ms_from_ns(cell.delay_ns + each.delay_ns)
                loss = fraction_from_ppm(cell.loss_ppm)
                own = interfaces.get((each.user, cell.ap), "")
                yield Line(
                    f"{cell.ap}~{each.user}",
                    cell.ap,
                    each.user,
                    True,
                    rate,
                    delay_ms,
                    loss,
                    interface=own,
                )
