"""The declarations of all quantities that the lab measures: name, unit, meaning, how a quantity is
computed from samples, and how it is drawn.

Samples, result.json, CSV files, the charts of the dashboard, `compare`, the checks of worksheets
and docs/formats.md are made from these declarations. A user's file adds one more (docs/extend.md).

Each quantity has an owner: an access point (`ap`), a link (`link`), a user (`user`), a subflow
(`sf`) or the whole run (`run`). In a sample, the path of a quantity is like `user.ue1.mbps`, or
`run.NAME` for the whole run. In result.json, the path is like `users.ue1.throughput_mbps`;
quantities of the whole run are at the top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from lab import noticed, user_file
from lab.errors import LabError, RequestError, unknown
from lab.frame import Frame
from lab.summaries import convergence_s, jain, mean, sd
from lab.topologies.topology import Topology

# Names such as `user.ue1.mbps`, for the number of a frame that shows the effect of a change.
#
# The name has three parts: the kind of the sample (`ap`, `link` or `user`), the ID, and the field.
# The ID `*` means the sum over all samples of this kind.


SUM = "*"
EVERYBODY = {"user": "all users", "ap": "all access points", "link": "all links"}


@dataclass(frozen=True)
class Watched:
    """The number of a sample that shows the effect of a change.

    `kind` is "ap", "link" or "user", and `field` is a field of its samples. `id` is the ID of an
    access point, link or user; `*` means the sum over all of them.
    """

    kind: str
    id: str
    field: str

    @property
    def text(self) -> str:
        """The number in words, such as `ue1: throughput`."""
        subject = EVERYBODY[self.kind] if self.id == SUM else self.id
        return f"{subject}: {sampled(self.kind)[self.field].label}"

    @property
    def unit(self) -> str:
        """The unit of the number, or "" if it has none."""
        return sampled(self.kind)[self.field].unit


def watched_number(name: str, network: Topology) -> Watched:
    """Parse a name such as `user.ue1.mbps`.

    Raise `RequestError` if samples of this network do not have a number with this name.
    """
    kind, _, rest = name.partition(".")
    subject, _, field = rest.rpartition(".")
    if kind not in EVERYBODY:
        raise RequestError(
            f"{unknown(kind, EVERYBODY)}: write KIND.ID.FIELD, such as user.ue1.mbps"
        )
    known = sampled(kind)
    ids = {
        "user": network.users,
        "ap": network.ids("wifi", "lte"),
        "link": tuple(link.id for link in network.sampled_links),
    }[kind]
    if subject not in (*ids, SUM):
        raise RequestError(f"{name}: {unknown(subject, ids)}")
    if field not in known:
        raise RequestError(f"{name}: {unknown(field, known)}")
    return Watched(kind, subject, field)


Owner = Literal["ap", "link", "user", "sf", "run"]
SECTIONS: dict[Owner, str] = {
    "ap": "aps",
    "link": "links",
    "user": "users",
    "sf": "subflows",
    "run": "run",
}
ID = "ID"  # stands for the name of an access point, link, user or subflow
RATE = "Mb/s"
DIGITS = 6  # of a number that is computed from samples
Numbers = Mapping[str, float | None]


@dataclass(frozen=True)
class Chart:
    """A chart of the dashboard.

    `axes` are the titles of the vertical axes, from top to bottom. `explains` is a text for the
    reader. `top` is the largest value on the upper axis; None means that it is chosen
    automatically.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    explains: str = ""
    top: float | None = None


@dataclass(frozen=True)
class Drawn:
    """The line of a quantity in a chart.

    `row` is 1 for the upper and 2 for the lower part of the chart. `suffix` follows the owner's
    name in the legend. With `step`, the line changes in steps instead of slopes. With `table_only`,
    there is no line, and the values are only in the chart's table. Lines of Tier 2 are `dashed`.
    """

    chart: Chart
    row: int = 1
    suffix: str = ""
    dashed: bool = False
    step: bool = False
    table_only: bool = False


