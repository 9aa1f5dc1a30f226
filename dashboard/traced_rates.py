"""The rates of traces that links and stations of a run follow, for the charts of the run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lab import metrics
from lab.scenario.schema import Scenario
from lab.topologies.topology import Topology
from lab.topologies.trace import Traced, means_mbps

MOST_POINTS = 600  # of a line
MOST_LINES = 8  # with so many points; more lines share the points of eight
Owner = tuple[str, str]  # such as "link", "path1"


@dataclass(frozen=True)
class TracedRate:
    """The rate of a trace as a line of a chart, under the line of `under`.

    The line belongs to the selection of `of`. A value at `t_s` is the mean rate since the time
    before.
    """

    chart: str
    name: str
    under: Owner
    of: Owner
    t_s: tuple[float, ...]
    mbps: tuple[float, ...]


def of_run(scenario: Scenario, duration_s: float) -> tuple[TracedRate, ...]:
    """Return the lines of all traces that have a rate, until `duration_s`."""
    network = scenario.network
    traced = [each for each in network.traces if "rate_mbps" in each.trace.columns]
    if not traced or duration_s <= 0:
        return ()
    points = max(2, MOST_POINTS * MOST_LINES // max(MOST_LINES, len(traced)))
    edges_s = _edges_s(duration_s, scenario.sample_interval_s, points)
    alone = _own_ways(network)
    return tuple(line for each in traced for line in _lines(each, edges_s, alone))


def _edges_s(duration_s: float, interval_s: float, points: int) -> tuple[float, ...]:
    """Return the times of samples from 0 on. If there are more than `points`, only each second,
    third, ... of them is taken."""
    samples = math.ceil(duration_s / interval_s - 1e-9)
    apart_s = interval_s * math.ceil(samples / points)
    times_s = (round(n * apart_s, 6) for n in range(math.ceil(duration_s / apart_s - 1e-9)))
    return (*times_s, duration_s)


def _lines(
    traced: Traced, edges_s: tuple[float, ...], alone: dict[str, str]
) -> Iterator[TracedRate]:
    kind, name, *more = traced.target.split(".")
    mbps = tuple(round(each, 4) for each in means_mbps(traced.trace, edges_s))
    if kind == "link":
        words, chart = " ".join((name, *more)), metrics.LINKS.name
        under = of = ("link", name)
    else:
        who, *way = more
        words, under, of = " ".join((who, "at", name, *way)), ("ap", name), ("user", who)
        chart = metrics.TIERS.name
    words = f"rate of {words} (trace)"
    yield TracedRate(chart, words, under, of, edges_s[1:], mbps)
    if user := alone.get(traced.target):
        owner = ("user", user)
        yield TracedRate(metrics.USERS.name, words, owner, owner, edges_s[1:], mbps)


def _own_ways(network: Topology) -> dict[str, str]:
    """Map links and stations, named as traces name them, to the user whose whole traffic passes
    them, if no other traffic does."""
    at: dict[str, list[tuple[str, str]]] = defaultdict(list)
    ways = [(f"link.{each.id}", each.a, each.b) for each in network.links]
    ways += [
        (f"cell.{cell.ap}.{each.user}", cell.ap, each.user)
        for cell in network.cells
        for each in cell.stations
    ]
    for target, a, b in ways:
        at[a].append((target, b))
        at[b].append((target, a))
    hosts = network.ids("user", "server")
    found: dict[str, str] = {}
    for user in network.users:
        here, came = user, ""
        while len(onward := [each for each in at[here] if each[0] != came]) == 1:
            came, here = onward[0]
            found[came] = user
            if here in hosts:
                break
    return found
