"""Estimate means and their ratios from few runs: 95 % bootstrap intervals, and verdicts in words.

A bootstrap percentile interval of few values is too narrow. Here it is made wider, in the same
proportion in which Student's t makes a normal interval wider (T. Hesterberg, "What teachers should
know about the bootstrap", The American Statistician 69, 2015, section 3.2, "expanded percentile").

Each metric is judged alone. If twenty metrics do not really differ, one of them is still expected
to be reported as different (5 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import MachineLacks

MIN_RUNS = 5  # with fewer values a bootstrap interval is not reliable
MAX_ADDED_RUNS = 200
MAX_RATIO = 1000
RESAMPLES = 4999
MOST_VALUES = 1_000_000  # of resamples in memory at once
CONFIDENCE = 0.95
WORDS = {  # by direction: 1 where more is better, -1 where less is better, 0 where neither is
    1: ("better", "worse"),
    -1: ("worse", "better"),
    0: ("higher", "lower"),
}


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over `n` runs, and its 95 % interval from `low` to `high`.

    `mean` is None if `n` is 0. `low` and `high` are None if `n` is less than `MIN_RUNS`.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def text(self) -> str:
        """The text `mean [low, high]` with three significant digits.

        It is only `mean` if there is no interval, and `-` if there is no mean.
        """
        if self.mean is None:
            return "-"
        interval = "" if self.low is None else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.mean:.3g}{interval}"


@dataclass(frozen=True)
class Verdict:
    """How the mean of one metric in a group of runs differs from that in another group, in words.

    `short` fits into a table cell. `text` adds the number of runs. If the difference may be chance,
    `text` also says how many more runs are needed.
    """

    text: str
    short: str


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of `values`, which must not be empty."""
    return sum(values) / len(values)


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of `values`, with its 95 % interval if there are at least `MIN_RUNS`
    values."""
    if not values:
        return Estimate(None, None, None, 0)
    if len(values) < MIN_RUNS:
        return Estimate(mean(values), None, None, len(values))
    low, high = _bootstrap((values,), lambda x, axis: x.mean(axis=axis))
    return Estimate(mean(values), low, high, len(values))


def ratio_interval(
    base: Sequence[float], other: Sequence[float], paired: bool = False
) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of the change in % from the mean of `base` to the mean
    of `other`.

    With `paired`, the n-th values of both lists belong together, for instance because the two runs
    had the same seed. Pairs are then resampled as a whole, so variation that both values share
    cancels out.
    """
    return _bootstrap((base, other), _change_percent, paired)


def verdict(
    base: Sequence[float], other: Sequence[float], direction: int = 1, paired: bool = False
) -> Verdict:
    """Compare the mean of `other` with the mean of `base`, and return the verdict in words.

    `direction` is 1 if a larger value of the metric is better, -1 if a smaller value is better, and
    0 if neither is. With `paired`, the n-th values of both lists belong together (see
    `ratio_interval`).
    """
    n = min(len(base), len(other))
    if not n:
        return Verdict("not measured", "not measured")
    if not any(base):
        if not any(other):
            return _same(n)
        text = f"{mean(other):.3g}, and 0 in every run that it is compared with"
        return Verdict(text, text)
    if paired and list(base) == list(other):
        return _same(n)
    change = 100 * (mean(other) / mean(base) - 1)
    if n < MIN_RUNS:
        return _open(f"{round(change):+d} %", n, MIN_RUNS - n)
    low, high = ratio_interval(base, other, paired)
    if low == high == 0:
        return _same(n)
    if low > 0 or high < 0:
        near, far = sorted((abs(low), abs(high)))
        words = f"{WORDS[direction][change < 0]} by {_percent(abs(change))} %"
        short = f"{words} [{_percent(near)}, {_percent(far)}]"
        return Verdict(f"{short}, n = {n}", short)
    needed = n * ((high - low) / 2 / abs(change)) ** 2 if change else math.inf
    added = max(1, math.ceil(min(needed, n + MAX_ADDED_RUNS)) - n)
    return _open(f"{round(change):+d} % [{round(low)}, {round(high)}]", n, added)


def _same(n: int) -> Verdict:
    return Verdict(f"the same in every run, n = {n}", "the same in every run")


def _open(change: str, n: int, added: int) -> Verdict:
    more = f"add {added}" if added < MAX_ADDED_RUNS else f"add {MAX_ADDED_RUNS} or more"
    text = f"{change}, n = {n}: not enough runs to tell this from chance, {more}"
    return Verdict(text, f"not clear, {change}")


def _percent(value: float) -> str:
    """Format a percentage without decimals, or with two significant digits if it is below 1 %."""
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{value:.2g}"


def _change_percent(base: Any, other: Any, axis: int) -> Any:
    """Return the change in % from the mean of `base` to that of `other`, along `axis` of numpy
    arrays.

    The ratio of the means is limited to `MAX_RATIO`, because a resample of `base` can consist of
    zeros only.
    """
    before, after = base.mean(axis=axis), other.mean(axis=axis)
    least = before.clip(after / MAX_RATIO)
    return 100 * (after - before) / (least + (least == 0))


def _bootstrap(
    samples: tuple[Sequence[float], ...], statistic: Any, paired: bool = False
) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of a statistic; the module docstring says how.

    `statistic` is called with one array for each sample, and then the axis. With `paired`, all
    samples have the same length, and their n-th values are resampled together. If no sample varies,
    both ends are equal. The random seed is fixed, so the same samples always give the same
    interval.
    """
    try:
        import numpy
        from scipy.stats import bootstrap, norm, t
    except ImportError as error:
        raise MachineLacks(
            f"compute intervals: {error}. Try: ./run_lab.sh compare, which installs what is missing"
        ) from error
    arrays = [numpy.asarray(values, dtype=float) for values in samples]
    if all(each.min() == each.max() for each in arrays):
        point = float(statistic(*arrays, axis=0))
        return point, point
    rng, n = numpy.random.default_rng(1), min(map(len, samples))
    level = 1 - 2 * float(norm.cdf(-math.sqrt(n / (n - 1)) * t.ppf((1 + CONFIDENCE) / 2, n - 1)))
    found = bootstrap(
        arrays,
        statistic,
        paired=paired,
        n_resamples=RESAMPLES,
        batch=max(1, MOST_VALUES // max(map(len, samples))),
        confidence_level=level,
        method="percentile",
        vectorized=True,
        rng=rng,
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