@dataclass(frozen=True)
class Samples:
    """The data from which the numbers of result.json are computed.

    `weights` are the lengths in s of the frames' intervals. `aps` and `users` map the ID of each
    access point or user to its numbers in result.json. Both mappings are empty until these numbers
    are computed. Only the numbers of the whole run, which are computed last, use them.
    """

    frames: Sequence[Frame]
    weights: Sequence[float]
    topology: Topology
    aps: Mapping[str, Numbers] = field(default_factory=dict)
    users: Mapping[str, Numbers] = field(default_factory=dict)

    def mean(self, of: Owner, owner: str, name: str) -> float | None:
        return mean((frame.figure(of, owner, name) for frame in self.frames), self.weights)

    @cached_property
    def users_mbps(self) -> list[float]:
        """The mean rate of each user. Users whose rate was not measured are left out."""
        rates = (numbers["throughput_mbps"] for numbers in self.users.values())
        return [rate for rate in rates if rate is not None]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """The declaration of one quantity.

    - `of`: what the quantity belongs to (its owner)
    - `label`, `meaning`: its name in words, and a sentence that defines it
    - `value`: computes the quantity from a frame and the owner's ID ("" for the whole run);
      without it, the engines measure the quantity
    - `number`: the key in result.json; "" if result.json does not have the quantity
    - `summary`: computes the number in result.json; without it, the number is the mean over time
    - `read`: takes the number from other parts of result.json instead
    - `better`: 1 if more is better, -1 if less is better, 0 if neither is
    - `compared`: False if `compare` does not show the number
    - `sampled`: False if the quantity exists only for the whole run, not in samples
    """

    of: Owner
    label: str
    meaning: str
    unit: str = ""
    name: str = ""  # in a user's file: the name of the file
    value: Callable[[Frame, str], float | None] | None = None
    number: str = ""
    number_label: str = ""
    summary: Callable[[Samples, str], float | None] | None = None
    read: Callable[[Mapping[str, Any]], float | None] | None = None
    better: int = 0
    compared: bool = True
    drawn: Drawn | None = None
    sampled: bool = True

    @property
    def path(self) -> str:
        """The path of the quantity in a sample, such as `user.ID.mbps`."""
        return f"run.{self.name}" if self.of == "run" else f"{self.of}.{ID}.{self.name}"

    def number_path(self, owner: str = ID) -> str:
        """Return the path of the number in result.json, such as `users.ue1.throughput_mbps`."""
        return self.number if self.of == "run" else f"{SECTIONS[self.of]}.{owner}.{self.number}"

    @property
    def number_meaning(self) -> str:
        return self.meaning if self.summary or self.read else f"The mean of `{self.path}`."

    def is_in(self, result: Mapping[str, Any]) -> bool:
        """Return whether a result.json has the section of the number: not every run has what
        people notice."""
        section = self.number.partition(".")[0]
        return section not in noticed.SECTIONS or section in result

    def over(self, samples: Samples, owner: str) -> float | None:
        """Return the number of one owner in result.json, rounded; None if it was not measured."""
        found = (
            self.summary(samples, owner)
            if self.summary
            else samples.mean(self.of, owner, self.name)
        )
        return None if found is None else round(found, DIGITS)


# Charts

# The definition of both tiers, for pages, worksheets and the glossary (MP-SDN, section IV)
TIER_1 = (
    "a user's traffic over its primary access point: the one that the controller expects to give "
    "this user most"
)
TIER_2 = "a user's traffic over its other access points"
TIERS = Chart(
    "tiers",
    "Throughput by tier",
    (RATE,),
    f"Goodput per access point. Solid: Tier 1, {TIER_1}. Dashed: Tier 2, {TIER_2}.",
)
CONGESTION = Chart(
    "congestion",
    "MAC occupancy and Tier 2 limit",
    ("occupancy", "limit Mb/s"),
    "Above: MAC occupancy, how full the queue of each access point is; 1 is full. "
    "Below: the limit on the access point's Tier 2 traffic, dashed as all of Tier 2; no line "
    "means no limit.",
    1.05,
)
LINKS = Chart(
    "links",
    "Throughput per link",
    (RATE,),
    "Rate of each link in its busier direction, as Ethernet frames. The table has both directions.",
)
QUEUES = Chart(
    "queues",
    "Queues and loss",
    ("packets", "loss"),
    "Above: packets in the queue of each link. Below: the fraction of packets it lost.",
)
USERS = Chart(
    "users",
    "Throughput per user",
    (RATE,),
    "Goodput at the receiver, over all paths of a user.",
)
HELD = Chart(
    "held",
    "Data held back by reordering",
    ("kB",),
    "Data that has arrived and that the application cannot read yet, because data before it is "
    "missing: lost, or still on its way over a slower subflow. While it waits, the subflows "
    "carry more than users read.",
)
WAITS = Chart(
    "waits",
    "What users waited for",
    ("s",),
    noticed.WAITED,
)
CALLS = Chart("calls", "How calls sound", ("MOS",), noticed.MOS_NOW, 4.5)
VIDEOS = Chart("videos", "Videos that stand still", ("fraction",), noticed.STALLED, 1.05)
OF_SOME = (HELD, WAITS, CALLS, VIDEOS)  # charts in which not every user has a line
SUBFLOWS = Chart(
    "subflows",
    "Subflows: RTT and congestion window",
    ("RTT ms", "cwnd packets"),
    "Above: smoothed round-trip time. Below: congestion window.",
)


