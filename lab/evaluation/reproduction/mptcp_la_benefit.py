"""Judge Ben, the benefit of a second path, over all pairs of bandwidths.

Ben is eq (1) of MPTCP-LA (`lab.evaluation.benefit`). It is computed for each pair of bandwidths (of
the WiFi and the LTE path) as the mean over the seeds. For the throughput of one path alone, the
largest value of all seeds is used, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lab.evaluation.benefit import benefit
from lab.evaluation.reproduction.base import PAYLOAD
from lab.evaluation.reproduction.mptcp_la_runs import (
    LOSSES,
    PAIRS,
    PLAIN,
    RTT_MS,
    alone_name,
    pair_name,
)
from lab.evaluation.reproduction.relations import Found, Verdict
from lab.results.statistics import mean

TITLES = {"wifi": "WiFi", "lte": "LTE"}
TCP_PAYLOAD = 1448 / 1514  # the share of a frame that is data of plain TCP
NOISE = 0.02  # by which a median may rise although it should fall


def percent(loss: float) -> str:
    """Format a loss given as a fraction: 0.01 becomes `1 %`."""
    return f"{100 * loss:g} %"


@dataclass(frozen=True)
class Benefit:
    """Compute Ben for every pair of bandwidths while the path `side` loses packets."""

    side: str
    loss: float
    strategy: str = PLAIN

    def of(self, found: Found) -> list[float]:
        """Return Ben of each pair.

        A pair is left out if neither of its paths alone carries anything.
        """
        values = []
        for pair in PAIRS:
            single = [
                self._alone_mbps(found, side, mbps) for side, mbps in zip(RTT_MS, pair, strict=True)
            ]
            runs = found[pair_name(self.side, self.loss, pair, self.strategy)]
            defined = [each for run in runs if (each := benefit(run["T"], single)) is not None]
            if defined:
                values.append(mean(defined))
        return values

    def _alone_mbps(self, found: Found, side: str, mbps: int) -> float:
        """Return the throughput of one path alone in Mb/s, reduced to the payload of Multipath TCP.

        Plain TCP carries slightly more payload in each frame.
        """
        loss = self.loss if side == self.side else 0.0
        most = max(each["T"] for each in found[alone_name(side, loss, mbps)])
        return most * PAYLOAD / TCP_PAYLOAD

    def median(self, found: Found) -> float:
        """Return the median of Ben over the pairs of bandwidths."""
        return median(self.of(found))

    @property
    def title(self) -> str:
        """Return the name of this benefit for texts and tables."""
        strategy = "" if self.strategy == PLAIN else f", {self.strategy}"
        return f"Ben({TITLES[self.side]} loses {percent(self.loss)}{strategy})"


@dataclass(frozen=True)
class Falls:
    """Claim that the median of Ben does not rise when the loss of a path grows.

    A rise of at most NOISE from one loss to the next larger one is allowed.
    """

    side: str

    def verdict(self, found: Found) -> Verdict:
        """Return `holds` or `fails`."""
        medians = [Benefit(self.side, loss).median(found) for loss in LOSSES]
        falls = all(after <= before + NOISE for before, after in pairwise(medians))
        return "holds" if falls else "fails"

    def shown(self, found: Found) -> str:
        """Return as text the tried losses and the median of Ben for each."""
        medians = (f"{Benefit(self.side, loss).median(found):.2f}" for loss in LOSSES)
        losses = ", ".join(f"{100 * loss:g}" for loss in LOSSES)
        return f"{TITLES[self.side]} loses {losses} %: {', '.join(medians)}"


@dataclass(frozen=True)
class Bound:
    """Claim that the median of Ben is above `limit`, or, if `above` is False, that it is not."""

    benefit: Benefit
    above: bool
    limit: float

    def verdict(self, found: Found) -> Verdict:
        """Return `holds` or `fails`."""
        value = self.benefit.median(found)
        return "holds" if (value > self.limit) == self.above else "fails"

    def shown(self, found: Found) -> str:
        """Return as text the median of Ben and the limit."""
        operator = ">" if self.above else "<="
        value = self.benefit.median(found)
        return f"median {self.benefit.title} {value:.2f} {operator} {self.limit:g}"


@dataclass(frozen=True)
class ThresholdsApart:
    """Claim that LTE can lose ten times as much as WiFi before the second path has no benefit."""

    def _threshold(self, found: Found, side: str) -> float | None:
        """Return the smallest tried loss at which the median of Ben is at most 0, or None."""
        return next((loss for loss in LOSSES if Benefit(side, loss).median(found) <= 0), None)

    def verdict(self, found: Found) -> Verdict:
        """Return `holds` or `fails`, or `open` if a threshold may be outside the tried losses."""
        wifi, lte = (self._threshold(found, side) for side in ("wifi", "lte"))
        if wifi is None or wifi == 0 or (lte is None and 10 * wifi > LOSSES[-1]):
            return "open"
        return "holds" if lte is None or lte >= 9.99 * wifi else "fails"

    def shown(self, found: Found) -> str:
        """Return as text the threshold of WiFi and of LTE."""
        losses = {title: self._threshold(found, side) for side, title in TITLES.items()}
        words = (
            f"{title} {'at no loss tried' if loss is None else f'from {percent(loss)}'}"
            for title, loss in losses.items()
        )
        return "median Ben <= 0: " + ", ".join(words)
