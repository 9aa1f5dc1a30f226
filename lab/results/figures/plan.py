"""What a figure of a comparison shows: its kind, and its panels.

The means and intervals are those of `lab.results.compare`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import RequestError
from lab.metrics import Metric
from lab.results import compare
from lab.results.compare import TOTAL, Group, Parts, Settings, Window
from lab.results.figures import curves
from lab.results.figures.curves import Curve
from lab.results.labels import heading, key_label, label
from lab.results.statistics import Estimate

KINDS = ("bars", "lines", "heat", "time", "cdf")
NO_ESTIMATE = Estimate(None, None, None, 0)
FEWEST_POINTS = 3  # of a line over a key, or a side of a heat map, that is chosen without --kind
MOST_CURVES = 24
Value = float | str | None


@dataclass(frozen=True)
class Bars:
    """One bar for each group."""

    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    axis: str


@dataclass(frozen=True)
class Lines:
    """Curves over a key of the scenario (`ticks` name its values, if they are no numbers), over
    time, or a distribution (`is_cdf`)."""

    curves: tuple[Curve, ...]
    x_axis: str
    y_axis: str
    ticks: tuple[str, ...] = ()
    is_cdf: bool = False
    is_time: bool = False


@dataclass(frozen=True)
class Heat:
    """One mean for each pair of values of two keys; `name` says of which groups."""

    name: str
    means: tuple[tuple[float | None, ...], ...]  # a row for each value on the y axis
    x_names: tuple[str, ...]
    y_names: tuple[str, ...]
    x_axis: str
    y_axis: str
    axis: str


Panel = Bars | Lines | Heat


@dataclass(frozen=True)
class Asked:
    """What the user wants to see. Without a `kind`, it is the one that fits the runs."""

    kind: str | None
    metrics: tuple[str, ...]
    by: tuple[str, ...]
    window: Window | None


@dataclass(frozen=True)
class Cell:
    group: Group
    estimates: dict[str, Estimate]


def panels(parts: Parts, asked: Asked) -> list[Panel]:
    """Return the panels of a figure. Raise `RequestError` if the runs have nothing of that kind."""
    cells = _cells(parts)
    check_metrics(parts, asked.metrics)
    keys = asked.by or tuple(compare.varied([run for each in cells for run in each.group.runs]))
    kind, keys = _kind(cells, keys, asked)
    metrics = asked.metrics or (TOTAL,)
    if kind == "cdf":
        return [_cdf(cells, asked)]
    make = {"bars": _bars, "lines": _lines, "heat": _heat, "time": _time}[kind]
    found = [panel for metric in metrics for panel in make(cells, metric, keys, asked)]
    most = max((len(each.curves) for each in found if isinstance(each, Lines)), default=0)
    if (most := max(most, len(found))) > MOST_CURVES:
        raise RequestError(
            f"compare --figure: {most} curves or panels: at most {MOST_CURVES} can be told apart. "
            "Give fewer runs, or --kind heat with two keys in --by"
        )
    return found


def check_metrics(parts: Parts, metrics: Sequence[str]) -> None:
    """Raise `RequestError` for a metric that no run has."""
    known = list(dict.fromkeys(name for _, found in parts for name in found.estimates))
    for each in metrics:
        if each not in known:
            near = difflib.get_close_matches(each, known, 3, 0.3) or known[:3]
            raise RequestError(
                f"compare --metric {each}: no run has it. Some that they have: {', '.join(near)}"
            )


def _cells(parts: Parts) -> list[Cell]:
    return [
        Cell(group, {metric: row[n] for metric, row in found.estimates.items()})
        for _, found in parts
        for n, group in enumerate(found.groups)
    ]


def _kind(
    cells: Sequence[Cell], keys: tuple[str, ...], asked: Asked
) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a figure, and the keys on its axes."""
    long = [key for key in keys if _is_long(cells, key)]
    kind = asked.kind
    if kind is None and asked.by:
        kind = {1: "lines", 2: "heat"}.get(len(asked.by), "bars")
    elif kind is None and long:
        kind = "heat" if len(long) > 1 else "lines"
    elif kind is None:
        files = not asked.metrics and not asked.window and all(_times(each) for each in cells)
        kind = "cdf" if files else "bars"
    needed = {"lines": 1, "heat": 2}.get(kind, 0)
    ordered = keys if asked.by else (*long, *(key for key in keys if key not in long))
    if len(ordered) < needed:
        raise RequestError(
            f"compare --kind {kind}: this needs runs with {needed} varied "
            f"{'keys' if needed > 1 else 'key'}, and these vary in {', '.join(keys) or 'none'}. "
            "Try: --kind bars"
        )
    return kind, ordered[:needed]


def _is_long(cells: Sequence[Cell], key: str) -> bool:
    values = _values(cells, key)
    return len(values) >= FEWEST_POINTS and all(isinstance(each, float) for each in values)