# Numbers of result.json that are more than the mean of one figure


def _both_tiers(samples: Samples, ap: str) -> float | None:
    tiers = [samples.mean("ap", ap, f"tier{n}_mbps") for n in (1, 2)]
    known = [each for each in tiers if each is not None]
    return sum(known) if known else None


def _all_users(samples: Samples, _: str) -> float | None:
    return sum(samples.users_mbps) if samples.users_mbps else None


def _tier(n: int) -> Callable[[Samples, str], float | None]:
    def summary(samples: Samples, _: str) -> float | None:
        if samples.aps and not samples.topology.relays:
            rates = [each[f"tier{n}_mbps"] for each in samples.aps.values()]
            known = [rate for rate in rates if rate is not None]
            return sum(known) if known else None
        return mean((_over_subflows(n, frame) for frame in samples.frames), samples.weights)

    return summary


def _over_subflows(tier: int, frame: Frame) -> float:
    rates = (each.mbps or 0.0 for each in frame.sf.values() if (each.tier or 1) == tier)
    return float(sum(rates))


def _out_of_order(result: Mapping[str, Any]) -> float | None:
    """Return the mean out-of-order fraction of all connections in a result.json.

    Connections without a measurement are left out. Return None if none has one.
    """
    found = [each["out_of_order_fraction"] for each in result["connections"]]
    known = [each for each in found if each is not None]
    return sum(known) / len(known) if known else None


OCCUPANCY = (
    "WiFi: min(1, backlog / 16) of the longer of the access point's backlog and the waiting "
    "uploads. LTE: the mean over the bearers that carry Tier 1. Ten measurements a second."
)
SETTLED = (
    "The time from the start of the last user's traffic until the rates have settled: for every "
    "user the mean over 1 s is within 10 % of the final mean, for 5 s without a break and in 90 % "
    "of the windows after that. The final mean is that of the last 3/8 of the time in which all "
    "users have traffic. Null if they never settle, or have traffic together for less than 20 s."
)
EXPECTED = (
    "The rate that the controller expects of the subflow, in Ethernet frames (S-MPTCP, section V): "
    "the pacing rate of the sender or, with `expected_by: window`, the rate to which its "
    "congestion control limits the window; null without one."
)
HELD_BACK = (
    "Data that has arrived and that the user's applications cannot read, because data before it is "
    "missing: the most at one time of the interval, summed over connections. The emulation sees "
    "such data when it is delivered, so it counts in that interval."
)

