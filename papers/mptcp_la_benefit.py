"""Statements about Ben, the benefit of a second path, over all pairs of bandwidths.

Ben is defined by eq (1) of MPTCP-LA. It is 0 if Multipath TCP carries as much as the better path
alone, and 1 if Multipath TCP carries the sum of both paths. A pair of bandwidths is the rate of the
WiFi path and the rate of the LTE path. For each pair, Ben is the mean over the seeds. The
throughput of one path alone is the largest value over the seeds, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from lab.results.statistics import MAX_ADDED_RUNS, Judgement, judged, resampled
from papers.base import PAYLOAD
from papers.mptcp_la_runs import (
    LOSSES,
    PAIRS,
    PLAIN,
    RTT_MS,
    Pair,
    alone_name,
    pair_name,
)
from papers.relations import Found

EQUAL = 1e-9  # relative difference below which two throughputs count as equal


def benefit(multipath_mbps: Any, single_mbps: Any) -> Any:
    """Return Ben(M), the benefit of Multipath TCP over the best single path (MPTCP-LA, section 3.3,
    eq (1)). It is 0 if Multipath TCP carries as much as this path, 1 if it carries the sum of all
    paths, and -1 if it carries nothing. A measured value can exceed 1.

    The first axis of `single_mbps` has the throughput of plain TCP over each path alone; its other
    axes are those of `multipath_mbps`. The result is not a number (nan) where all paths are 0. If
    only one of them is not 0, any gain counts as 1.
    """
    single = np.asarray(single_mbps, dtype=float)
    best = single.max(axis=0, initial=0.0)
    others = single.sum(axis=0) - best
    gained = multipath_mbps - best
    whole = np.where(gained < 0, best, others)
    share = gained / np.where(whole > 0, whole, 1.0)
    found = np.where(whole > 0, share, (gained > EQUAL * best).astype(float))
    return np.where(best > 0, found, np.nan)


Throughputs = tuple[tuple[str, tuple[float, ...]], ...]  # of all runs, in Mb/s, by case


def throughputs(found: Found, cases: frozenset[str]) -> Throughputs:
    return tuple((each, tuple(run["T"] for run in found[each])) for each in sorted(cases))


class Runs:
    """The throughput in Mb/s of the runs of each case (experiment), and the numbers of all runs."""

    def __init__(self, known: Throughputs) -> None:
        self.mbps = {case: np.array(values) for case, values in known}
        self.every = np.arange(min(map(len, self.mbps.values())))


TITLES = {"wifi": "WiFi", "lte": "LTE"}
TCP_PAYLOAD = 1448 / 1514  # the share of a frame that is data of plain TCP
TEN_TIMES = 9.99  # as a float, ten times one tested loss is not always another
NOISE = 0.02  # by which a median may rise although it should fall


def percent(loss: float) -> str:
    """Return a fraction as text in percent: `1 %` for 0.01."""
    return f"{100 * loss:g} %"


def pairs_of(found: Found) -> tuple[Pair, ...]:
    """Return the pairs of bandwidths (WiFi, LTE) for which there are runs."""
    return tuple(pair for pair in PAIRS if pair_name("wifi", LOSSES[0], pair, PLAIN) in found)


@dataclass(frozen=True)
class Benefit:
    """Ben, the benefit of a second path (MPTCP-LA, eq (1)), for each pair of bandwidths in `pairs`.

    The path `side` ("wifi" or "lte") loses the fraction `loss` of its packets. The other path loses
    none.
    """

    side: str
    loss: float
    strategy: str = PLAIN
    pairs: tuple[Pair, ...] = PAIRS

    def cases(self) -> frozenset[str]:
        """Return the names of the experiments that are needed: with both paths, and with each path
        alone."""
        pairs = {pair_name(self.side, self.loss, pair, self.strategy) for pair in self.pairs}
        alone = {
            alone_name(side, self.loss if side == self.side else 0.0, mbps)
            for pair in self.pairs
            for side, mbps in zip(RTT_MS, pair, strict=True)
        }
        return frozenset(pairs | alone)

    def of(self, found: Found) -> list[float]:
        """Return one value of Ben for each pair of bandwidths. A pair is left out if neither of its
        paths carries anything alone."""
        runs = Runs(throughputs(found, self.cases()))
        return [float(each) for each in self._by_pair(runs, runs.every) if not np.isnan(each)]

    def median(self, found: Found) -> float:
        runs = Runs(throughputs(found, self.cases()))
        return float(self.medians(runs, runs.every))

    def medians(self, runs: Runs, some: Any) -> Any:
        """Return the median of Ben over the pairs of bandwidths. The last axis of `some` has the
        numbers of the runs to use."""
        return np.nanmedian(self._by_pair(runs, some), axis=0)

    def _by_pair(self, runs: Runs, some: Any) -> Any:
        """Return Ben with one more axis, the pairs of bandwidths, before all others."""
        rows = []
        for pair in self.pairs:
            name = pair_name(self.side, self.loss, pair, self.strategy)
            single = np.stack(
                [
                    self._alone_mbps(runs, side, mbps, some)
                    for side, mbps in zip(RTT_MS, pair, strict=True)
                ]
            )
            together = runs.mbps[name][some]
            rows.append(benefit(together, single[..., None]).mean(axis=-1))
        return np.stack(rows)

    def _alone_mbps(self, runs: Runs, side: str, mbps: int, some: Any) -> Any:
        """Return the throughput of plain TCP over one path in Mb/s. It is reduced to the payload
        per frame of Multipath TCP, which is slightly smaller."""
        loss = self.loss if side == self.side else 0.0
        most = runs.mbps[alone_name(side, loss, mbps)][some].max(axis=-1)
        return most * PAYLOAD / TCP_PAYLOAD

    @property
    def title(self) -> str:
        """The name of this benefit in tables, such as `Ben(WiFi loses 1 %)`."""
        strategy = "" if self.strategy == PLAIN else f", {self.strategy}"
        return f"Ben({TITLES[self.side]} loses {percent(self.loss)}{strategy})"


class Statement(Protocol):
    """A statement about medians of Ben.

    Its margin is positive if the statement is true, negative if it is false, and not a number (nan)
    if no number of runs can decide it.
    """

    @property
    def is_strict(self) -> bool:
        """False if the statement is true where the margin is 0."""

    def margin(self, runs: Runs, some: Any) -> Any:
        """Return the margin. The last axis of `some` has the numbers of the runs to use."""


@lru_cache(maxsize=1 << 10)  # a page judges each statement several times
def _judged(statement: Statement, known: Throughputs) -> Judgement:
    runs = Runs(known)
    measured = float(statement.margin(runs, runs.every))
    if np.isnan(measured):
        return Judgement("open", MAX_ADDED_RUNS)

    def margin(some: Any) -> Any:
        found = statement.margin(runs, some)
        return np.where(np.isnan(found), -measured, found)

    return judged([resampled(len(runs.every), margin, statement.is_strict)])


def _by_loss(side: str, pairs: tuple[Pair, ...]) -> list[Benefit]:
    return [Benefit(side, loss, pairs=pairs) for loss in LOSSES]


def _cases_of_all_losses(side: str, pairs: tuple[Pair, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(each.cases() for each in _by_loss(side, pairs)))


@dataclass(frozen=True)
class Falls:
    """The statement that the median benefit of the second path does not rise when the loss of the
    path `side` grows.

    When the loss grows from one tested value to the next, a rise of at most `NOISE` is allowed.
    """

    side: str
    pairs: tuple[Pair, ...] = PAIRS
    is_strict: ClassVar = False

    def cases(self) -> frozenset[str]:
        return _cases_of_all_losses(self.side, self.pairs)

    def judgement(self, found: Found) -> Judgement:
        return _judged(self, throughputs(found, self.cases()))

    def margin(self, runs: Runs, some: Any) -> Any:
        medians = [each.medians(runs, some) for each in _by_loss(self.side, self.pairs)]
        return np.min([before + NOISE - after for before, after in pairwise(medians)], axis=0)

    def shown(self, found: Found) -> str:
        medians = (f"{each.median(found):.2f}" for each in _by_loss(self.side, self.pairs))
        losses = ", ".join(f"{100 * loss:g}" for loss in LOSSES)
        return f"{TITLES[self.side]} loses {losses} %: {', '.join(medians)}"


@dataclass(frozen=True)
class Bound:
    """The statement that the median of `benefit` is above `limit`. If `above` is False, it states
    that the median is at most `limit`."""

    benefit: Benefit
    above: bool
    limit: float

    def cases(self) -> frozenset[str]:
        return self.benefit.cases()

    @property
    def is_strict(self) -> bool:
        return self.above

    def judgement(self, found: Found) -> Judgement:
        return _judged(self, throughputs(found, self.cases()))

    def margin(self, runs: Runs, some: Any) -> Any:
        above = self.benefit.medians(runs, some) - self.limit
        return above if self.above else -above

    def shown(self, found: Found) -> str:
        operator = ">" if self.above else "<="
        value = self.benefit.median(found)
        return f"median {self.benefit.title} {value:.2f} {operator} {self.limit:g}"


@dataclass(frozen=True)
class ThresholdsApart:
    """The statement that LTE can lose ten times as much as WiFi before the second path has no
    benefit.

    The threshold of a path is the smallest tested loss at which the median benefit is at most 0.
    The threshold of LTE must be at least ten times the threshold of WiFi.
    """

    pairs: tuple[Pair, ...] = PAIRS
    is_strict: ClassVar = True

    def cases(self) -> frozenset[str]:
        return _cases_of_all_losses("wifi", self.pairs) | _cases_of_all_losses("lte", self.pairs)

    def _threshold(self, found: Found, side: str) -> float | None:
        """Return the smallest tested loss at which the median benefit is at most 0. Return None if
        the median is above 0 at every tested loss."""
        by_loss = _by_loss(side, self.pairs)
        return next((each.loss for each in by_loss if each.median(found) <= 0), None)

    def judgement(self, found: Found) -> Judgement:
        return _judged(self, throughputs(found, self.cases()))

    def margin(self, runs: Runs, some: Any) -> Any:
        """Return the smallest median benefit at all losses of LTE below ten times the threshold of
        WiFi. It is not a number (nan) if the tested losses are not enough to decide."""
        wifi, lte = (
            np.stack([each.medians(runs, some) for each in _by_loss(side, self.pairs)])
            for side in TITLES
        )
        losses, useless = np.array(LOSSES), wifi <= 0
        from_loss = np.where(useless.any(axis=0), losses[useless.argmax(axis=0)], 0.0)
        is_below = np.less.outer(losses, TEN_TIMES * from_loss)
        least = np.where(is_below, lte, np.inf).min(axis=0)
        enough = (from_loss > 0) & ((least <= 0) | (10 * from_loss <= LOSSES[-1]))
        return np.where(enough, least, np.nan)

    def shown(self, found: Found) -> str:
        losses = {title: self._threshold(found, side) for side, title in TITLES.items()}
        words = (
            f"{title} {'at no loss tried' if loss is None else f'from {percent(loss)}'}"
            for title, loss in losses.items()
        )
        return "median Ben <= 0: " + ", ".join(words)
