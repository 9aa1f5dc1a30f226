"""The choice of charts for a run, and of the lines in each chart. No file is read here.

A frame is one sample of the run, a line of samples.jsonl. Each line of a chart has a `key`, the
nested keys that lead to its value in a frame, so that the browser can append the values of new
frames. `colour` is an index into the palette, so that colours can change with the theme. On the
page of a run a colour means a user, an access point or a link, and a broken line an additional
subflow (Tier 2). When runs are compared, each run has a colour and a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.palette import USERS, place_colours, subflow_colour, subflow_dash, user_colours
from lab.results.labels import natural

RUN_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
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
    """Return the charts of a run, without charts that have no lines."""
    last = frames[-1] if frames else {}
    aps = about.aps or tuple(last.get("ap", {}))
    links = about.links or tuple(last.get("link", {}))
    users = about.users or tuple(last.get("user", {}))
    network = (
        [_tiers(aps), _congestion(aps)] if aps else [_links(links, last, about), _queues(links)]
    )
    held_back = _held_back(users, about.multipath, frames)
    charts = (*network, _users(users), held_back, _subflows(frames))
    return [chart for chart in charts if chart.lines]


def of_comparison(labels: Sequence[str], last: Sequence[Frame]) -> list[Chart]:
    """Return one chart per quantity, with one line for each run.

    `labels` names the runs. `last` has the last frame of each run that has frames.
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
        for name, title, unit, key in _quantities(last)
    ]


def _tiers(aps: Iterable[str]) -> Chart:
    lines = []
    for ap, n in place_colours(aps).items():
        lines.append(Line(f"{ap} Tier 1", ("ap", ap, "tier1_mbps"), n))
        lines.append(Line(f"{ap} Tier 2", ("ap", ap, "tier2_mbps"), n, "dash"))
    text = (
        "Goodput per access point. Solid: each user's first subflow (Tier 1). "
        "Dashed: additional subflows (Tier 2)."
    )
    return Chart("tiers", "Throughput by tier", ("Mb/s",), lines, explains=text)


def _congestion(aps: Iterable[str]) -> Chart:
    lines = []
    for ap, n in place_colours(aps).items():
        lines.append(Line(ap, ("ap", ap, "mac_occupancy"), n))
        lines.append(Line(ap, ("ap", ap, "meter_mbps"), n, "dash", row=2, step=True))
    title = "MAC occupancy and Tier 2 limit"
    text = (
        "Above: MAC occupancy, how full the queue of each access point is; 1 is full. "
        "Below: the limit on the access point's Tier 2 traffic, dashed as all of Tier 2; no line "
        "means no limit."
    )
    return Chart("congestion", title, ("occupancy", "limit Mb/s"), lines, 1.05, text)


def _links(links: Iterable[str], last: Frame, about: About) -> Chart:
    lines = []
    for link, n in place_colours(links).items():
        lines.append(Line(link, ("link", link, "mbps"), n))
        if "mbps_ab" in last.get("link", {}).get(link, {}):
            a, b = about.ends.get(link, ("a", "b"))
            for key, name in (("mbps_ab", f"{a} to {b}"), ("mbps_ba", f"{b} to {a}")):
                lines.append(Line(f"{link}, {name}", ("link", link, key), n, drawn=False))
    text = (
        "Rate of each link in its busier direction, as Ethernet frames. "
        "The table has both directions."
    )
    return Chart("links", "Throughput per link", ("Mb/s",), lines, explains=text)


def _queues(links: Iterable[str]) -> Chart:
    lines = []
    for link, n in place_colours(links).items():
        lines.append(Line(link, ("link", link, "backlog"), n))
        lines.append(Line(link, ("link", link, "loss"), n, row=2))
    text = "Above: packets in the queue of each link. Below: the fraction of packets it lost."
    return Chart("queues", "Queues and loss", ("packets", "loss"), lines, explains=text)


def _users(users: Iterable[str]) -> Chart:
    lines = [Line(user, ("user", user, "mbps"), n) for user, n in user_colours(users).items()]
    text = "Goodput at the receiver, over all paths of a user."
    return Chart("users", "Throughput per user", ("Mb/s",), lines, explains=text)


def _held_back(users: Iterable[str], multipath: Iterable[str], frames: Sequence[Frame]) -> Chart:
    colours = user_colours(users)
    lines = [
        Line(user, ("user", user, HELD_BACK), colours[user])
        for user in multipath
        if user in colours
    ]
    text = (
        "Data that has arrived and that the application cannot read yet, because data before it is "
        "missing: lost, or still on its way over a slower subflow. While it waits, the subflows "
        "carry more than users read."
    )
    known = any(HELD_BACK in user for frame in frames for user in frame.get("user", {}).values())
    if frames and not known:
        text += " This run did not measure it."
    return Chart("held", "Data held back by reordering", ("kB",), lines, explains=text)


def _subflows(frames: Sequence[Frame]) -> Chart:
    known: dict[str, Frame] = {}
    for frame in frames:
        known |= frame.get("sf", {})
    colours = user_colours({_owner(name, subflow) for name, subflow in known.items()})
    lines = []
    for name in sorted(known, key=natural):
        subflow, number, only_user = known[name], _number(name), len(colours) == 1
        colour = subflow_colour(colours[_owner(name, subflow)], number, only_user)
        dash = subflow_dash(number)
        label = _subflow_label(name, subflow)
        lines.append(Line(label, ("sf", name, "rtt_ms"), colour, dash))
        lines.append(Line(label, ("sf", name, "cwnd"), colour, dash, row=2))
    title = "Subflows: RTT and congestion window"
    text = (
        "Above: smoothed round-trip time. Below: congestion window. "
        f"Each {'subflow' if len(colours) == 1 else 'user'} has a colour. The first "
        "subflow of a connection is solid, additional ones are broken, as in the drawing."
    )
    return Chart("subflows", title, ("RTT ms", "cwnd packets"), lines, explains=text)


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


def _quantities(last: Sequence[Frame]) -> list[tuple[str, str, str, Key]]:
    """Return all quantities by which runs can be compared, as (name, title, unit, key in a
    frame)."""
    found: list[tuple[str, str, str, Key]] = [
        ("total", "Total throughput", "Mb/s", ("user", "*", "mbps"))
    ]
    for ap in dict.fromkeys(ap for frame in last for ap in frame.get("ap", {})):
        for key, title, unit in (
            ("tier1_mbps", "Tier 1", "Mb/s"),
            ("tier2_mbps", "Tier 2", "Mb/s"),
            ("mac_occupancy", "MAC occupancy", "occupancy"),
            ("meter_mbps", "Tier 2 limit", "Mb/s"),
        ):
            found.append((f"{ap}-{key}", f"{ap}: {title}", unit, ("ap", ap, key)))
    found.append(("held", "Data held back by reordering", "kB", ("user", "*", HELD_BACK)))
    for user in user_colours({user for frame in last for user in frame.get("user", {})}):
        found.append((f"user-{user}", f"{user}: throughput", "Mb/s", ("user", user, "mbps")))
    return found