def _value(cell: Cell, key: str) -> Value:
    found = json.loads(cell.group.settings.get(key, "null"))
    if isinstance(found, int | float) and not isinstance(found, bool):
        return float(found)
    return None if found is None else found if isinstance(found, str) else json.dumps(found)


def _values(cells: Sequence[Cell], key: str) -> list[Value]:
    found = dict.fromkeys(_value(cell, key) for cell in cells)
    return sorted(found, key=lambda value: value if isinstance(value, float) else float("inf"))


def _named(value: Value) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else value


def _own(cells: Sequence[Cell]) -> list[Metric]:
    return [each for cell in cells for run in cell.group.runs for each in run.own]


def _axis(cells: Sequence[Cell], metric: str) -> str:
    found = label(metric, _own(cells))
    return f"{found.text} ({found.unit})" if found.unit else found.text


def _names(cells: Sequence[Cell], keys: Sequence[str] = ()) -> list[str]:
    """Return the name of each cell without its values of `keys`, and without the strategy if the
    names differ in other things only."""
    stripped: list[Settings] = [
        {key: value for key, value in cell.group.settings.items() if key not in keys}
        for cell in cells
    ]
    titles = compare.titles(stripped)
    names = [heading(title, each) for title, each in zip(titles, stripped, strict=True)]
    same = f"{cells[0].group.runs[0].strategy}, "
    if all(name.startswith(same) for name in names):
        return [name.removeprefix(same) for name in names]
    return names


def _bars(cells: Sequence[Cell], metric: str, keys: Sequence[str], asked: Asked) -> list[Panel]:
    found = tuple(cell.estimates.get(metric, NO_ESTIMATE) for cell in cells)
    return [Bars(tuple(_names(cells)), found, _axis(cells, metric))]


def _lines(cells: Sequence[Cell], metric: str, keys: Sequence[str], asked: Asked) -> list[Panel]:
    (key,) = keys
    values = _values(cells, key)
    are_numbers = all(isinstance(each, float) for each in values)
    names = _names(cells, keys)
    found = []
    for name in dict.fromkeys(names):
        several = {
            _value(cell, key): cell.estimates.get(metric, NO_ESTIMATE)
            for cell, of in zip(cells, names, strict=True)
            if of == name
        }
        xs = [(n, value) for n, value in enumerate(values) if value in several]
        places = tuple(
            value if isinstance(value, float) and are_numbers else float(n) for n, value in xs
        )
        found.append(Curve(name, places, tuple(several[value] for _, value in xs)))
    ticks = () if are_numbers else tuple(map(_named, values))
    return [Lines(tuple(found), key_label(key), _axis(cells, metric), ticks)]


def _heat(cells: Sequence[Cell], metric: str, keys: Sequence[str], asked: Asked) -> list[Panel]:
    x_key, y_key = keys
    xs, ys = _values(cells, x_key), _values(cells, y_key)
    names = _names(cells, keys)
    found: list[Panel] = []
    for name in dict.fromkeys(names):
        means = {
            (_value(cell, x_key), _value(cell, y_key)): cell.estimates.get(metric, NO_ESTIMATE).mean
            for cell, of in zip(cells, names, strict=True)
            if of == name
        }
        found.append(
            Heat(
                name if len(set(names)) > 1 else "",
                tuple(tuple(means.get((x, y)) for x in xs) for y in ys),
                tuple(map(_named, xs)),
                tuple(map(_named, ys)),
                key_label(x_key),
                key_label(y_key),
                _axis(cells, metric),
            )
        )
    return found


def _time(cells: Sequence[Cell], metric: str, keys: Sequence[str], asked: Asked) -> list[Panel]:
    window = asked.window or Window()
    found = tuple(
        curves.over_time(
            name, [run.folder for run in cell.group.runs], metric, _own([cell]), window
        )
        for name, cell in zip(_names(cells), cells, strict=True)
    )
    if not any(each.estimates for each in found):
        raise RequestError(
            f"compare --kind time: {metric} is a number of the whole run. Choose another --metric"
        )
    return [Lines(found, "Time (s)", _axis(cells, metric), is_time=True)]


def _times(cell: Cell) -> list[float | None]:
    return curves.completion_times([run.folder for run in cell.group.runs])


def _cdf(cells: Sequence[Cell], asked: Asked) -> Panel:
    if asked.window or asked.metrics:
        raise RequestError(
            "compare --kind cdf: it shows completion times of files in whole runs. Leave out "
            "--metric, --from and --to"
        )
    times = [_times(cell) for cell in cells]
    if not any(times):
        raise RequestError(
            "compare --kind cdf: no run completed a file. Give users a demand such as file_mb, or "
            "try --kind bars"
        )
    found = tuple(
        curves.distribution(name, each) for name, each in zip(_names(cells), times, strict=True)
    )
    return Lines(found, "Completion time (s)", "Fraction of files", is_cdf=True)
