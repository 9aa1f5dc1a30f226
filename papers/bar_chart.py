"""Bar charts as SVG, for pages of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee")  # Paul Tol's, for colour-blind
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 230, 50, 10, 44, 28
FILLED = 0.8  # share of the width of a group that its bars fill


@dataclass(frozen=True)
class Bars:
    """A bar chart with one group of bars for each of `groups`.

    `series` maps the name of a series to one value per group; each series has one bar in every
    group. `unit` is the unit of all values.
    """

    title: str
    unit: str
    groups: tuple[str, ...]
    series: Mapping[str, tuple[float, ...]]


def svg(charts: Sequence[Bars]) -> str:
    """Return an SVG document with all charts below each other, drawn with the same scale."""
    values = [value for each in charts for row in each.series.values() for value in row]
    bounds = min(0.0, *values), max(0.0, *values) or 1.0
    parts = [
        f'<g transform="translate(0 {n * HEIGHT})">{_chart(each, *bounds)}</g>'
        for n, each in enumerate(charts)
    ]
    size = f'width="{WIDTH}" height="{HEIGHT * len(charts)}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *parts, "</svg>\n"]
    )


def _chart(chart: Bars, least: float, most: float) -> str:
    drawn = [_text(LEFT, 16, f"{chart.title}, {chart.unit}", "start", "bold")]
    for n, name in enumerate(chart.series):
        x = LEFT + n * (WIDTH - LEFT) / len(chart.series)
        drawn.append(_rectangle(x, 24, 10, 10, n))
        drawn.append(_text(x + 14, 33, name, "start"))
    scale = (HEIGHT - BOTTOM - TOP) / (most - least)
    zero = TOP + most * scale
    for value in sorted({0.0, least, most / 2, most}):
        y = zero - value * scale
        drawn.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ccc"/>')
        drawn.append(_text(LEFT - 6, y + 4, f"{value:.3g}", "end"))
    group = (WIDTH - LEFT - RIGHT) / len(chart.groups)
    bar = FILLED * group / len(chart.series)
    for n, title in enumerate(chart.groups):
        drawn.append(_text(LEFT + (n + 0.5) * group, HEIGHT - 10, title, "middle"))
    for (s, values), n in product(enumerate(chart.series.values()), range(len(chart.groups))):
        x = LEFT + (n + (1 - FILLED) / 2) * group + s * bar
        high = values[n] * scale
        drawn.append(_rectangle(x, zero - max(0.0, high), bar, abs(high), s))
    return "\n".join(drawn)


def _rectangle(x: float, y: float, width: float, height: float, colour: int) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{COLOURS[colour % len(COLOURS)]}"/>'


def _text(x: float, y: float, text: str, anchor: str, weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {place}>{escape(text)}</text>"