BUILT_IN: tuple[Metric, ...] = (
    Metric(
        of="run",
        name="throughput_mbps",
        label="all users: throughput",
        unit=RATE,
        meaning="The sum of the users' mean rates.",
        sampled=False,
        number="throughput_mbps",
        summary=_all_users,
        better=1,
    ),
    *(
        Metric(
            of="run",
            name=f"tiers.{n}",
            label=f"Tier {n}: throughput",
            unit=RATE,
            meaning=f"The mean rate of Tier {n}, over all access points; without access points, "
            "and with relays, over all subflows.",
            sampled=False,
            number=f"tiers.{n}",
            summary=_tier(n),
        )
        for n in (1, 2)
    ),
    Metric(
        of="ap",
        name="throughput_mbps",
        label="throughput",
        unit=RATE,
        meaning="The sum of the means of both tiers.",
        sampled=False,
        number="throughput_mbps",
        summary=_both_tiers,
        better=1,
    ),
    *(
        Metric(
            of="ap",
            name=f"tier{n}_mbps",
            label=f"Tier {n} throughput",
            unit=RATE,
            meaning=f"Payload received over this access point by subflows of Tier {n}.",
            number=f"tier{n}_mbps",
            compared=False,
            drawn=Drawn(TIERS, suffix=f" Tier {n}", dashed=n == 2),
        )
        for n in (1, 2)
    ),
    Metric(
        of="ap",
        name="mac_occupancy",
        label="MAC occupancy",
        meaning=OCCUPANCY,
        number="mac_occupancy_mean",
        number_label="mean MAC occupancy (1: full)",
        drawn=Drawn(CONGESTION),
    ),
    Metric(
        of="ap",
        name="meter_mbps",
        label="limit on Tier 2",
        unit=RATE,
        meaning="The limit on Tier 2 at this access point; null: no limit.",
        drawn=Drawn(CONGESTION, row=2, dashed=True, step=True),
    ),
    Metric(
        of="ap",
        name="stations",
        label="stations",
        meaning="The number of users on this access point now.",
    ),
    Metric(
        of="link",
        name="mbps",
        label="throughput",
        unit=RATE,
        meaning="The larger of `mbps_ab` and `mbps_ba`.",
        drawn=Drawn(LINKS),
    ),
    *(
        Metric(
            of="link",
            name=f"mbps_{ends}",
            label=f"throughput from {ends[0]} to {ends[1]}",
            unit=RATE,
            meaning=f"Ethernet frames sent from the link's {way}.",
            drawn=Drawn(LINKS, table_only=True),
        )
        for ends, way in (
            ("ab", "first end (a) to its second (b)"),
            ("ba", "second end (b) to its first (a)"),
        )
    ),
    Metric(
        of="link",
        name="backlog",
        label="queue",
        unit="packets",
        meaning="Packets that wait for the rate in the busier direction. The simulator also counts "
        "the one being sent.",
        drawn=Drawn(QUEUES),
    ),
    Metric(
        of="link",
        name="loss",
        label="loss",
        meaning="The fraction of the busier direction's packets that were dropped or lost.",
        drawn=Drawn(QUEUES, row=2),
    ),
    Metric(
        of="user",
        name="mbps",
        label="throughput",
        unit=RATE,
        meaning="Payload that the user's applications have read, in order.",
        number="throughput_mbps",
        better=1,
        drawn=Drawn(USERS),
    ),
    *(
        Metric(
            of="user",
            name=f"{axis}_m",
            label=f"position {axis}",
            unit="m",
            meaning=f"The {axis} coordinate of a user in a topology with positions.",
        )
        for axis in ("x", "y")
    ),
    Metric(
        of="user",
        name="held_back_kb",
        label="data held back",
        unit="kB",
        meaning=HELD_BACK,
        drawn=Drawn(HELD),
    ),
    *(
        Metric(of="user", name=name, label=label, unit=unit, meaning=meaning, drawn=Drawn(chart))
        for name, label, unit, meaning, chart in (
            ("waited_s", "completion time", "s", noticed.WAITED, WAITS),
            ("mos", "MOS of calls", "", noticed.MOS_NOW, CALLS),
            ("stalled", "videos stood still", "", noticed.STALLED, VIDEOS),
        )
    ),
    Metric(
        of="sf",
        name="mbps",
        label="throughput",
        unit=RATE,
        meaning="Payload that the subflow's receiver has received in order.",
    ),
    Metric(
        of="sf",
        name="cwnd",
        label="congestion window",
        unit="segments",
        meaning="Congestion window of the sender.",
        drawn=Drawn(SUBFLOWS, row=2),
    ),
    Metric(
        of="sf",
        name="rtt_ms",
        label="RTT",
        unit="ms",
        meaning="Smoothed round-trip time of the sender.",
        drawn=Drawn(SUBFLOWS),
    ),
    Metric(
        of="sf",
        name="tier",
        label="tier",
        meaning="The tier of the user's association with the access point, which the controller "
        "may change; 1 without one.",
    ),
    Metric(
        of="sf",
        name="backup",
        label="backup",
        meaning="The sender treats the subflow as backup (MP_PRIO, RFC 8684, section 3.3.8).",
    ),
    Metric(
        of="sf",
        name="expected_mbps",
        label="expected throughput",
        unit=RATE,
        meaning=EXPECTED,
    ),
    Metric(
        of="sf",
        name="out_of_order",
        label="segments out of order",
        meaning="The fraction of the subflow's segments that arrived before an earlier one of the "
        "same subflow.",
    ),
    Metric(
        of="run",
        name="fairness.jain",
        label="Jain's fairness index (1: equal shares)",
        meaning="Jain's index of the users' mean rates.",
        sampled=False,
        number="fairness.jain",
        summary=lambda samples, _: jain(samples.users_mbps),
        better=1,
    ),
    Metric(
        of="run",
        name="fairness.sd_mbps",
        label="standard deviation of the users' throughput",
        unit=RATE,
        meaning="The standard deviation of the users' mean rates, with divisor n.",
        sampled=False,
        number="fairness.sd_mbps",
        summary=lambda samples, _: sd(samples.users_mbps),
        better=-1,
    ),
    Metric(
        of="run",
        name="out_of_order_fraction",
        label="fraction of segments that arrived out of order",
        meaning="The mean over all connections of their `out_of_order_fraction`.",
        sampled=False,
        number="out_of_order_fraction",
        read=_out_of_order,
        better=-1,
    ),
    Metric(
        of="run",
        name="convergence_s",
        label="time until all rates have settled",
        unit="s",
        meaning=SETTLED,
        sampled=False,
        number="convergence_s",
        summary=lambda samples, _: convergence_s(samples.frames),
        better=-1,
    ),
)


