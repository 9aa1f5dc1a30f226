"""The numbers of result.json, computed from the samples and from the report of the engine. The
functions have no side effects.

A frame is one sample of the network. It holds means over the interval that ends at its time `t`, so
a mean over the run weights each frame with the length of its interval. An emulation measures this
length, because its samples can be late. Rates are goodput at the receiver in Mb/s. A figure that
was not measured is null, never zero.

Tier 1 is the traffic over a user's primary access point or link, Tier 2 the traffic over its other
ones (MP-SDN).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from lab.run.frame import ApSample, Frame
from lab.run.report import ConnectionReport, Report
from lab.topologies.topology import Topology

# Convergence: rates have settled from the first moment on at which, for every user, the mean over
# the last `WINDOW_S` is within `BAND` of the user's final mean for `STAYS_S` without a break, and
# in `MOSTLY` of all windows until the end. The final mean is that of the last `FINAL_PART` of the
# time in which all users have traffic. S-MPTCP (section 5.1) measures the time until all
# throughputs stabilise, but does not say how; these values are ours.
WINDOW_S, BAND, STAYS_S, MOSTLY, FINAL_PART = 1.0, 0.1, 5.0, 0.9, 3 / 8
LEAST_S = 20.0  # the shortest time in which all users have traffic
HAS_TRAFFIC = 0.1  # a user has traffic at more than this fraction of its largest rate
ROUNDING_S = 1e-9


def convergence_s(frames: Sequence[Frame]) -> float | None:
    """Return the time in s from when all users have traffic until all rates have settled.

    Only the time in which all users have traffic counts; a user without any traffic is ignored.
    Return None if that time is shorter than `LEAST_S`, or if the rates never settle.
    """
    times = [frame.t for frame in frames]
    names = {user for frame in frames for user in frame.user}
    rates = [
        [(each.mbps or 0.0) if (each := frame.user.get(user)) else 0.0 for frame in frames]
        for user in sorted(names)
    ]
    rates = [each for each in rates if max(each) > 0]
    if not rates:
        return None
    spans = [_span(times, each) for each in rates]
    start_s, end_s = max(first for first, _ in spans), min(last for _, last in spans)
    return settled_s(times, rates, start_s, end_s) if end_s - start_s >= LEAST_S else None


def settled_s(
    times: Sequence[float], rates: Sequence[Sequence[float]], start_s: float, end_s: float
) -> float | None:
    """Return the time in s from `start_s` until the rates have settled, or None if they never do.

    `times` are the ends of the samples in s. `rates` holds for each user one rate per sample. Only
    samples between `start_s` and `end_s` count.
    """
    final_s = end_s - FINAL_PART * (end_s - start_s)
    ends = [t for t in times if start_s + WINDOW_S - ROUNDING_S <= t <= end_s]
    inside = [True] * len(ends)
    for each in rates:
        sums = [0.0, *accumulate(each)]
        target = _mean(times, sums, final_s, end_s)
        for n, t in enumerate(ends):
            inside[n] &= abs(_mean(times, sums, t - WINDOW_S, t) - target) <= BAND * target
    good = unbroken_s = 0.0
    settled = None
    for n in reversed(range(len(ends))):
        good += inside[n]
        unbroken_s = unbroken_s if inside[n] else ends[n]  # 0, or the next time outside the band
        stays = inside[n] and (not unbroken_s or unbroken_s > ends[n] + STAYS_S)
        if stays and ends[n] + STAYS_S <= ends[-1] and good >= MOSTLY * (len(ends) - n):
            settled = max(0.0, ends[n] - WINDOW_S - start_s)
    return settled


def _span(times: Sequence[float], rates: Sequence[float]) -> tuple[float, float]:
    """Return the start of the first and the end of the last sample with traffic, in s."""
    busy = [n for n, rate in enumerate(rates) if rate > HAS_TRAFFIC * max(rates)]
    return (times[busy[0] - 1] if busy[0] else 0.0), times[busy[-1]]


def _mean(times: Sequence[float], sums: Sequence[float], after_s: float, until_s: float) -> float:
    """Return the mean of the samples that end after `after_s` and not after `until_s`.

    `sums[n]` is the sum of the first n samples. If no sample ends there, use the last one before.
    """
    last = bisect_right(times, until_s + ROUNDING_S)
    first = min(bisect_right(times, after_s + ROUNDING_S), last - 1)
    return (sums[last] - sums[first]) / (last - first)


EPSILON_S = 1e-6  # two times that differ by less are the same
SCHEMA = 2  # of manifest.json and result.json; schema 1 held wire rates
NOT_SAMPLED = ApSample(tier1_mbps=None, tier2_mbps=None)


@dataclass(frozen=True)
class Header:
    """The fields of result.json that need no measurement.

    `flips` lists the changes that were made by hand during the run, each as {"t", "target", "old",
    "value"}. `stack` names the implementation of Multipath TCP; it is None if the simulator's
    settings match no known implementation.
    """

    run_id: str
    scenario: str
    strategy: str
    engine: str
    seed: int
    rate_scale: float
    status: str
    flips: tuple[Mapping[str, Any], ...] = ()
    stack: str | None = None


def result(
    header: Header, topology: Topology, frames: Sequence[Frame], report: Report | None
) -> dict[str, Any]:
    """Return the complete content of result.json. `report` is None if the engine returned none, for
    example after a crash."""
    known = report or Report()
    weights = [
        planned_s if frame.interval_s is None else frame.interval_s
        for frame, planned_s in zip(frames, intervals([each.t for each in frames]), strict=True)
    ]
    aps = {ap: _ap(frames, weights, ap, topology) for ap in topology.ids("wifi", "lte")}
    users = {
        user: _user(frames, weights, user, topology, known.connections) for user in topology.users
    }
    rates = [
        user["throughput_mbps"] for user in users.values() if user["throughput_mbps"] is not None
    ]
    return {
        "schema": SCHEMA,
        "run_id": header.run_id,
        "scenario": header.scenario,
        "strategy": header.strategy,
        "cc": known.cc,
        "engine": header.engine,
        "seed": header.seed,
        "duration_s": frames[-1].t if frames else 0.0,
        "rate_scale": header.rate_scale,
        "flips": [dict(each) for each in header.flips],
        "stack": header.stack,
        "status": header.status,
        "overloaded": known.overload.overloaded,
        "overload": known.overload.to_json() if report else {},
        "throughput_mbps": _rounded(sum(rates)) if rates else None,
        # relayed traffic crosses several access points, so its subflows are summed instead
        "tiers": _tiers(frames, weights, {} if topology.relays else aps),
        "aps": aps,
        "users": users,
        "connections": known.connections_json(),
        "fairness": {"jain": _rounded(jain(rates)), "sd_mbps": _rounded(sd(rates))},
        "convergence_s": convergence_s(frames),
        "mptcp": asdict(known.mptcp),
    }


def intervals(ends_s: Sequence[float]) -> list[float]:
    """Return the lengths in s of consecutive intervals that end at `ends_s`; the first starts at 0
    s."""
    return [end - start for start, end in zip([0.0, *ends_s], ends_s, strict=False)]


def intervals_between(
    ends_s: Sequence[float], start_s: float, end_s: float, *, whole: bool = False
) -> list[tuple[int, float]]:
    """Return (index, length in s) of each interval that ends after `start_s` and up to `end_s`.

    The intervals are those of `intervals`; `ends_s` must rise. With `whole`, leave out an interval
    that began before `start_s`.
    """
    found = []
    first = bisect_right(ends_s, start_s + EPSILON_S)
    for index in range(first, bisect_right(ends_s, end_s + EPSILON_S)):
        begins_s = ends_s[index - 1] if index else 0.0
        if not whole or begins_s >= start_s - EPSILON_S:
            found.append((index, ends_s[index] - begins_s))
    return found


def mean(values: Iterable[float | None], weights: Sequence[float]) -> float | None:
    """Return the mean of the values that are not None; None if their weights sum to 0."""
    pairs = [
        (value, weight)
        for value, weight in zip(values, weights, strict=True)
        if value is not None and weight > 0
    ]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def jain(rates: Sequence[float]) -> float | None:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2) of the n rates x (Jain, Chiu and Hawe
    1984); None if all rates are 0.

    It is 1 if all n rates are equal, and 1/n if one user gets everything.
    """
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def sd(rates: Sequence[float]) -> float | None:
    """Return the standard deviation with divisor n; None for an empty list."""
    if not rates:
        return None
    centre = sum(rates) / len(rates)
    return math.sqrt(sum((rate - centre) ** 2 for rate in rates) / len(rates))


