"""Compute the mean congestion windows of a connection's subflows.

Each subflow has its own Markov chain. It takes the other subflows into account only by their mean
windows. This replaces the n-dimensional chain of the paper (DTMC selection, section III-B), which
has too many states. A step of a chain is one segment; its states are the windows w, from 2 segments
to the largest that the path holds. pi(w) is the probability of w, mu_k the mean round trip of
subflow k.
1) The other subflows enter as C = sum E[w_k] / mu_k, and as the largest of these terms.
2) A delivered segment changes w to w + 1 with probability D(w, r), the growth of the window for one
   segment at round trip r, so that the mean growth is right. This is averaged over a few round
   trips r that stand for the distribution.
3) A lost segment changes w to after_loss(w, r), divided between the two whole windows around this
   value so that the mean is right.
4) In the stationary state, steps from w to w + 1 are as frequent as steps from above w to w or
   below. This gives pi(w) from the largest window downwards.
5) A window of w has w steps per round trip, so its share of time is pi(w) / w.
6) One subflow after the other gets its new mean until all change by less than 0.001 segments; this
   takes about four rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.strategies.subflow_selection.balia import SMALLEST_WINDOW, after_loss, increase

FIRST_WINDOW = 8.0
CLOSE_ENOUGH = 1e-3  # segments
MOST_ROUNDS = 60
RARE = 1e-9  # windows with a smaller probability are left out
NODES = (  # of a five-point Gauss-Hermite rule: standard deviations from the mean, weight
    (-2.856970013872806, 0.011257411327720693),
    (-1.355626179974266, 0.22207592200561263),
    (0.0, 0.5333333333333333),
    (1.355626179974266, 0.22207592200561263),
    (2.856970013872806, 0.011257411327720693),
)
Weighted = tuple[tuple[float, float], ...]  # (value, probability)


@dataclass(frozen=True)
class Walk:
    """Hold the parameters of the Markov chain of one subflow; its states are congestion windows.

    `largest` is the largest window in segments, and `loss` the probability that a segment is lost.
    `rtts_s` holds round trips in s with their probabilities, and `mean_rtt_s` is the mean round
    trip.
    """

    largest: int
    loss: float
    rtts_s: Weighted
    mean_rtt_s: float


@dataclass(frozen=True)
class Field:
    """Hold what the Markov chain of one subflow needs to know about the other subflows.

    `others` is the sum over the other subflows of mean window / mean round trip, in segments/s.
    `best` is the largest term of this sum.
    """

    others: float = 0.0
    best: float = 0.0


def round_trips(mean_s: float, sd_s: float) -> Weighted:
    """Return at most five pairs (round trip in s, probability) instead of a normal distribution.

    The distribution has the mean `mean_s` and the standard deviation `sd_s`, and is cut off at 0.
    """
    if sd_s == 0:
        return ((mean_s, 1.0),)
    points = [(mean_s + sd_s * node, weight) for node, weight in NODES if mean_s + sd_s * node > 0]
    total = sum(weight for _, weight in points)
    return tuple((value, weight / total) for value, weight in points)


def mean_windows(walks: Sequence[Walk]) -> tuple[float, ...]:
    """Return the mean congestion window of every subflow of a connection, in segments.

    `walks` holds the parameters of the Markov chain of each subflow.
    """
    means = [min(FIRST_WINDOW, float(walk.largest)) for walk in walks]
    for _ in range(MOST_ROUNDS):
        before = tuple(means)
        for n, walk in enumerate(walks):
            means[n] = mean_window(walk, field(n, means, walks))  # 6
        if max(abs(new - old) for new, old in zip(means, before, strict=True)) < CLOSE_ENOUGH:
            break
    return tuple(means)


def field(subflow: int, means: Sequence[float], walks: Sequence[Walk]) -> Field:
    """Return what the Markov chain of one subflow needs to know about all other subflows.

    `subflow` is the index of the one subflow. `means` holds the mean window of every subflow in
    segments.
    """
    rates = [
        mean / walk.mean_rtt_s
        for n, (mean, walk) in enumerate(zip(means, walks, strict=True))
        if n != subflow
    ]  # 1
    return Field(sum(rates), max(rates, default=0.0))


def mean_window(walk: Walk, others: Field) -> float:
    """Return the mean congestion window of one subflow over time, in segments.

    Without loss it is the largest window.
    """
    if walk.loss == 0:
        return float(walk.largest)
    shares = stationary(walk, others)
    rounds = sum(share / w for w, share in shares.items())  # 5
    return sum(shares.values()) / rounds


def stationary(walk: Walk, others: Field) -> dict[int, float]:
    """Map each congestion window in segments to its stationary probability in the Markov chain.

    The sum of the values is not normalised to 1.
    """
    shares: dict[int, float] = {}
    landed: dict[int, float] = {}
    down = 0.0  # through the cut below w
    for w in range(largest_state(walk), int(SMALLEST_WINDOW) - 1, -1):
        share = shares[w] = down / climb(w, walk, others) if shares else 1.0  # 4
        for to, probability in fall(w, walk, others).items():
            landed[to] = landed.get(to, 0.0) + share * probability
        down += share * walk.loss - landed.pop(w, 0.0)
    return shares


def climb(window: int, walk: Walk, others: Field) -> float:
    """Return the probability that one segment raises the congestion window by 1 from `window`."""
    return (1 - walk.loss) * sum(
        p * increase(window, r, others.others, others.best) for r, p in walk.rtts_s
    )  # 2


def fall(window: int, walk: Walk, others: Field) -> dict[int, float]:
    """Return the possible congestion windows after a lost segment, each with its probability.

    `window` is the window before. The sum of the probabilities is the probability that a segment is
    lost.
    """
    probabilities: dict[int, float] = {}
    for r, p in walk.rtts_s:
        left = after_loss(window, r, others.best)
        whole = int(left)
        for to, part in ((whole, whole + 1 - left), (whole + 1, left - whole)):  # 3
            if part:
                probabilities[to] = probabilities.get(to, 0.0) + walk.loss * p * part
    return probabilities


def largest_state(walk: Walk) -> int:
    """Return the largest congestion window, in segments, that the Markov chain includes.

    It can be smaller than `walk.largest`: the congestion control BALIA adds at most 1/w per
    segment, so a large window w is rarely reached without a loss. Windows that are reached with a
    probability below `RARE` are left out.
    """
    probability = 1.0
    for w in range(int(SMALLEST_WINDOW), walk.largest):
        probability /= 1 + w * walk.loss / (1 - walk.loss)
        if probability < RARE:
            return w
    return walk.largest
