"""Charts: rows in, Plotly figures out. Pure: no Flask, no files, no clock.

Every line names where its numbers come from in a frame (`meta.key`), so that the page appends new frames by itself, and its
place in the palette (`meta.colour`), so that it can change with the theme. Colours alone never tell lines apart: dashes do too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

POINTS = 600
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#F0E442")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MAX_SUBFLOWS = 24  # more lines than that tell nobody anything
Frame = dict[str, Any]
Figure = dict[str, Any]
Key = tuple[str, ...]


@dataclass(frozen=True)
class About:
    """What a run's charts need to know beside its frames. `threshold`: (t, occupancy) from which on it counts as congested."""

    duration_s: float = 60.0
    aps: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    threshold: tuple[tuple[float, float | None], ...] = ()


@dataclass(frozen=True)
class Line:
    """One line of a chart. `row` 1 is the upper part."""

    name: str
    key: Key
    colour: int
    dash: str = "solid"
    row: int = 1
    step: bool = False


@dataclass(frozen=True)
class Chart:
    """What is drawn: title, the axes' titles from top to bottom, and lines."""

    name: str
    title: str
    axes: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    top: float | None = None  # of the upper axis
    explains: str = ""


def charts(frames: Sequence[Frame], about: About) -> list[Chart]:
    """The charts of a run; those without any line are left out."""
    last = frames[-1] if frames else {}
    aps = about.aps or tuple(last.get("ap", {}))
    links = about.links or tuple(last.get("link", {}))
    found = [_tiers(aps), _congestion(aps)] if aps else [_links(links), _queues(links)]
    return [
        each
        for each in (*found, _users(about.users or tuple(last.get("user", {}))), _subflows(frames))
        if each.lines
    ]


def figures(frames: Sequence[Frame], about: About, points: int = POINTS) -> list[Figure]:
    """[{"name", "title", "explains", "figure"}] with at most `points` points a line."""
    return [
        {
            "name": chart.name,
            "title": chart.title,
            "explains": chart.explains,
            "figure": _figure(chart, frames, about, points),
        }
        for chart in charts(frames, about)
    ]


def overlay(runs: Sequence[tuple[str, Sequence[Frame]]], points: int = POINTS) -> list[Figure]:
    """Up to six runs on the same axes: one chart per quantity, one colour and dash per run."""
    found = []
    for name, title, unit, key in _quantities(
        [frame for _, frames in runs for frame in frames[-1:]]
    ):
        chart = Chart(name, title, (unit,))
        traces = []
        for n, (label, frames) in enumerate(runs):
            line = Line(label, key, n, DASHES[n % len(DASHES)])
            traces.append(_trace(line, frames, points))
        if any(any(y is not None for y in trace.y or ()) for trace in traces):
            longest = max((frames[-1]["t"] for _, frames in runs if frames), default=0)
            found.append(
                {
                    "name": name,
                    "title": title,
                    "explains": "",
                    "figure": _plain(traces, _layout(chart, longest)),
                }
            )
    return found


def series(frames: Sequence[Frame], key: Key) -> tuple[list[float], list[float | None]]:
    """Times and values of one quantity; None where it was not measured. `*` at the second place sums over all."""
    return [frame["t"] for frame in frames], [_value(frame, key) for frame in frames]


