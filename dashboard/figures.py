"""Charts as Plotly figures, the JSON from which plotly.js draws in the browser.

Each line has two fields in `meta` for the scripts of the page: `key`, the nested keys that lead to
its value in a frame (a sample of the run), and `colour`, its index in the palette.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard import charts
from dashboard.charts import About, Chart, Frame, Key, Line
from dashboard.palette import COLOURS
from lab.metrics import Metric

POINTS = 600
Figure = dict[str, Any]  # Plotly's JSON


def figures(frames: Sequence[Frame], about: About, points: int = POINTS) -> list[Figure]:
    """Return the charts of a run, each as {"name", "title", "explains", "figure"}.

    A line has at most `points` points.
    """
    drawn = []
    for chart in charts.of_run(frames, about):
        traces = [_trace(line, frames, points) for line in chart.lines]
        if chart.name == "congestion" and about.threshold:
            traces.append(_threshold(about))
        drawn.append(drawn_chart(chart, traces, about.duration_s))
    return drawn


def overlay(
    runs: Sequence[tuple[str, Sequence[Frame]]],
    points: int = POINTS,
    own: Sequence[Metric] = (),
) -> list[Figure]:
    """Return charts that compare runs, given as pairs (label, frames), with one line for each run.

    A line has at most `points` points. Charts without any value are left out.
    """
    drawn = []
    duration_s = max((frames[-1]["t"] for _, frames in runs if frames), default=0)
    last = [frame for _, frames in runs for frame in frames[-1:]]
    for chart in charts.of_comparison([label for label, _ in runs], last, own):
        traces = [
            _trace(line, frames, points)
            for line, (_, frames) in zip(chart.lines, runs, strict=True)
        ]
        if any(y is not None for trace in traces for y in trace.y or ()):
            drawn.append(drawn_chart(chart, traces, duration_s))
    return drawn


def series(frames: Sequence[Frame], key: Key) -> tuple[list[float], list[float | None]]:
    """Return the times in s and the values of one quantity; a value that was not measured is None.

    `key` has the nested keys of the value in a frame. If its second part is "*", the value is the
    sum over all users, access points or links.
    """
    return [frame["t"] for frame in frames], [_value(frame, key) for frame in frames]


def thin(
    xs: Sequence[float], ys: Sequence[float | None], points: int
) -> tuple[list[float], list[float | None]]:
    """Reduce a line to at most `points` points, without losing peaks.

    Of each of `points / 2` equal sections, the smallest and the largest value are kept.
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


def _value(frame: Frame, key: Key) -> float | None:
    if key[1] == "*":
        values = [each.get(key[2]) for each in frame.get(key[0], {}).values()]
        known = [value for value in values if value is not None]
        return float(sum(known)) if known else None
    found = charts.value(frame, key)
    return None if found is None else float(found)


def drawn_chart(chart: Chart, traces: Sequence[go.Scatter], duration_s: float) -> Figure:
    """Return a chart with its lines as the JSON object that the browser gets."""
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
    """Return a Plotly figure as JSON data, without Plotly's default theme."""
    figure: Figure = go.Figure(data=list(traces), layout=layout).to_plotly_json()
    figure["layout"].pop("template", None)
    for axis in ("xaxis", "yaxis", "yaxis2"):
        if axis in figure["layout"]:
            figure["layout"][axis] |= {"zeroline": False, "automargin": False}
    for trace in figure["data"]:
        trace["x"], trace["y"] = list(trace["x"]), list(trace["y"])
    return figure
