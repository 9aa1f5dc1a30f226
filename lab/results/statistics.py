"""Estimate means and their ratios from few runs: 95 % bootstrap intervals, and verdicts in words.

A bootstrap percentile interval of few values is too narrow. Here it is made wider, in the same
proportion in which Student's t makes a normal interval wider (T. Hesterberg, "What teachers should
know about the bootstrap", The American Statistician 69, 2015, section 3.2, "expanded percentile").

Each metric is judged alone. If twenty metrics do not really differ, one of them is still expected
to be reported as different (5 %).

A statement about runs, such as "a is at most 1.1 b", is judged by its margins: numbers that are
positive if it is true and negative if it is not, here 1.1 b - a. It holds if every 95 % interval of
a margin is on the positive side, fails if one is on the negative side, and is open otherwise. With
fewer than `MIN_RUNS` runs it is open. docs/definitions.md states how often this rule is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from lab.errors import MachineLacks

MIN_RUNS = 5  # with fewer values a bootstrap interval is not reliable
MAX_ADDED_RUNS = 200
MAX_RATIO = 1000
RESAMPLES = 4999
MOST_VALUES = 1_000_000  # of resamples in memory at once
CONFIDENCE = 0.95
NORMAL = 1.959964  # 97.5 % of normal values are smaller
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


Decision = Literal["holds", "open", "fails"]


@dataclass(frozen=True)
class Judgement:
    """Whether a statement about runs holds, fails or is open.

    `added` is the number of further runs that would probably decide an open statement, at most
    `MAX_ADDED_RUNS`.
    """

    said: Decision
    added: int = 0

    @property
    def text(self) -> str:
        """The decision, such as `fails` or `open, add 12`."""
        return f"open, {_more(self.added)}" if self.said == "open" else self.said


@dataclass(frozen=True)
class Margin:
    """A number that is positive if a statement is true and negative if it is false, with its 95 %
    interval from `low` to `high`, from `n` runs.

    If the number is 0, the statement is true, or false if `is_strict`. Only an interval without
    width shows that: numbers with few values, such as counts of collisions, often end at 0.
    """

    value: float
    low: float
    high: float
    n: int
    is_strict: bool = False

    @property
    def judgement(self) -> Judgement:
        if self.n < MIN_RUNS:
            return Judgement("open", MIN_RUNS - self.n)
        if self.low == self.high == 0:
            return Judgement("fails" if self.is_strict else "holds")
        if self.low > 0:
            return Judgement("holds")
        if self.high < 0:
            return Judgement("fails")
        return Judgement("open", _added(self.n, self.high - self.low, self.value))


def judged(margins: Iterable[Margin]) -> Judgement:
    """Judge a statement that is true if all its margins are positive. The module docstring has the
    rule."""
    found = [each.judgement for each in margins]
    if any(each.said == "fails" for each in found):
        return Judgement("fails")
    added = [each.added for each in found if each.said == "open"]
    return Judgement("open", max(added)) if added else Judgement("holds")


def difference(
    larger: Sequence[float], smaller: Sequence[float], times: float = 1.0, is_strict: bool = False
) -> Margin:
    """Return the margin of "the mean of `larger` is at least `times` the mean of `smaller`" (with
    `is_strict`: it is larger).

    If there are as many values of both, the n-th values belong together, because they are of the
    same seed.
    """
    n, value = min(len(larger), len(smaller)), mean(larger) - times * mean(smaller)
    if n < MIN_RUNS:
        return Margin(value, value, value, n, is_strict)
    return Margin(value, *_interval(tuple(larger), tuple(smaller), times), n, is_strict)


@lru_cache(maxsize=1 << 14)  # a page judges each relation several times
def _interval(
    larger: tuple[float, ...], smaller: tuple[float, ...], times: float
) -> tuple[float, float]:
    if len(larger) == len(smaller):
        pairs = zip(larger, smaller, strict=True)
        margins = [first - times * second for first, second in pairs]
        return _bootstrap((margins,), lambda found, axis: found.mean(axis=axis))

    def statistic(first: Any, second: Any, axis: int) -> Any:
        return first.mean(axis=axis) - times * second.mean(axis=axis)

    return _bootstrap((larger, smaller), statistic)


def resampled(n: int, statistic: Callable[[Any], Any], is_strict: bool = False) -> Margin:
    """Return a margin that is computed from `n` runs together, such as the median of several means.

    `statistic` gets an array whose last axis has `n` numbers of runs, from 0, some of them several
    times. It returns the margin for each entry of the other axes.
    """
    import numpy  # imported here, as the command line starts faster without it

    value = float(statistic(numpy.arange(n)))
    if n < MIN_RUNS:
        return Margin(value, value, value, n, is_strict)
    interval = _bootstrap((range(n),), lambda found, axis: statistic(found.astype(int)))
    return Margin(value, *interval, n, is_strict)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of a share of which `hits` of `n` runs are a sample
    (E. B. Wilson, "Probable inference", Journal of the American Statistical Association 22,
    1927)."""
    share, spread = hits / n, NORMAL**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return middle - half, middle + half


def share_between(hits: int, n: int, least: float, most: float) -> tuple[Margin, Margin]:
    """Return the margins of "the share of runs that hit is between `least` and `most`", of which
    `hits` of `n` did."""
    low, high = wilson(hits, n)
    share = hits / n
    return (
        Margin(share - least, low - least, high - least, n),
        Margin(most - share, most - high, most - low, n),
    )


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
    if round(change) == round(low) == round(high) == 0:
        return Verdict(f"no difference above 0.5 %, n = {n}", "no difference above 0.5 %")
    added = _added(n, high - low, change)
    return _open(f"{round(change):+d} % [{round(low)}, {round(high)}]", n, added)


def _same(n: int) -> Verdict:
    return Verdict(f"no difference, n = {n}", "no difference")


def _open(change: str, n: int, added: int) -> Verdict:
    text = f"{change}, n = {n}: open, not enough runs to tell this from chance, {_more(added)}"
    return Verdict(text, f"open, {change}")


def _added(n: int, width: float, distance: float) -> int:
    """Return how many runs to add to `n` until an interval of this width, around a value at this
    distance from the limit, probably does not reach the limit. Intervals shrink as 1/sqrt(n)."""
    needed = n * (width / 2 / abs(distance)) ** 2 if distance else math.inf
    return max(1, math.ceil(min(needed, n + MAX_ADDED_RUNS)) - n)


def _more(added: int) -> str:
    return f"add {added}" if added < MAX_ADDED_RUNS else f"add {MAX_ADDED_RUNS} or more"


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
