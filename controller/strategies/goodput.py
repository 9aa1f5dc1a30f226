"""Measure the goodput of a set of subflows, and compare two such measurements.

Goodput is the rate of data packets, each counted once, however often it was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, variance

from controller.observation import Subflow

FEWEST = 4  # samples that a comparison needs
RECENT = 20  # samples of the incumbent that count
LATEST = 6  # samples of the challenger that count, because its windows may still grow


@dataclass
class Goodput:
    """Hold the latest samples of the goodput of one set of subflows, in packets per second."""

    samples: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def __bool__(self) -> bool:
        return len(self.samples) >= FEWEST

    @property
    def mean(self) -> float:
        """Return the mean of the samples; 0 without samples."""
        return fmean(self.samples) if self.samples else 0.0

    def latest(self) -> Goodput:
        """Return a copy with the latest samples only."""
        return Goodput(deque(list(self.samples)[-LATEST:], maxlen=RECENT))


def packets_of(subflows: Sequence[Subflow]) -> dict[int, int] | None:
    """Map the number of each subflow to the data packets that it has sent, each counted once.

    Return None if a counter of a subflow is not known. A packet that was lost and is not
    retransmitted yet is not counted.
    """
    packets = {}
    for each in subflows:
        if each.sent_packets is None:
            return None
        twice = max(each.lost_packets or 0, each.retransmitted_packets or 0)
        packets[each.number] = each.sent_packets - twice
    return packets


def standard_errors(one: Goodput, other: Goodput) -> float:
    """Return by how many standard errors the mean of `one` is above the mean of `other`."""
    samples = [*one.samples], [*other.samples]
    squares = sum((len(each) - 1) * variance(each) for each in samples)
    pooled = squares / (len(samples[0]) + len(samples[1]) - 2)
    error = sqrt(pooled * sum(1 / len(each) for each in samples))
    return (one.mean - other.mean) / max(error, 1e-3 * other.mean, 1e-9)