def thin(
    xs: Sequence[float], ys: Sequence[float | None], points: int
) -> tuple[list[float], list[float | None]]:
    """At most `points` points that keep every peak: the least and the greatest of each of `points / 2` buckets."""
    if len(xs) <= points:
        return list(xs), list(ys)
    buckets = max(1, points // 2)
    keep: list[int] = []
    for n in range(buckets):
        inside = range(n * len(xs) // buckets, (n + 1) * len(xs) // buckets)
        known = [i for i in inside if ys[i] is not None]
        chosen = (
            {min(known, key=lambda i: ys[i] or 0), max(known, key=lambda i: ys[i] or 0)}
            if known
            else {inside[0]}
        )
        keep += sorted(chosen)
    return [xs[i] for i in keep], [ys[i] for i in keep]


def _tiers(aps: Iterable[str]) -> Chart:
    lines = []
    for n, ap in enumerate(aps):
        lines.append(Line(f"{ap} Tier 1", ("ap", ap, "tier1_mbps"), n))
        lines.append(Line(f"{ap} Tier 2", ("ap", ap, "tier2_mbps"), n, "dash"))
    text = "Goodput per access point. Solid: each user's first connection (Tier 1). Dashed: the additional ones (Tier 2)."
    return Chart("tiers", "Throughput by tier", ("Mb/s",), lines, explains=text)


def _congestion(aps: Iterable[str]) -> Chart:
    lines = []
    for n, ap in enumerate(aps):
        lines.append(Line(ap, ("ap", ap, "mac_occupancy"), n))
        lines.append(Line(ap, ("ap", ap, "meter_mbps"), n, "dash", row=2, step=True))
    text = "Above: how full each access point's queue is (1 is saturated). Below: the limit on all of its Tier 2; no line, no limit."
    return Chart(
        "congestion",
        "MAC occupancy and Tier-2 limit",
        ("occupancy", "limit Mb/s"),
        lines,
        1.05,
        text,
    )


def _links(links: Iterable[str]) -> Chart:
    lines = [
        Line(link, ("link", link, "mbps"), n, DASHES[n % len(DASHES)])
        for n, link in enumerate(links)
    ]
    return Chart(
        "links", "Throughput per link", ("Mb/s",), lines, explains="What each link carried."
    )


def _queues(links: Iterable[str]) -> Chart:
    lines = []
    for n, link in enumerate(links):
        lines.append(Line(link, ("link", link, "backlog"), n, DASHES[n % len(DASHES)]))
        lines.append(Line(link, ("link", link, "loss"), n, DASHES[n % len(DASHES)], row=2))
    text = "Above: packets waiting in front of each link. Below: the share of packets it lost."
    return Chart("queues", "Queues and loss", ("packets", "loss"), lines, explains=text)


def _users(users: Iterable[str]) -> Chart:
    lines = [
        Line(user, ("user", user, "mbps"), n, DASHES[n % len(DASHES)])
        for n, user in enumerate(users)
    ]
    return Chart(
        "users",
        "Throughput per user",
        ("Mb/s",),
        lines,
        explains="Goodput at the receiver, over all of a user's paths.",
    )


def _subflows(frames: Sequence[Frame]) -> Chart:
    seen: dict[str, Frame] = {}
    for frame in frames:
        seen |= frame.get("sf", {})
    lines = []
    owners = list(dict.fromkeys(_owner(name, subflow) for name, subflow in seen.items()))
    for name, subflow in list(seen.items())[:MAX_SUBFLOWS]:
        n, dash = owners.index(_owner(name, subflow)), DASHES[(_number(name) - 1) % len(DASHES)]
        label = " ".join(
            str(each)
            for each in (subflow.get("user"), subflow.get("ap") or f"subflow {_number(name)}")
            if each
        )
        label = label if subflow.get("user") else name
        lines.append(Line(label, ("sf", name, "rtt_ms"), n, dash))
        lines.append(Line(label, ("sf", name, "cwnd"), n, dash, row=2))
    text = "Above: smoothed round-trip time. Below: congestion window. One colour per user, one dash per subflow."
    return Chart(
        "subflows",
        "Subflows: RTT and congestion window",
        ("RTT ms", "cwnd packets"),
        lines,
        explains=text,
    )


def _owner(name: str, subflow: Frame) -> str:
    return str(subflow.get("user") or name.rpartition("/")[0])


def _number(name: str) -> int:
    last = name.rpartition("/")[2]
    return max(1, int(last)) if last.isdigit() else 1


def _quantities(last: Sequence[Frame]) -> list[tuple[str, str, str, Key]]:
    """Name, title, unit and key of everything that runs can be compared by."""
    found: list[tuple[str, str, str, Key]] = [
        ("total", "Total throughput", "Mb/s", ("user", "*", "mbps"))
    ]
    for ap in dict.fromkeys(ap for frame in last for ap in frame.get("ap", {})):
        for key, title, unit in (
            ("tier1_mbps", "Tier 1", "Mb/s"),
            ("tier2_mbps", "Tier 2", "Mb/s"),
            ("mac_occupancy", "MAC occupancy", "occupancy"),
            ("meter_mbps", "Tier-2 limit", "Mb/s"),
        ):
            found.append((f"{ap}-{key}", f"{ap}: {title}", unit, ("ap", ap, key)))
    for user in dict.fromkeys(user for frame in last for user in frame.get("user", {})):
        found.append((f"user-{user}", f"{user}: throughput", "Mb/s", ("user", user, "mbps")))
    return found


def _value(frame: Frame, key: Key) -> float | None:
    if key[1] == "*":
        values = [each.get(key[2]) for each in frame.get(key[0], {}).values()]
        known = [value for value in values if value is not None]
        return float(sum(known)) if known else None
    value = frame.get(key[0], {}).get(key[1], {}).get(key[2])
    return None if value is None else float(value)


def _trace(line: Line, frames: Sequence[Frame], points: int) -> go.Scatter:
    xs, ys = thin(*series(frames, line.key), points)
    axis = "" if line.row == 1 else str(line.row)
    return go.Scatter(
        x=xs,
        y=ys,
        name=line.name,
        mode="lines",
        line={
            "color": OKABE_ITO[line.colour % len(OKABE_ITO)],
            "dash": line.dash,
            "width": 2 if line.dash == "solid" else 2.2,
            "shape": "hv" if line.step else "linear",
        },
        yaxis=f"y{axis}",
        xaxis="x",
        showlegend=line.row == 1,
        meta={"key": list(line.key), "colour": line.colour % len(OKABE_ITO)},
        hovertemplate="%{y:.3g}",
    )


def _figure(chart: Chart, frames: Sequence[Frame], about: About, points: int) -> Figure:
    traces = [_trace(line, frames, points) for line in chart.lines]
    if chart.name == "congestion" and about.threshold:
        traces.append(_threshold(about))
    return _plain(traces, _layout(chart, about.duration_s))


def _threshold(about: About) -> go.Scatter:
    steps = [*about.threshold, (about.duration_s, about.threshold[-1][1])]
    return go.Scatter(
        x=[t for t, _ in steps],
        y=[level for _, level in steps],
        name="congested from",
        mode="lines",
        line={"color": "#767676", "dash": "dot", "width": 1.5, "shape": "hv"},
        meta={"key": [], "colour": -1},
        hoverinfo="skip",
    )


def _layout(chart: Chart, duration_s: float) -> go.Layout:
    rows = len(chart.axes)
    layout = go.Layout(
        template=go.layout.Template(),
        uirevision="fixed",
        hovermode=False,
        dragmode="zoom",
        margin={"l": 52, "r": 14, "t": 26, "b": 36},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "xanchor": "left",
            "font": {"size": 12},
        },
        showlegend=True,
        font={"size": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={
            "title": {"text": "s", "standoff": 4},
            "range": [0, duration_s],
            "anchor": f"y{rows}" if rows > 1 else "y",
        },
        yaxis={
            "title": {"text": chart.axes[0]},
            "rangemode": "tozero",
            "domain": [0.56, 1] if rows > 1 else [0, 1],
        },
    )
    if chart.top:
        layout.yaxis.range = [0, chart.top]
    if rows > 1:
        layout.yaxis2 = {
            "title": {"text": chart.axes[1]},
            "rangemode": "tozero",
            "domain": [0, 0.44],
            "anchor": "x",
        }
    return layout


def _plain(traces: Sequence[Any], layout: go.Layout) -> Figure:
    """The figure as plain data, without Plotly's own theme."""
    figure: Figure = go.Figure(data=list(traces), layout=layout).to_plotly_json()
    figure["layout"].pop("template", None)
    for axis in ("xaxis", "yaxis", "yaxis2"):
        if axis in figure["layout"]:
            figure["layout"][axis] |= {"zeroline": False, "automargin": False}
    for trace in figure["data"]:
        trace["x"], trace["y"] = list(trace["x"]), list(trace["y"])
    return figure
