"""Charts of a grid: the panels of `compare --figure` over the keys that were varied, for Plotly.

The page gives them their colours, so that they follow the theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dashboard.base.errors import Problem
from lab.errors import RequestError
from lab.results import compare
from lab.results.compare import TOTAL, Parts
from lab.results.figures import plan
from lab.results.figures.curves import Curve
from lab.results.figures.plan import Asked, Heat, Lines
from lab.results.labels import key_label, label
from lab.results.statistics import Estimate

MOST_KEYS = 2  # on the axes; the values of others are in the names of lines or maps
Doc = dict[str, Any]  # JSON


def of_runs(folders: Sequence[Path], by: Sequence[str], metric: str) -> Doc:
    """Return the varied keys and the metrics of runs, with their labels, and the panels of one
    metric over the keys in `by`. Without `by`, the first two varied keys are the axes.

    There are no panels if the runs vary in no key. Raise a `Problem` for a key or a metric that
    the runs do not have.
    """
    parts, _ = compare.compared_by(folders, None, ())
    runs = [run for _, found in parts for group in found.groups for run in group.runs]
    keys = compare.varied(runs)
    chosen = tuple(by) or tuple(keys[:MOST_KEYS])
    if len(set(chosen)) < len(chosen) or len(chosen) > MOST_KEYS or set(chosen) - set(keys):
        raise Problem(
            422,
            f"by {','.join(by)}: choose one or two of the keys that these runs vary: "
            f"{', '.join(keys) or 'none'}",
        )
    metric = metric or TOTAL
    return {
        "keys": {key: key_label(key) for key in keys},
        "by": list(chosen),
        "metric": metric,
        "metrics": _labels(parts),
        "panels": _panels(parts, chosen, metric) if chosen else [],
    }


def _labels(parts: Parts) -> dict[str, str]:
    own = [each for _, found in parts for g in found.groups for run in g.runs for each in run.own]
    names = dict.fromkeys(name for _, found in parts for name in found.estimates)
    found = {name: label(name, own) for name in names}
    return {
        n: f"{each.text} ({each.unit})" if each.unit else each.text for n, each in found.items()
    }


def _panels(parts: Parts, by: tuple[str, ...], metric: str) -> list[Doc]:
    try:
        found = plan.panels(parts, Asked(None, (metric,), by, None))
    except RequestError as error:
        raise Problem(422, str(error)) from error
    return [
        _heat(each) if isinstance(each, Heat) else _lines(each)
        for each in found
        if isinstance(each, Heat | Lines)
    ]


def _lines(panel: Lines) -> Doc:
    names = list(panel.ticks)
    ticks = {"tickvals": list(range(len(names))), "ticktext": names} if names else {}
    return {
        "title": panel.y_axis,
        "data": [_line(n, each) for n, each in enumerate(panel.curves)],
        "xaxis": {"title": {"text": panel.x_axis}, **ticks},
        "yaxis": {"title": {"text": panel.y_axis}, "rangemode": "tozero"},
    }


def _line(number: int, curve: Curve) -> Doc:
    below, above = zip(*map(_lengths, curve.estimates), strict=True)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": curve.name,
        "x": list(curve.places),
        "y": [each.mean for each in curve.estimates],
        "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below},
        "meta": number,
    }


def _lengths(each: Estimate) -> tuple[float, float]:
    """Return the parts of an interval below and above the mean. They are 0 for too few runs."""
    if each.mean is None or each.low is None or each.high is None:
        return 0.0, 0.0
    return each.mean - each.low, each.high - each.mean


def _heat(panel: Heat) -> Doc:
    x, y = ({"type": "category", "title": {"text": each}} for each in (panel.x_axis, panel.y_axis))
    return {
        "title": f"{panel.name}: {panel.axis}" if panel.name else panel.axis,
        "data": [
            {
                "type": "heatmap",
                "x": list(panel.x_names),
                "y": list(panel.y_names),
                "z": [list(row) for row in panel.means],
                "texttemplate": "%{z:.3g}",
                "hovertemplate": "%{x}, %{y}: %{z:.4g}<extra></extra>",
                "colorscale": "Cividis",
                "colorbar": {"thickness": 12, "outlinewidth": 0},
            }
        ],
        "xaxis": x,
        "yaxis": y,
    }
