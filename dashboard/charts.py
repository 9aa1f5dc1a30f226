"""The choice of charts for a run, and of the lines in each chart. No file is read here.

In this file, a frame is one sample of a run, which is a line of samples.jsonl. Colours are indices
into the palette, so that they can change with the theme. On the page of a run, each user, access
point or link has its own colour, and subflows of Tier 2 have broken lines. When runs are
compared, each run has its own colour and dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from dashboard.palette import (
    COLOURS,
    USERS,
    place_colours,
    subflow_colour,
    subflow_dash,
    subflow_style,
    user_colours,
)
from dashboard.traced_rates import TracedRate
from lab import metrics
from lab.metrics import BUILT_IN, SUM, Metric
from lab.results.labels import natural
from lab.run import felt

POINTS = 600  # of a line, at most
RUN_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
DASHED = {False: "solid", True: "dash"}
HELD_BACK = "held_back_kb"  # a field of a user's sample, missing if it was not measured
Frame = dict[str, Any]  # a line of samples.jsonl
Key = tuple[str, ...]
Figure = dict[str, Any]  # Plotly's JSON


@dataclass(frozen=True)
class About:
    """Facts about a run that its charts need in addition to its samples.

    `multipath` are the users with several paths. `ends` maps each link to its two end nodes. `own`
    are the metrics that the user has added. `threshold` is the MAC occupancy from which an access
    point counts as congested, as pairs (t in s, value). Each value holds until the time of the next
    pair. The value None means that there is no threshold. `traced` are the lines of traces.
    `noticing` has the users whose samples say what they notice, by field (`lab.run.felt`).
    """

    duration_s: float = 60.0
    aps: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    multipath: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    threshold: tuple[tuple[float, float | None], ...] = ()
    own: tuple[Metric, ...] = ()
    traced: tuple[TracedRate, ...] = ()
    noticing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    `key` has the nested keys that lead to the value in a sample. `colour` is an index into the
    palette. `row` is 1 for the upper part of the chart and 2 for the lower part. A line with `step`
    is drawn as a staircase. If not `drawn`, the line appears only in the table of the chart.
    """

    name: str
    key: Key
    colour: int
    dash: str = "solid"
    row: int = 1
    step: bool = False
    drawn: bool = True