def _ap(
    frames: Sequence[Frame], weights: Sequence[float], ap: str, topology: Topology
) -> dict[str, Any]:
    samples = [frame.ap.get(ap, NOT_SAMPLED) for frame in frames]
    tiers = [
        mean([each.tier1_mbps for each in samples], weights),
        mean([each.tier2_mbps for each in samples], weights),
    ]
    known = [tier for tier in tiers if tier is not None]
    return {
        "kind": topology.cell(ap).kind,
        "throughput_mbps": _rounded(sum(known)) if known else None,
        "tier1_mbps": _rounded(tiers[0]),
        "tier2_mbps": _rounded(tiers[1]),
        "mac_occupancy_mean": _rounded(mean([each.mac_occupancy for each in samples], weights)),
    }


def _user(
    frames: Sequence[Frame],
    weights: Sequence[float],
    user: str,
    topology: Topology,
    connections: Iterable[ConnectionReport],
) -> dict[str, Any]:
    rates = [frame.user[user].mbps if user in frame.user else None for frame in frames]
    return {
        "kind": "multipath" if user in topology.multipath else "single_path",
        "throughput_mbps": _rounded(mean(rates, weights)),
        "by_ap": _by_ap(frames, weights, user) or _by_ap_of(connections, user, topology),
    }


