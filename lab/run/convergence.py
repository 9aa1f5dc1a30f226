"""Compute after which time the rates of all users have settled.

Rates have settled from the first moment on at which, for every user, the mean over the last
`WINDOW_S` is within `BAND` of the user's final mean for `STAYS_S` without a break, and in `MOSTLY`
of all windows until the end. The final mean is that of the last `FINAL_PART` of the time in which
all users have traffic. S-MPTCP (section 5.1) measures the time until all throughputs stabilise, but
does not say how; these values are ours.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from lab.run.frame import Frame

WINDOW_S, BAND, STAYS_S, MOSTLY, FINAL_PART = 1.0, 0.1, 5.0, 0.9, 3 / 8
LEAST_S = 20.0  # of common traffic
HAS_TRAFFIC = 0.1  # of a user's largest rate
ROUNDING_S = 1e-9


def convergence_s(frames: Sequence[Frame]) -> float | None:
    """Return the time in s from the start of the last user's traffic until all rates have settled.

    The time ends with the first user's traffic. A user without any traffic does not count. Return
    None if the rates never settle, or if all users have traffic at the same time for less than
    `LEAST_S`.
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
    """Return the time in s from `start_s` until the rates have settled, or None.

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
    """Return the begin of the first and the end of the last sample with traffic, in s."""
    busy = [n for n, rate in enumerate(rates) if rate > HAS_TRAFFIC * max(rates)]
    return (times[busy[0] - 1] if busy[0] else 0.0), times[busy[-1]]


def _mean(times: Sequence[float], sums: Sequence[float], after_s: float, until_s: float) -> float:
    """Return the mean of the samples that end after `after_s` and not after `until_s`.

    `sums[n]` is the sum of the first n samples. If no sample ends there, return the next one.
    """
    last = bisect_right(times, until_s + ROUNDING_S)
    first = min(bisect_right(times, after_s + ROUNDING_S), last - 1)
    return (sums[last] - sums[first]) / (last - first)
