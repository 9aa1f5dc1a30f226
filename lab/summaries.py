"""Numbers from series of samples: means over time, fairness, and when rates have settled.

Rates are Mb/s. A sample is the mean over the interval that ends at its time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from lab.frame import Frame

EPSILON_S = 1e-6  # two times that differ by less are the same

# When the rates of all users have settled.
#
# Rates have settled from the first moment on at which, for every user, the mean over the last
# `WINDOW_S` is within `BAND` of the user's final mean for `STAYS_S` without a break, and in
# `MOSTLY` of all windows until the end. The final mean is that of the last `FINAL_PART` of the
# time in which all users have traffic. S-MPTCP (section 5.1) measures the time until all
# throughputs stabilise, but does not say how; these values are ours.

WINDOW_S, BAND, STAYS_S, MOSTLY, FINAL_PART = 1.0, 0.1, 5.0, 0.9, 3 / 8
LEAST_S = 20.0  # of common traffic
HAS_TRAFFIC = 0.1  # of a user's largest rate
ROUNDING_S = 1e-9


def intervals(ends_s: Sequence[float]) -> list[float]:
    """Return the lengths in s of consecutive intervals. `ends_s` are their ends; the first one
    starts at 0 s."""
    return [end - start for start, end in zip([0.0, *ends_s], ends_s, strict=False)]


def intervals_between(
    ends_s: Sequence[float], start_s: float, end_s: float, *, whole: bool = False
) -> list[tuple[int, float]]:
    """Return (index, length in s) of each interval that ends after `start_s` and up to `end_s`.

    `ends_s` are the ends of consecutive intervals, in ascending order; the first one starts at 0 s.
    With `whole`, an interval that began before `start_s` is left out.
    """
    found = []
    first = bisect_right(ends_s, start_s + EPSILON_S)
    for index in range(first, bisect_right(ends_s, end_s + EPSILON_S)):
        begins_s = ends_s[index - 1] if index else 0.0
        if not whole or begins_s >= start_s - EPSILON_S:
            found.append((index, ends_s[index] - begins_s))
    return found


def mean(values: Iterable[float | None], weights: Sequence[float]) -> float | None:
    """Return the weighted mean of the values that are not None; None if their weights sum to 0."""
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


def convergence_s(frames: Sequence[Frame]) -> float | None:
    """Return the time in s until the rates of all users have settled.

    The time is counted from the start of the traffic that starts last. Samples after the end of the
    traffic that ends first do not count. A user without any traffic is ignored. Return None if all
    users have traffic together for less than `LEAST_S`, or if the rates never settle.
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

    The comment above `WINDOW_S` defines "settled". `times` are the ends of the samples in s.
    `rates` has one list for each user, with one rate per sample. Only samples between `start_s` and
    `end_s` count.
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
    """Return the start of the first and the end of the last sample with traffic, in s.

    `rates` are those of one user; `times` are the ends of the samples.
    """
    busy = [n for n, rate in enumerate(rates) if rate > HAS_TRAFFIC * max(rates)]
    return (times[busy[0] - 1] if busy[0] else 0.0), times[busy[-1]]


def _mean(times: Sequence[float], sums: Sequence[float], after_s: float, until_s: float) -> float:
    """Return the mean of the samples that end after `after_s` and not after `until_s`.

    `sums[n]` is the sum of the first n samples. If no sample ends in this interval, the result is
    the last sample that ends before it.
    """
    last = bisect_right(times, until_s + ROUNDING_S)
    first = min(bisect_right(times, after_s + ROUNDING_S), last - 1)
    return (sums[last] - sums[first]) / (last - first)