def _noticed(row: noticed.Row) -> Metric:
    name = f"{row.section}.{row.key}"
    return Metric(
        of="run",
        name=name,
        label=row.label,
        unit=row.unit,
        meaning=row.meaning,
        sampled=False,
        number=name,
        read=lambda result: _inner(result[row.section], row.key),
        better=row.better,
    )


def _inner(section: Mapping[str, Any], key: str) -> float | None:
    *parts, last = key.split(".")
    for part in parts:
        section = section.get(part) or {}
    return section.get(last)


BUILT_IN += tuple(map(_noticed, noticed.rows()))


# Metrics in users' files

_own: dict[str, Metric] = {}  # by name


def own() -> tuple[Metric, ...]:
    """Return the metrics in users' files that are registered in this process."""
    return tuple(_own.values())


def register(path: Path, source: bytes | None = None) -> str:
    """Import a user's file and add the metric `METRIC` in it. Return the name of the metric, which
    is the file name without `.py`.

    Raise `RequestError` if running the file fails, if it has no `METRIC`, or if the `METRIC` is
    wrong.
    """
    module = user_file.import_file(path.resolve(), source)
    doing = f"register metric {path}"
    found = getattr(module, "METRIC", None)
    if not isinstance(found, Metric):
        raise RequestError(
            f"{doing}: METRIC is no Metric(of=..., label=..., meaning=..., value=...)"
        )
    owners = get_args(Owner)
    if found.of not in owners:
        raise RequestError(f"{doing}: of: {unknown(str(found.of), owners)}")
    for key in ("label", "meaning"):
        if not isinstance(getattr(found, key), str) or not getattr(found, key).strip():
            raise RequestError(f"{doing}: {key} is empty: write a text for people")
    if not callable(found.value):
        raise RequestError(f"{doing}: it has no value: give a function of a frame and a name")
    if any(each.of == found.of and path.stem in (each.name, each.number) for each in BUILT_IN):
        raise RequestError(f"{doing}: the lab has a figure of this name: rename the file")
    _own[path.stem] = _complete(found, path.stem)
    return path.stem


def forget(name: str) -> None:
    """Remove the metric of a user's file."""
    del _own[name]