def _by_ap(frames: Sequence[Frame], weights: Sequence[float], user: str) -> dict[str, float | None]:
    """Return a user's mean rate in Mb/s over each access point, from the subflow samples.

    It is empty if no sample names this user and an access point. A subflow that is missing from a
    frame carried nothing in its interval.
    """
    shares: dict[str, list[float]] = {}
    for n, frame in enumerate(frames):
        for subflow in frame.sf.values():
            if subflow.user == user and subflow.ap:
                series = shares.setdefault(subflow.ap, [0.0] * len(frames))
                series[n] += subflow.mbps or 0.0
    return {ap: _rounded(mean(series, weights)) for ap, series in sorted(shares.items())}


def _by_ap_of(
    connections: Iterable[ConnectionReport], user: str, topology: Topology
) -> dict[str, float | None]:
    """Like `_by_ap`, but from the subflows in the engine's report.

    Each subflow counts for the first access point on its path.
    """
    aps = topology.ids("wifi", "lte")
    shares: dict[str, float] = {}
    mine = (each for each in connections if each.user == user)
    for subflow in (each for connection in mine for each in connection.subflows):
        ap = next((node for node in subflow.path if node in aps), None)
        if ap and subflow.throughput_mbps is not None:
            shares[ap] = shares.get(ap, 0.0) + subflow.throughput_mbps
    return {ap: _rounded(rate) for ap, rate in sorted(shares.items())}


def _tiers(
    frames: Sequence[Frame], weights: Sequence[float], aps: Mapping[str, Mapping[str, Any]]
) -> dict[str, float | None]:
    """Return the total rate in Mb/s of each tier, keyed "1" and "2".

    It is the sum over `aps`, or over the subflows if `aps` is empty. A subflow without a tier
    counts as Tier 1.
    """
    sums: dict[str, float | None] = {}
    for n in (1, 2):
        if aps:
            known = [ap[f"tier{n}_mbps"] for ap in aps.values() if ap[f"tier{n}_mbps"] is not None]
            sums[str(n)] = _rounded(sum(known)) if known else None
        else:
            rates = [_subflows_of_tier(frame, n) for frame in frames]
            sums[str(n)] = _rounded(mean(rates, weights))
    return sums


def _subflows_of_tier(frame: Frame, tier: int) -> float:
    return float(sum(each.mbps or 0.0 for each in frame.sf.values() if (each.tier or 1) == tier))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
