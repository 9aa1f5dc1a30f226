"""A network as SVG, for a page whose scripts update it, or as a separate file.

Colours are CSS variables of the page. A separate file has no such variables, so their fallback
values for a light background apply.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from string import ascii_letters

from dashboard.network.drawing import (
    BESIDE,
    RING,
    Activity,
    Drawing,
    Line,
    Spot,
    Subflow,
    line_ends,
)
from dashboard.network.layout import Place
from dashboard.network.names import beside, normal
from dashboard.palette import COLOURS
from lab.results.explain.links import FULL

# Subflows that share a link, as parallel lanes. `dashboard/static/network_lanes.js` does the same
# in the browser.


BETWEEN = 1.4  # pixels between two lanes
IDLE, WIDEST = 1.4, 8.0  # width of a subflow in pixels, without traffic and at full rate
Ends = tuple[str, str]  # of a link; the lesser name is first


@dataclass(frozen=True)
class Lanes:
    """The lanes of the subflows on each link, in pixels.

    `widths` maps a link to the width of all its lanes. `offsets` maps a link and a subflow to the
    distance of the lane from the middle of the link.
    """

    widths: Mapping[Ends, float]
    offsets: Mapping[tuple[Ends, str], float]


def width_of(mbps: float, full_mbps: float) -> float:
    """Return the width of a subflow. It grows with the root of the rate, so that a tenth of
    `full_mbps` can be told from nothing."""
    return IDLE + (WIDEST - IDLE) * sqrt(min(1.0, max(0.0, mbps) / full_mbps))


def lanes(paths: Mapping[str, Sequence[str]], widths: Mapping[str, float], ribbon: float) -> Lanes:
    """Return the lanes of subflows: those on the same link are side by side, in the order of
    `paths`.

    `paths` maps each subflow to the nodes on its path, `widths` to its width. All lanes of a link
    fit into `ribbon` pixels; if they are wider, they overlap.
    """
    sharing: dict[Ends, list[str]] = {}
    for name, path in paths.items():
        for a, b in itertools.pairwise(path):
            sharing.setdefault((min(a, b), max(a, b)), []).append(name)
    totals: dict[Ends, float] = {}
    offsets: dict[tuple[Ends, str], float] = {}
    for ends, names in sharing.items():
        total = sum(widths[name] for name in names) + BETWEEN * (len(names) - 1)
        squeeze = min(1.0, ribbon / total)
        totals[ends], begin = total * squeeze, -total / 2
        for name in names:
            offsets[ends, name] = (begin + widths[name] / 2) * squeeze
            begin += widths[name] + BETWEEN
    return Lanes(totals, offsets)


def polylines(
    paths: Mapping[str, Sequence[str]], places: Mapping[str, Place], where: Lanes
) -> dict[str, list[Place]]:
    """Return the points of the line of each subflow, in its lane on every link of its path."""
    found: dict[str, list[Place]] = {}
    for name, path in paths.items():
        points: list[Place] = []
        for a, b in itertools.pairwise(path):
            ends = (min(a, b), max(a, b))
            offset = where.offsets[ends, name]
            dx, dy = normal(places[ends[0]], places[ends[1]])
            points += [
                (round(places[each][0] + dx * offset, 1), round(places[each][1] + dy * offset, 1))
                for each in (a, b)
            ]
        found[name] = points
    return found


FIGURES_BELOW = 13.0  # pixels
THIN = 3.0  # width of a link without subflows
GLYPHS = {  # in a square from -8 to 8
    "user": "M-4,-7h8a1,1 0 0 1 1,1v12a1,1 0 0 1 -1,1h-8a1,1 0 0 1-1,-1v-12a1,1 0 0 1 1,-1zm3,12h2",
    "server": "M-6,-6h12v5h-12zM-6,1h12v5h-12zM-4,-3.5h.5M-4,3.5h.5",
    "switch": "M-6,-3h11l-3,-3M6,3h-11l3,3",
    "wifi": "M-7,-2a10,10 0 0 1 14,0M-4.4,1a6.2,6.2 0 0 1 8.8,0M-1.8,4a2.6,2.6 0 0 1 3.6,0M0,6h.1",
    "lte": "M0,-3l-4,10M0,-3l4,10M-2.6,3.5h5.2M-4,-7a5,5 0 0 0 0,6M4,-7a5,5 0 0 1 0,6M0,-4h.1",
}
KINDS = {
    "user": "user",
    "server": "server",
    "switch": "switch",
    "wifi": "WiFi access point",
    "lte": "LTE base station",
}
STYLE = """
.net{font:500 12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.net *{vector-effect:none}
.net .cable{stroke:var(--net-link,#ccd5dd);stroke-linecap:round;fill:none}
.net .full .cable{stroke:var(--net-full,#f0c27a)}
.net .air .cable{stroke-dasharray:1 5;stroke-width:2px}
.net .down .cable{stroke:var(--bad,#b3261e);stroke-width:2.5px;stroke-dasharray:7 7}
.net .cross{stroke:var(--bad,#b3261e);stroke-width:3px;stroke-linecap:round;display:none}
.net .down .cross{display:inline}
.net .grip{stroke:#000;stroke-opacity:0;stroke-width:16px;fill:none;pointer-events:stroke}
.net .subflow{fill:none;stroke-linejoin:round;stroke-linecap:butt}
.net .subflow.idle{opacity:.3}
.net .d2{stroke-dasharray:9 6}
.net .d3{stroke-dasharray:9 5 2 5}
.net .d4{stroke-dasharray:16 6}
.net .d5{stroke-dasharray:16 5 2 5}
.net .subflow.backup{stroke-dasharray:.5 6;stroke-width:2.6px;stroke-linecap:round}
.net .body{fill:var(--card,#fff);stroke:var(--net-node,#5b6670);stroke-width:1.8px}
.net .glyph{fill:none;stroke:var(--ink,#17212b);stroke-width:1.5px;stroke-linecap:round}
.net .glyph{stroke-linejoin:round}
.net .track,.net .ring{fill:none;stroke-width:4px}
.net .track{stroke:var(--net-link,#ccd5dd)}
.net .ring{stroke:var(--good,#00704f)}
.net .hot .ring{stroke:var(--flip,#b24800)}
.net text{fill:var(--ink,#17212b);paint-order:stroke;stroke:var(--card,#fff);stroke-width:3px}
.net text{stroke-linejoin:round}
.net .figures{font-size:11px;display:none;text-anchor:middle}
.net.labelled .figures,.net .item:hover .figures,.net .item:focus .figures,
.net .item.chosen .figures{display:inline}
@media print{.net .figures{display:inline}}
.net :is(.name,.note){font-size:11px;text-anchor:middle}
.net .names{pointer-events:none}
.net:not(.labelled):has(.field) .names{display:none}
.net .field{fill:var(--net-field,#f1f4f7);stroke:var(--line,#dbe1e7)}
.net.choosing .item:not(.chosen):not(.related){opacity:.28}
.net .item{cursor:pointer;outline:none}
.net .spot{pointer-events:bounding-box}
.net .item:focus-visible .body,.net .item.chosen .body{stroke:var(--accent,#0072b2)}
.net .item:focus-visible .body,.net .item.chosen .body{stroke-width:4px}
.net .item:focus-visible .grip{stroke:var(--accent,#0072b2);stroke-opacity:.45}
.net .item.chosen .grip{stroke:var(--accent,#0072b2);stroke-opacity:.3}
.net .subflow.chosen{filter:drop-shadow(0 0 2px var(--accent,#0072b2))}
"""


def svg(drawn: Drawing, now: Activity | None = None, title: str = "") -> str:
    """Return the drawing of a network as SVG.

    `now` adds the state of a run: subflows, loads, MAC occupancy and moved users. If it is None,
    the network is idle. If there is a `title`, the SVG is a complete file with a white background
    and the figures of all links.
    """
    width, height = drawn.layout.width, drawn.layout.height
    places = {spot.id: (spot.x, spot.y) for spot in drawn.spots} | dict(now.moved if now else {})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="net{" labelled" if title else ""}" '
        f'role="group" '
        f'aria-label="Network {escape(drawn.name)}" viewBox="0 0 {width:g} {height:g}"'
        + (f' width="{width:g}" height="{height:g}">' if title else ">"),
        f"<style>{STYLE}{_palette()}</style>",
    ]
    if title:
        parts.append(f"<title>{escape(title)}</title>")
        parts.append(f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>')
    if drawn.layout.area:
        left, top, side, _ = drawn.layout.area
        parts.append(
            f'<rect class="field" x="{left}" y="{top}" width="{side}" height="{side}" rx="6"/>'
        )
    parts.append('<g class="lines">')
    subflows = now.subflows if now else ()
    widths = {each.id: width_of(each.mbps, drawn.full_mbps) for each in subflows}
    where = lanes({each.id: each.path for each in subflows}, widths, drawn.layout.ribbon)
    parts += [_line(each, places, where, now) for each in drawn.lines]
    parts.append('</g><g class="subflows">')
    parts += _subflows(subflows, places, widths, where)
    parts.append('</g><g class="names">')
    crossing = connections(now)
    parts += [
        _name(each, places, where, now, crossing[frozenset((each.a, each.b))])
        for each in drawn.lines
        if each.named
    ]
    parts.append('</g><g class="nodes">')
    parts += [_spot(each, places[each.id], now) for each in drawn.spots]
    parts.append("</g>")
    if inside := next((spot for spot in drawn.spots if spot.side == "inside"), None):
        number = escape(inside.id.lstrip(ascii_letters))
        text = f"A number is a user: {number} is {escape(inside.id)}"
        parts.append(f'<text class="note" x="{width / 2:g}" y="{height - 6:g}">{text}</text>')
    return "".join([*parts, "</svg>"])


def load(line: Line, now: Activity | None) -> float:
    """Return the load of a link, from 0 to 1. It is 0 if it was not measured.

    The rate in the busier direction counts.
    """
    sample = _sample(now, "link", line.id)
    if line.rate_back_mbps is None:
        pairs = [(sample.get("mbps"), line.rate_mbps)]
    else:
        pairs = [
            (sample.get("mbps_ab"), line.rate_mbps),
            (sample.get("mbps_ba"), line.rate_back_mbps),
        ]
    return max(min(1.0, mbps / rate) if mbps and rate else 0.0 for mbps, rate in pairs)


def link_text(line: Line, sample: Mapping[str, float | None]) -> str:
    """Return rate and loss of a link as text, such as "4.7 of 5 Mb/s, 1 % lost".

    `sample` has the measured values of the link. If `sample` has no rate, the text has the
    configured rate and loss.
    """
    mbps, loss = sample.get("mbps"), sample.get("loss")
    back = "" if line.rate_back_mbps is None else f" and {line.rate_back_mbps:.3g}"
    rate = "" if line.rate_mbps is None else f"{line.rate_mbps:.3g}{back} Mb/s"
    if mbps is None:
        text, loss = rate, line.loss
    else:
        text = f"{mbps:.1f} of {rate}" if rate else f"{mbps:.1f} Mb/s"
    lost = f"{100 * loss:.2g} % lost" if loss else ""
    return ", ".join(part for part in (text, lost) if part)


def connections(now: Activity | None) -> Counter[frozenset[str]]:
    """Return the number of connections that cross each link. The key of a link is the set of its
    two ends."""
    known = {
        (frozenset(ends), each.id.rpartition("/")[0])
        for each in (now.subflows if now else ())
        for ends in itertools.pairwise(each.path)
    }
    return Counter(ends for ends, _ in known)


def name_text(line: Line, full: float, crossing: int) -> str:
    """Return the name of a link. If the link is full and several connections share it, add their
    number.

    `full` is the load of the link, from 0 to 1. `crossing` is the number of connections.
    """
    return f"{line.id}: {crossing} share it" if full >= FULL and crossing > 1 else line.id


def _palette() -> str:
    rules = (
        f".net .c{n}{{stroke:var(--c{n},{each})}}.net text .f{n}{{fill:var(--c{n},{each})}}"
        for n, each in enumerate(COLOURS)
    )
    return "".join(rules)


def _sample(now: Activity | None, kind: str, name: str) -> Mapping[str, float | None]:
    found: Mapping[str, float | None] = now.frame.get(kind, {}).get(name, {}) if now else {}
    return found


def _name(
    line: Line, places: Mapping[str, Place], where: Lanes, now: Activity | None, crossing: int
) -> str:
    (x1, y1), (x2, y2) = line_ends(line, places)
    text = name_text(line, load(line, now), crossing)
    left, above = beside((x1, y1), (x2, y2), _width(line, where), len(text), line.name_side)
    x, y = x1 + line.name_at * (x2 - x1) + left, y1 + line.name_at * (y2 - y1) + above
    swatch = f'<tspan class="f{line.colour}">■ </tspan>' if line.colour >= 0 else ""
    return (
        f'<text class="name" data-link="{escape(line.id)}" x="{x:.1f}" y="{y:.1f}">{swatch}'
        f"<tspan>{escape(text)}</tspan></text>"
    )


def _width(line: Line, where: Lanes) -> float:
    return where.widths.get((min(line.a, line.b), max(line.a, line.b)), 0.0) + BESIDE


def _line(line: Line, places: Mapping[str, Place], where: Lanes, now: Activity | None) -> str:
    (x1, y1), (x2, y2) = line_ends(line, places)
    full = load(line, now)
    down = now is not None and line.id in now.down
    names = ["item", "line", *(["air"] if line.air else []), *(["down"] if down else [])]
    names += ["full"] if full >= FULL else []
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    text = link_text(line, _sample(now, "link", line.id))
    place = line.words or f"from {line.a} to {line.b}"
    label = escape(f"link {line.id} {place}: {'down' if down else text}")
    return (
        f'<g class="{" ".join(names)}" data-kind="link" data-id="{escape(line.id)}" '
        f'role="button" tabindex="-1" aria-label="{label}">'
        f'<line class="cable" stroke-width="{max(THIN, _width(line, where)):.1f}" {ends}/>'
        f'<line class="grip" {ends}/>'
        f'<path class="cross" d="M-6,-6L6,6M-6,6L6,-6" transform="translate({x:g},{y:g})"/>'
        f'<text class="figures" x="{x:g}" y="{y + FIGURES_BELOW:g}">{escape(text)}</text></g>'
    )


def _subflows(
    subflows: Iterable[Subflow],
    places: Mapping[str, Place],
    widths: Mapping[str, float],
    where: Lanes,
) -> Iterable[str]:
    lines = polylines({each.id: each.path for each in subflows}, places, where)
    for each in subflows:
        points = " ".join(f"{x:g},{y:g}" for x, y in lines[each.id])
        names = f"item subflow c{each.colour} d{each.style}"
        names += " backup" if each.backup else ""
        names += " idle" if each.mbps < 0.005 else ""
        state = "backup, " if each.backup else ""
        label = escape(f"subflow {each.id} of {each.user}: {state}{each.mbps:.2g} Mb/s")
        yield (
            f'<polyline class="{names}" data-kind="sf" data-id="{escape(each.id)}" role="button" '
            f'tabindex="-1" aria-label="{label}" stroke-width="{widths[each.id]:.1f}" '
            f'points="{points}"/>'
        )


def _spot(spot: Spot, place: Place, now: Activity | None) -> str:
    radius = spot.radius
    kind = "ap" if spot.kind in ("wifi", "lte") else "user" if spot.kind == "user" else "node"
    occupancy = _sample(now, "ap", spot.id).get("mac_occupancy") if kind == "ap" else None
    ring = ""
    if kind == "ap":
        around = f'r="{radius + RING:g}" pathLength="100"'
        fill = 100 * min(1.0, occupancy or 0.0)
        ring = (
            f'<circle class="track" {around}/><circle class="ring" {around} '
            f'stroke-dasharray="{fill:.0f} 200" transform="rotate(-90)"/>'
        )
    colour = f" c{spot.colour}" if spot.colour >= 0 else ""
    names = "item spot" + (" hot" if (occupancy or 0) >= 0.85 else "")
    size = 11 if radius < 12 else 12
    glyph = f'<path class="glyph" d="{GLYPHS[spot.kind]}" transform="scale({radius / 13:.2f})"/>'
    label = escape(spot.id)
    if spot.side == "inside":
        glyph, size, label = "", 9, escape(spot.id.lstrip(ascii_letters))
    return (
        f'<g class="{names}" data-kind="{kind}" data-id="{escape(spot.id)}" role="button" '
        f'tabindex="-1" aria-label="{escape(f"{KINDS[spot.kind]} {spot.id}")}" '
        f'transform="translate({place[0]:g},{place[1]:g})">{ring}'
        f'<circle class="body{colour}" r="{radius:g}"/>'
        f'{glyph}<text {_label(spot)} font-size="{size}">{label}</text></g>'
    )


def _label(spot: Spot) -> str:
    beside = spot.label_away
    match spot.side:
        case "left":
            return f'x="{-beside:g}" y="4" text-anchor="end"'
        case "inside":
            return 'y="3.2" text-anchor="middle"'
        case "right":
            return f'x="{beside:g}" y="4" text-anchor="start"'
    return f'y="{beside + 7:g}" text-anchor="middle"'
