"""The choice of charts for a run, and of the lines in each chart. No file is read here.

A frame is one sample of the run, a line of samples.jsonl. Each line of a chart has a `key`, the
nested keys that lead to its value in a frame, so that the browser can append the values of new
frames. `colour` is an index into the palette, so that colours can change with the theme. On the
page of a run a colour means a user, an access point or a link, and a broken line an additional
subflow (Tier 2). When runs are compared, each run has a colour and a dash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.palette import USERS, place_colours, subflow_colour, subflow_dash, user_colours
from lab import metrics
from lab.metrics import BUILT_IN, Metric
from lab.results.labels import natural

RUN_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
DASHED = {False: "solid", True: "dash"}
HELD_BACK = "held_back_kb"  # a field of a user's sample, missing if it was not measured
Frame = dict[str, Any]  # a line of samples.jsonl
Key = tuple[str, ...]


@dataclass(frozen=True)
class About:
    """What charts need to know about a run besides its frames.

    `multipath` are the users with several paths. `ends` maps each link to its two ends. `threshold`
    has pairs (t, occupancy): from time t in s, an access point counts as congested at this MAC
    occupancy, until the next pair. None means no threshold.
    """

    duration_s: float = 60.0
    aps: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    multipath: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    threshold: tuple[tuple[float, float | None], ...] = ()
    own: tuple[Metric, ...] = ()


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    `key` has the nested keys that lead to the value in a frame. `row` is 1 for the upper part of
    the chart and 2 for the lower part. If not `drawn`, the line appears only in the table of the
    chart.
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
    the upper axis, None for automatic. `explains` is the text shown with the chart.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    top: float | None = None
    explains: str = ""


def of_run(frames: Sequence[Frame], about: About) -> list[Chart]:
    """The charts of a run, without those that have no lines. What is drawn in which chart is
    declared in `lab.metrics`; the links have charts only where there are no access points."""
    drawn: dict[metrics.Chart, list[Metric]] = {}
    for metric in (*BUILT_IN, *about.own):
        if metric.drawn:
            drawn.setdefault(metric.drawn.chart, []).append(metric)
    of = _Owners.of(frames, about)
    if of.names["ap"]:
        del drawn[metrics.LINKS], drawn[metrics.QUEUES]
    charts = (_chart(chart, several, of, frames) for chart, several in drawn.items())
    return [chart for chart in charts if chart.lines]


@dataclass(frozen=True)
class _Owners:
    """What lines are drawn for, by kind: names with their colours. `latest` has the latest sample
    of each subflow."""

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
        if declared is metrics.HELD and owner not in of.about.multipath:
            continue
        for metric in several:
            how = metric.drawn
            assert how
            key = _key(metric, owner)
            if how.table_only and value(last, key) is None:
                continue  # older runs have one rate for a link
            dash = subflow_dash(_number(owner)) if metric.of == "sf" else DASHED[how.dashed]
            label = of.label(metric, owner)
            drawn = not how.table_only
            lines.append(Line(label, key, colour, dash, how.row, how.step, drawn))
    text = declared.explains
    if declared is metrics.HELD and frames and not any(map(_holds, frames)):
        text += " This run did not measure it."
    if declared is metrics.SUBFLOWS:
        text += (
            f" Each {'subflow' if of.one_user else 'user'} has a colour. The first "
            "subflow of a connection is solid, additional ones are broken, as in the drawing."
        )
    return Chart(declared.name, declared.title, declared.axes, lines, declared.top, text)


def _key(metric: Metric, owner: str) -> Key:
    return (metric.of, metric.name) if metric.of == "run" else (metric.of, owner, metric.name)


def value(frame: Frame, key: Key) -> Any:
    """What is at a key in a frame; None if there is nothing."""
    found: Any = frame
    for part in key:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _holds(frame: Frame) -> bool:
    return any(HELD_BACK in user for user in frame.get("user", {}).values())


def of_comparison(
    labels: Sequence[str], last: Sequence[Frame], own: Sequence[Metric] = ()
) -> list[Chart]:
    """One chart per figure, with one line for each run.

    `labels` are the names of the runs in the charts, `last` the last frame of each run, and `own`
    the metrics that the runs declare.
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
    """Yield name, title, unit and key of each figure by which runs can be compared."""
    yield "total", "Total throughput", metrics.RATE, ("user", "*", "mbps")
    drawn = [each for each in BUILT_IN if each.drawn]
    yield from _of_each([each for each in drawn if each.of == "ap"], last)
    yield "held", "Data held back by reordering", "kB", ("user", "*", HELD_BACK)
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
