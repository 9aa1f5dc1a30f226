"""Statements about Ben, the benefit of a second path, over all pairs of bandwidths.

Ben is defined by eq (1) of MPTCP-LA. It is 0 if Multipath TCP carries as much as the better path
alone, and 1 if Multipath TCP carries the sum of both paths. A pair of bandwidths is the rate of the
WiFi path and the rate of the LTE path. For each pair, Ben is the mean over the seeds. The
throughput of one path alone is the largest value over the seeds, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lab.results.statistics import mean
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
from papers.relations import Found, Verdict

EQUAL = 1e-9  # relative difference below which two throughputs count as equal


def benefit(multipath_mbps: float, single_mbps: Sequence[float]) -> float | None:
    """Return Ben(M), the benefit of Multipath TCP over the best single path (MPTCP-LA, section 3.3,
    eq (1)). It is 0 if Multipath TCP carries as much as this path, 1 if it carries the sum of all
    paths, and -1 if it carries nothing. A measured value can exceed 1.

    `single_mbps` has the throughput of plain TCP over each path alone. Return None if all of these
    are 0. If only one of them is not 0, any gain counts as 1.
    """
    best = max(single_mbps, default=0.0)
    if best <= 0:
        return None
    gained = multipath_mbps - best
    if gained < 0:
        return gained / best
    others = sum(single_mbps) - best
    if others > 0:
        return gained / others
    return 1.0 if gained > EQUAL * best else 0.0


TITLES = {"wifi": "WiFi", "lte": "LTE"}
TCP_PAYLOAD = 1448 / 1514  # the share of a frame that is data of plain TCP
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
        values = []
        for pair in self.pairs:
            single = [
                self._alone_mbps(found, side, mbps) for side, mbps in zip(RTT_MS, pair, strict=True)
            ]
            runs = found[pair_name(self.side, self.loss, pair, self.strategy)]
            defined = [each for run in runs if (each := benefit(run["T"], single)) is not None]
            if defined:
                values.append(mean(defined))
        return values

    def _alone_mbps(self, found: Found, side: str, mbps: int) -> float:
        """Return the throughput of plain TCP over one path in Mb/s. It is reduced to the payload
        per frame of Multipath TCP, which is slightly smaller."""
        loss = self.loss if side == self.side else 0.0
        most = max(each["T"] for each in found[alone_name(side, loss, mbps)])
        return most * PAYLOAD / TCP_PAYLOAD

    def median(self, found: Found) -> float:
        return median(self.of(found))

    @property
    def title(self) -> str:
        """The name of this benefit in tables, such as `Ben(WiFi loses 1 %)`."""
        strategy = "" if self.strategy == PLAIN else f", {self.strategy}"
        return f"Ben({TITLES[self.side]} loses {percent(self.loss)}{strategy})"


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

    def cases(self) -> frozenset[str]:
        return _cases_of_all_losses(self.side, self.pairs)

    def verdict(self, found: Found) -> Verdict:
        medians = [each.median(found) for each in _by_loss(self.side, self.pairs)]
        falls = all(after <= before + NOISE for before, after in pairwise(medians))
        return "holds" if falls else "fails"

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

    def verdict(self, found: Found) -> Verdict:
        value = self.benefit.median(found)
        return "holds" if (value > self.limit) == self.above else "fails"

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

    def cases(self) -> frozenset[str]:
        return _cases_of_all_losses("wifi", self.pairs) | _cases_of_all_losses("lte", self.pairs)

    def _threshold(self, found: Found, side: str) -> float | None:
        """Return the smallest tested loss at which the median benefit is at most 0. Return None if
        the median is above 0 at every tested loss."""
        by_loss = _by_loss(side, self.pairs)
        return next((each.loss for each in by_loss if each.median(found) <= 0), None)

    def verdict(self, found: Found) -> Verdict:
        """Return "holds" or "fails", or "open" if the tested losses are not enough to decide."""
        wifi, lte = (self._threshold(found, side) for side in ("wifi", "lte"))
        if wifi is None or wifi == 0 or (lte is None and 10 * wifi > LOSSES[-1]):
            return "open"
        return "holds" if lte is None or lte >= 9.99 * wifi else "fails"

    def shown(self, found: Found) -> str:
        losses = {title: self._threshold(found, side) for side, title in TITLES.items()}
        words = (
            f"{title} {'at no loss tried' if loss is None else f'from {percent(loss)}'}"
            for title, loss in losses.items()
        )
        return "median Ben <= 0: " + ", ".join(words)
