"""Completion times: how long the transfers of a run took, by kind of traffic and by size.

A transfer is a file, a flow of a workload, the answer to a request, a page, or a chunk of a video.
Its slowdown is its completion time over the time that it would have taken alone on the user's
fastest path (`lab.topologies.alone`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from lab.run.report import ConnectionReport, ExchangeReport, VideoReport
from lab.scenario.flows import scaled_traffic, schedule
from lab.scenario.schema import Scenario
from lab.topologies.alone import AlonePath, paths_alone

MB = 1_000_000
SMALL_MB, MEDIUM_MB = 0.1, 10.0  # the largest of each class (pFabric, SIGCOMM 2013, section 5.1)
AloneS = Callable[[str, str, int], float]  # user, direction, bytes on the wire
Numbers = Mapping[str, float | None]
Section = Mapping[str, float | Mapping[str, Numbers] | None]
VideoSection = Mapping[str, float | list[dict[str, str | float]] | None]
SIZES = ("small", "medium", "large")
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Transfer:
    """One transfer. `start_s` is the time in the run at which it began, `mb` its size in the units
    of the scenario file. `completion_s` and `slowdown` are None if it was not complete at the end.
    """

    kind: str
    user: str
    connection: str
    start_s: float
    mb: float
    completion_s: float | None
    slowdown: float | None

    @property
    def size_class(self) -> str:
        small, medium, large = SIZES
        return small if self.mb <= SMALL_MB else medium if self.mb <= MEDIUM_MB else large


def transfers(
    scenario: Scenario,
    connections: Iterable[ConnectionReport],
    exchanges: Iterable[ExchangeReport] = (),
) -> list[Transfer]:
    """Return the transfers of a run that began before its end, ordered by their beginning.

    `connections` and `exchanges` are those of the engine's report; a file or a flow without a
    connection did not begin.
    """
    taken_s = {each.id: each.completion_s for each in connections}
    alone_s = _alone(scenario)
    found = [*_of_flows(scenario, taken_s, alone_s)]
    found += [_of_exchange(each, scenario.rate_scale, alone_s) for each in exchanges]
    return sorted(found, key=lambda each: each.start_s)


def _of_exchange(each: ExchangeReport, rate_scale: float, alone_s: AloneS) -> Transfer:
    return Transfer(
        each.kind,
        each.user,
        each.connection,
        round(each.at_s, 6),
        round(each.size_bytes / rate_scale / MB, 6),
        each.completion_s,
        _slowdown(each.completion_s, alone_s(each.user, "down", each.size_bytes)),
    )


def _of_flows(
    scenario: Scenario, taken_s: Mapping[str, float | None], alone_s: AloneS
) -> Iterator[Transfer]:
    for act in schedule(scaled_traffic(scenario), scenario.seed, scenario.duration_s):
        flow = act.flow
        if act.verb != "start" or flow.volume_bytes is None or flow.id not in taken_s:
            continue
        completion_s = taken_s[flow.id]
        yield Transfer(
            flow.kind,
            flow.user,
            flow.id,
            round(act.at_s, 6),
            round(flow.volume_bytes / scenario.rate_scale / MB, 6),
            completion_s,
            _slowdown(completion_s, alone_s(flow.user, flow.direction, flow.volume_bytes)),
        )


def _slowdown(completion_s: float | None, alone_s: float) -> float | None:
    return round(completion_s / alone_s, 4) if completion_s is not None and alone_s else None


def _alone(scenario: Scenario) -> AloneS:
    @cache
    def found(user: str, direction: str) -> tuple[AlonePath, ...]:
        return paths_alone(scenario.network, user, direction)

    def seconds(user: str, direction: str, size_bytes: int) -> float:
        return min((each.seconds(size_bytes) for each in found(user, direction)), default=0.0)

    return seconds


def section(found: Sequence[Transfer]) -> Section:
    """Return the object under the key `flows` of result.json, or {} if there are no transfers."""
    if not found:
        return {}
    groups: dict[str, dict[str, Numbers]] = {}
    kinds = dict.fromkeys(each.kind for each in found)
    groups["by_kind"] = {kind: _numbers([e for e in found if e.kind == kind]) for kind in kinds}
    groups["by_size"] = {
        size: _numbers(several)
        for size in SIZES
        if (several := [each for each in found if each.size_class == size])
    }
    return {**_numbers(found), **groups}


def _numbers(found: Sequence[Transfer]) -> Numbers:
    """Percentiles are those of the transfers that were complete; `count` has the others, too."""
    times = sorted(each.completion_s for each in found if each.completion_s is not None)
    slowdowns = sorted(each.slowdown for each in found if each.slowdown is not None)
    return {
        "count": len(found),
        "completed": len(times),
        **{f"fct_p{p}_s": _rounded(percentile(times, p)) for p in PERCENTILES},
        **{f"slowdown_p{p}": _rounded(percentile(slowdowns, p)) for p in PERCENTILES},
    }


def videos_section(found: Sequence[VideoReport]) -> VideoSection:
    """Return the object under the key `video` of result.json: means over all videos, and each
    video; {} if there are none."""
    if not found:
        return {}
    rates = [each.bitrate_mbps for each in found if each.bitrate_mbps is not None]
    return {
        "count": len(found),
        "bitrate_mbps": _rounded(sum(rates) / len(rates)) if rates else None,
        **{
            key: _rounded(sum(getattr(each, key) for each in found) / len(found))
            for key in ("startup_s", "stalls", "stall_s", "switches")
        },
        "videos": [asdict(each) for each in found],
    }


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """Return a percentile of numbers in ascending order, with linear interpolation between two of
    them; None if there are none."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
