"""Charts that compare groups of runs. The runs of a group differ only in the seed.

Each group has a line for the mean of its runs, and a band from the smallest to the largest value.
Runs without a result are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard import charts
from dashboard.charts import Figure, Frame, Line
from dashboard.palette import USERS
from lab.errors import RequestError
from lab.metrics import Metric
from lab.results import compare
from lab.results.labels import heading
from lab.results.store import CHANGED, Store

Doc = dict[str, Any]  # JSON: the description of a run in lists
Series = tuple[Sequence[float], Sequence[float | None]]  # times in s, values of one quantity
BAND_OPACITY = 0.2
EXPLAINS = "Line: mean over the runs of a group. Band: from the smallest to the largest run."


@dataclass(frozen=True)
class Shown:
    """A group of runs that differ only in the seed, with its label in charts."""

    label: str
    docs: tuple[Doc, ...]


def has_result(doc: Doc) -> bool:
    """Return whether a run has a result with a throughput, which a comparison needs."""
    return doc["throughput_mbps"] is not None


def shown(store: Store, docs: Sequence[Doc]) -> list[Shown]:
    """Group the runs that differ only in the seed. Runs without a result are left out.

    Return an empty list if no group has more than one run, or if the runs cannot be grouped.
    """
    found = {doc["id"]: doc for doc in docs if has_result(doc)}
    try:
        several = compare.grouped([store.folder(run_id) for run_id in found])
    except RequestError:
        return []
    mixed = len({group.rate_scale for group in several}) > 1
    rows = [
        Shown(
            _label(group, mixed),
            tuple(found[run.run_id] for run in group.runs if run.run_id in found),
        )
        for group in several
    ]
    return rows if any(len(each.docs) > 1 for each in rows) else []


def _label(group: compare.Group, mixed: bool) -> str:
    scale = group.scale
    label = heading(group.label, group.settings)
    return f"{label}, {scale}" if mixed and scale not in label else label


def skipped(docs: Sequence[Doc]) -> str:
    """Return sentences that name the runs without a result, and those that were edited after
    their end. Return "" if there are none."""
    edited = [each for each in docs if each["status"] == CHANGED]
    said = [f"{doc['id']} is left out: {doc['error']}." for doc in edited]
    names = [
        f"{doc['id']} ({doc['status']})"
        for doc in docs
        if not has_result(doc) and doc not in edited
    ]
    if names:
        left_out = "is left out: it has" if len(names) == 1 else "are left out: they have"
        said.append(f"{', '.join(names)} {left_out} no result.")
    return " ".join(said)


def drawn(
    groups: Sequence[tuple[str, Iterable[Sequence[Frame]]]],
    last: Sequence[Frame],
    points: int,
    own: Sequence[Metric] = (),
) -> list[Figure]:
    """Return charts with one line for each group of runs. A line has at most `points` points.

    `groups` has a pair for each group: its label, and the samples of each of its runs; only those
    of one run are needed at a time. `last` has the last sample of each run that has any. `own` are
    the metrics that the user has added.
    """
    duration_s = max((frame["t"] for frame in last), default=0.0)
    several = charts.of_comparison([label for label, _ in groups], last, own)
    keys = {chart.lines[0].key for chart in several if chart.lines}
    measured = [
        [{key: charts.series(frames, key) for key in keys} for frames in runs] for _, runs in groups
    ]
    found = []
    for chart in several:
        traces = [
            trace
            for line, runs in zip(chart.lines, measured, strict=True)
            for trace in _traces(line, [run[line.key] for run in runs], points)
        ]
        if traces:
            row = charts.drawn_chart(chart, traces, duration_s)
            found.append(row | {"explains": EXPLAINS})
    return found


def _traces(line: Line, series: Sequence[Series], points: int) -> list[go.Scatter]:
    times, values = _on_one_grid(series, points)
    if not len(times):
        return []
    mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
    colour = line.colour % len(USERS)
    main = go.Scatter(
        x=times.tolist(),
        y=mean.tolist(),
        name=line.name,
        mode="lines",
        line={"color": USERS[colour], "dash": line.dash, "width": 2},
        meta={"key": [], "colour": colour},
        hovertemplate="%{y:.3g}",
    )
    if len(values) < 2:
        return [main]
    band = go.Scatter(
        x=[*times.tolist(), *times[::-1].tolist()],
        y=[*high.tolist(), *low[::-1].tolist()],
        name=f"{line.name}: smallest to largest",
        mode="lines",
        fill="toself",
        fillcolor=_transparent(USERS[colour]),
        line={"width": 0, "color": USERS[colour]},
        showlegend=False,
        hoverinfo="skip",
        meta={"key": [], "colour": colour},
    )
    return [main, band]


def _on_one_grid(series: Sequence[Series], points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return common times, and the values of each run interpolated at these times.

    The times are those of the run with the most samples, until the end of the shortest run. Runs
    that did not measure the quantity are left out.
    """
    known = [
        (xs, ys)
        for times, values in series
        if (pairs := [(x, y) for x, y in zip(times, values, strict=True) if y is not None])
        for xs, ys in [zip(*pairs, strict=True)]
    ]
    if not known:
        return np.empty(0), np.empty((0, 0))
    end = min(xs[-1] for xs, _ in known)
    longest = max((xs for xs, _ in known), key=len)
    step = max(1, math.ceil(len(longest) / points))
    times = np.array([t for t in longest[::step] if t <= end])
    return times, np.array([np.interp(times, xs, ys) for xs, ys in known])


def _transparent(colour: str) -> str:
    red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
    return f"rgba({red},{green},{blue},{BAND_OPACITY})"