def _complete(metric: Metric, name: str) -> Metric:
    """Return a user's metric with the fields that follow from its name: a number in result.json
    (the mean, unless the metric has a `summary`) and a separate chart."""
    number = f"run.{name}" if metric.of == "run" else name
    axis = metric.unit or metric.label
    chart = Chart(name, metric.label[:1].upper() + metric.label[1:], (axis,), metric.meaning)
    return replace(
        metric, name=name, number=number, compared=True, sampled=True, read=None, drawn=Drawn(chart)
    )


def with_computed(frame: Frame) -> Frame:
    """Return a copy of a frame with the numbers that metrics compute from the frame.

    The metrics are those of the lab and those in users' files. Raise `LabError` if a value is
    neither a finite number nor None.
    """
    computed = [each for each in (*BUILT_IN, *own()) if each.value]
    if not computed:
        return frame
    added: dict[str, dict[str, dict[str, float | None]]] = {}
    for metric in computed:
        for owner in owners_in(frame, metric.of):
            figures = added.setdefault(metric.of, {}).setdefault(owner, {})
            figures[metric.name] = _figure(metric, frame, owner)
    return replace(frame, computed=added)


def _figure(metric: Metric, frame: Frame, owner: str) -> float | None:
    assert metric.value is not None
    found = metric.value(frame, owner)
    if found is None:
        return None
    if not isinstance(found, int | float) or not math.isfinite(found):
        of = owner or "the run"
        raise LabError(f"metric '{metric.name}' of {of}: {found!r} is neither a number nor None")
    return round(float(found), DIGITS)


def owners_in(frame: Frame, of: Owner) -> Iterable[str]:
    """Return the IDs of the access points, links, users or subflows in a frame.

    `of` says which of them; for "run" the result is ("",).
    """
    return ("",) if of == "run" else getattr(frame, of)


DECLARED = ("of", "name", "label", "unit", "meaning", "better")  # in a manifest


def declarations() -> list[dict[str, Any]]:
    """Return the users' metrics as JSON for manifest.json.

    With them, the run can be shown and compared later without the users' files.
    """
    return [{key: getattr(each, key) for key in DECLARED} for each in own()]


def declared_in(manifest: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return the users' metrics that a manifest declares. Wrong entries are left out."""
    found = []
    for each in manifest.get("metrics") or ():
        try:
            metric = Metric(**{key: each[key] for key in DECLARED})
            if metric.of in SECTIONS and all(isinstance(each[key], str) for key in DECLARED[:5]):
                found.append(_complete(metric, metric.name))
        except (KeyError, TypeError):
            continue
    return tuple(found)


# Finding metrics


def sampled(of: str) -> dict[str, Metric]:
    """Return the metrics in the samples of `of` ("ap", "link", ...), by name.

    The built-in ones come first, then those in users' files.
    """
    return {each.name: each for each in (*BUILT_IN, *own()) if each.of == of and each.sampled}


def numbers(of: Owner, metrics: Sequence[Metric] | None = None) -> Iterator[Metric]:
    """Return the metrics of an owner whose numbers in result.json are computed from samples.

    Only those in `metrics` are considered; None means all built-in metrics and those in users'
    files.
    """
    known = (*BUILT_IN, *own()) if metrics is None else metrics
    return (each for each in known if each.of == of and each.number and each.read is None)


def of_number(path: str, more: Sequence[Metric] = ()) -> tuple[Metric, str] | None:
    """Return (metric, ID of its owner) for a path in result.json, or None for an unknown path.

    The ID is "" for a number of the whole run. `more` are metrics that the manifest of a run
    declares.
    """
    section, _, rest = path.partition(".")
    owner, _, key = rest.rpartition(".")
    for each in (*BUILT_IN, *own(), *more):
        if each.number and each.of == "run" and each.number == path:
            return each, ""
        if each.number == key and each.of != "run" and SECTIONS[each.of] == section:
            return each, owner
    return None


def rows() -> list[dict[str, str]]:
    """Return one row per metric for a table: its paths in samples and in result.json, unit, chart
    and meaning."""
    return [
        {
            "sample": each.path if each.sampled else "",
            "result": each.number_path() if each.number else "",
            "unit": each.unit,
            "chart": each.drawn.chart.title if each.drawn else "",
            "meaning": each.meaning,
        }
        for each in (*BUILT_IN, *own())
    ]