@dataclass(frozen=True)
class Chart:
    """A chart without data.

    `axes` are the titles of the vertical axes, from top to bottom. `top` is the largest value on
    the upper axis; None lets Plotly choose. `explains` is the text shown with the chart.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    top: float | None = None
    explains: str = ""


def of_run(frames: Sequence[Frame], about: About) -> list[Chart]:
    """Return the charts of a run. Charts without lines are left out.

    `lab.metrics` declares which quantity is drawn in which chart. The lab's own quantities of links
    are drawn only if the network has no access points.
    """
    of = _Owners.of(frames, about)
    shown = [each for each in BUILT_IN if not (each.of == "link" and of.names["ap"])]
    drawn: dict[metrics.Chart, list[Metric]] = {}
    for metric in (*shown, *about.own):
        if metric.drawn:
            drawn.setdefault(metric.drawn.chart, []).append(metric)
    charts = (_chart(chart, several, of, frames) for chart, several in drawn.items())
    return [chart for chart in charts if chart.lines]


@dataclass(frozen=True)
class _Owners:
    """The users, access points, links and subflows of a run for which lines are drawn.

    `names` maps each kind, such as "user", to the ids and their colours. `latest` has the latest
    sample of each subflow.
    """

    names: Mapping[str, Mapping[str, int]]
    latest: Mapping[str, Frame]
    about: About
    one_user: bool

    @classmethod
    def of(cls, frames: Sequence[Frame], about: About) -> _Owners:
        last = frames[-1] if frames else {}
        latest: dict[str, Frame] = {}
        for frame in frames:
            latest |= frame.get("sf", {})
        colours = user_colours({_owner(name, subflow) for name, subflow in latest.items()})
        subflows = {
            name: subflow_colour(
                colours[_owner(name, latest[name])], _number(name), len(colours) == 1
            )
            for name in sorted(latest, key=natural)
        }
        names: dict[str, Mapping[str, int]] = {
            "ap": place_colours(about.aps or tuple(last.get("ap", {}))),
            "link": place_colours(about.links or tuple(last.get("link", {}))),
            "user": user_colours(about.users or tuple(last.get("user", {}))),
            "sf": subflows,
            "run": {"": 0},
        }
        return cls(names, latest, about, len(colours) == 1)

    def having(self, name: str) -> Sequence[str]:
        """Return the users who have a quantity that not all have."""
        return self.about.multipath if name == HELD_BACK else self.about.noticing.get(name, ())

    def dash(self, subflow: str) -> str:
        tier = self.latest[subflow].get("tier") or 1 if self.names["ap"] else None
        return subflow_dash(subflow_style(_number(subflow), tier))

    def label(self, metric: Metric, owner: str) -> str:
        assert metric.drawn
        if metric.of == "run":
            return metric.label
        if metric.of == "sf":
            return _subflow_label(owner, self.latest[owner])
        if metric.drawn.table_only:
            a, b = self.about.ends.get(owner, ("a", "b"))
            return f"{owner}, {a} to {b}" if metric.name == "mbps_ab" else f"{owner}, {b} to {a}"
        return owner + metric.drawn.suffix


def _chart(
    declared: metrics.Chart, several: Sequence[Metric], of: _Owners, frames: Sequence[Frame]
) -> Chart:
    last, lines = (frames[-1] if frames else {}), []
    for owner, colour in of.names[several[0].of].items():
        if declared in metrics.OF_SOME and owner not in of.having(several[0].name):
            continue
        for metric in several:
            how = metric.drawn
            assert how
            key = _key(metric, owner)
            if how.table_only and value(last, key) is None:
                continue  # older runs have one rate for a link
            dash = of.dash(owner) if metric.of == "sf" else DASHED[how.dashed]
            label = of.label(metric, owner)
            drawn = not how.table_only
            lines.append(Line(label, key, colour, dash, how.row, how.step, drawn))
    text = declared.explains
    if declared is metrics.HELD and frames and not any(map(_holds, frames)):
        text += " This run did not measure it."
    if declared is metrics.SUBFLOWS:
        solid = "Tier 1 is solid, Tier 2 is broken, by the tiers at the end of the line"
        if not of.names["ap"]:
            solid = "The first subflow of a connection is solid, additional ones are broken"
        owner = "subflow" if of.one_user else "user"
        text += f" Each {owner} has a colour. {solid}, as in the drawing."
    return Chart(declared.name, declared.title, declared.axes, lines, declared.top, text)


def _key(metric: Metric, owner: str) -> Key:
    return (metric.of, metric.name) if metric.of == "run" else (metric.of, owner, metric.name)


def value(frame: Frame, key: Key) -> Any:
    """Return the value at nested keys in a sample. Return None if the sample has no such value."""
    found: Any = frame
    for part in key:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _holds(frame: Frame) -> bool:
    return any(HELD_BACK in user for user in frame.get("user", {}).values())


def of_comparison(
    labels: Sequence[str], last: Sequence[Frame], own: Sequence[Metric] = ()
) -> list[Chart]:
    """Return the charts that compare runs: one chart for each quantity, one line for each run.

    `labels` are the names of the runs in the charts. `last` has the last sample of each run. `own`
    are the metrics that the user has added.
    """
    return [
        Chart(
            name,
            title,
            (unit,),
            [
                Line(label, key, n % len(USERS), RUN_DASHES[n % len(RUN_DASHES)])
                for n, label in enumerate(labels)
            ],
        )
        for name, title, unit, key in _figures(last, own)
    ]


def _figures(last: Sequence[Frame], own: Sequence[Metric]) -> Iterator[tuple[str, str, str, Key]]:
    """Yield name, title, unit and key of each quantity by which runs can be compared."""
    yield "total", "Total throughput", metrics.RATE, ("user", "*", "mbps")
    drawn = [each for each in BUILT_IN if each.drawn]
    yield from _of_each([each for each in drawn if each.of == "ap"], last)
    yield "held", "Data held back by reordering", "kB", ("user", "*", HELD_BACK)
    yield from _of_each([each for each in drawn if each.name in felt.FIELDS], last)
    users = user_colours({user for frame in last for user in frame.get("user", {})})
    for user in users:
        yield f"user-{user}", f"{user}: throughput", metrics.RATE, ("user", user, "mbps")
    yield from _of_each(own, last)


def _of_each(
    several: Sequence[Metric], last: Sequence[Frame]
) -> Iterator[tuple[str, str, str, Key]]:
    for of in dict.fromkeys(each.of for each in several):
        names = dict.fromkeys(name for frame in last for name in frame.get(of, {}))
        for owner in ("",) if of == "run" else names:
            for each in several:
                if each.of == of:
                    title = f"{owner}: {each.label}" if owner else each.label
                    name = f"{owner}-{each.name}" if owner else each.name
                    yield name, title, each.unit or each.label, _key(each, owner)


def _subflow_label(name: str, subflow: Frame) -> str:
    user = subflow.get("user")
    return f"{user} {subflow.get('ap') or f'subflow {_number(name)}'}" if user else name


def _owner(name: str, subflow: Frame) -> str:
    connection = name.rpartition("/")[0]
    user, dash, number = connection.rpartition("-")
    return str(subflow.get("user") or (user if dash and number.isdigit() else connection))


def _number(name: str) -> int:
    last = name.rpartition("/")[2]
    return max(1, int(last)) if last.isdigit() else 1


# Plotly figures: the JSON from which plotly.js draws in the browser. In `meta` each line has its
# `key` and `colour` for the scripts of the page. A line without a key gets no samples.


def figures(frames: Sequence[Frame], about: About, points: int = POINTS) -> list[Figure]:
    """Return the charts of a run as JSON objects with `name`, `title`, `explains` and the Plotly
    figure.

    A line has at most `points` points.
    """
    drawn = []
    for chart in of_run(frames, about):
        traces = [*_traced(chart, about), *(_trace(line, frames, points) for line in chart.lines)]
        if chart.name == "congestion" and about.threshold:
            traces.append(_threshold(about))
        drawn.append(drawn_chart(chart, traces, about.duration_s))
    return drawn


def overlay(
    labels: Sequence[str],
    last: Sequence[Frame],
    runs: Iterable[Sequence[Frame]],
    points: int = POINTS,
    own: Sequence[Metric] = (),
) -> list[Figure]:
    """Return charts that compare runs, with one line for each run. A line has at most `points`
    points.

    `last` has the last sample of each run that has any. `runs` yields the samples of each run; only
    those of one run are needed at a time. Charts without any value are left out.
    """
    duration_s = max((frame["t"] for frame in last), default=0)
    several = of_comparison(labels, last, own)
    traces: list[list[go.Scatter]] = [[] for _ in several]
    for n, frames in enumerate(runs):
        for chart, found in zip(several, traces, strict=True):
            found.append(_trace(chart.lines[n], frames, points))
    return [
        drawn_chart(chart, found, duration_s)
        for chart, found in zip(several, traces, strict=True)
        if any(y is not None for trace in found for y in trace.y or ())
    ]


def series(frames: Sequence[Frame], key: Key) -> tuple[list[float], list[float | None]]:
    """Return the times in s and the values of one quantity. A value that was not measured is None.

    `key` has the nested keys of the value in a sample. If the second key is "*", each value is the
    sum over all users, access points or links.
    """
    return [frame["t"] for frame in frames], [_number_at(frame, key) for frame in frames]


def thin(
    xs: Sequence[float], ys: Sequence[float | None], points: int
) -> tuple[list[float], list[float | None]]:
    """Reduce a line to at most `points` points without losing its peaks.

    The line is divided into `points / 2` equal sections. The smallest and the largest value of each
    section are kept.
    """
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


def _number_at(frame: Frame, key: Key) -> float | None:
    if key[1] == SUM:
        owners = frame.get(key[0], {})
        summed = {SUM: owners[SUM]} if SUM in owners else owners  # of `thinning.extremes`
        values = [each.get(key[2]) for each in summed.values()]
        known = [value for value in values if value is not None]
        return float(sum(known)) if known else None
    found = value(frame, key)
    return None if found is None else float(found)


def drawn_chart(chart: Chart, traces: Sequence[go.Scatter], duration_s: float) -> Figure:
    """Return a chart with its lines as the JSON object that is sent to the browser."""
    return {
        "name": chart.name,
        "title": chart.title,
        "explains": chart.explains,
        "figure": _plain(traces, _layout(chart, duration_s)),
    }


def _trace(line: Line, frames: Sequence[Frame], points: int) -> go.Scatter:
    xs, ys = thin(*series(frames, line.key), points)
    axis = "" if line.row == 1 else str(line.row)
    return go.Scatter(
        x=xs,
        y=ys,
        name=line.name,
        mode="lines",
        line={
            "color": COLOURS[line.colour],
            "dash": line.dash,
            "width": 2 if line.dash == "solid" else 2.2,
            "shape": "hv" if line.step else "linear",
        },
        yaxis=f"y{axis}",
        xaxis="x",
        showlegend=line.row == 1,
        visible=line.drawn,
        meta={"key": list(line.key), "colour": line.colour},
        hovertemplate="%{y:.3g}",
    )


def _traced(chart: Chart, about: About) -> Iterator[go.Scatter]:
    """Yield the rates of traces as faint lines, in the colours of the lines above them."""
    colours = {line.key[:2]: line.colour for line in chart.lines if line.drawn}
    for each in about.traced:
        if each.chart != chart.name or each.under not in colours:
            continue
        colour = colours[each.under]
        yield go.Scatter(
            x=each.t_s,
            y=each.mbps,
            name=each.name,
            mode="lines",
            line={"color": COLOURS[colour], "dash": "dot", "width": 1.5},
            opacity=0.7,
            meta={"key": [], "colour": colour, "of": list(each.of)},
            hovertemplate="%{y:.3g}",
        )


def _threshold(about: About) -> go.Scatter:
    steps = [*about.threshold, (about.duration_s, about.threshold[-1][1])]
    return go.Scatter(
        x=[t for t, _ in steps],
        y=[level for _, level in steps],
        name="congested from",
        mode="lines",
        line={"color": "#767676", "dash": "solid", "width": 1, "shape": "hv"},
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


def _plain(traces: Sequence[go.Scatter], layout: go.Layout) -> Figure:
    """Return a Plotly figure as JSON data, without the default theme of Plotly."""
    figure: Figure = go.Figure(data=list(traces), layout=layout).to_plotly_json()
    figure["layout"].pop("template", None)
    for axis in ("xaxis", "yaxis", "yaxis2"):
        if axis in figure["layout"]:
            figure["layout"][axis] |= {"zeroline": False, "automargin": False}
    for trace in figure["data"]:
        trace["x"], trace["y"] = list(trace["x"]), list(trace["y"])
    return figure
