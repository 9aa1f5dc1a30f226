"""The windows of a connection's subflows in the mean: a Markov chain per subflow in the mean field of the others.

Replaces the n-dimensional chain of the paper (section III-B), whose states nobody can count. A step of a subflow's chain is
one segment; its states are windows from 2 to the largest that its path holds.
1) the others appear as means only: C = sum E[w_k] / mu_k and the largest of these terms
2) delivered, for every round trip r of a few that stand for its distribution: w -> w + 1 with probability D(w, r), so that
   fractions of a segment are right in the mean
3) lost: w -> after_loss(w, r), split between the two whole windows around it, so that the mean is right
4) stationary: what goes up between w and w + 1 comes down again. So from the largest window downwards
   pi(w) up(w) = (what leaves the windows above w) - (what of it stays above w)
5) a window of w is seen w times per round trip: time's share is pi(w) / w
6) one subflow after the other gets its new mean, until all move by less than 0.001: four rounds, as a rule
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.strategies.subflow_selection.balia import SMALLEST_WINDOW, after_loss, increase

FIRST_WINDOW = 8.0
CLOSE_ENOUGH = 1e-3  # segments
MOST_ROUNDS = 60
RARE = 1e-9  # windows that are reached less often are left out
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
    """A subflow's chain without the others: largest window in segments, chance of a loss, round trips in s, their mean in s."""

    largest: int
    loss: float
    rtts_s: Weighted
    mean_rtt_s: float


@dataclass(frozen=True)
class Field:
    """The other subflows in the mean: the sum of their windows per round trip, and the largest, in segments/s."""

    others: float = 0.0
    best: float = 0.0


def round_trips(mean_s: float, sd_s: float) -> Weighted:
    """A few round trips that stand for a normal distribution without its negative part."""
    if sd_s == 0:
        return ((mean_s, 1.0),)
    points = [(mean_s + sd_s * node, weight) for node, weight in NODES if mean_s + sd_s * node > 0]
    total = sum(weight for _, weight in points)
    return tuple((value, weight / total) for value, weight in points)


def mean_windows(walks: Sequence[Walk]) -> tuple[float, ...]:
    """E[w] of every subflow in segments."""
    means = [min(FIRST_WINDOW, float(walk.largest)) for walk in walks]
    for _ in range(MOST_ROUNDS):
        before = tuple(means)
        for n, walk in enumerate(walks):
            means[n] = mean_window(walk, field(n, means, walks))  # 6
        if max(abs(new - old) for new, old in zip(means, before, strict=True)) < CLOSE_ENOUGH:
            break
    return tuple(means)


def field(subflow: int, means: Sequence[float], walks: Sequence[Walk]) -> Field:
    """What a subflow sees of the others."""
    rates = [
        mean / walk.mean_rtt_s
        for n, (mean, walk) in enumerate(zip(means, walks, strict=True))
        if n != subflow
    ]  # 1
    return Field(sum(rates), max(rates, default=0.0))


def mean_window(walk: Walk, others: Field) -> float:
    """E[w] in time; without a loss the window stays at its largest."""
    if walk.loss == 0:
        return float(walk.largest)
    shares = stationary(walk, others)
    rounds = sum(share / w for w, share in shares.items())  # 5
    return sum(shares.values()) / rounds


def stationary(walk: Walk, others: Field) -> dict[int, float]:
    """pi(w) by window, not normalised."""
    shares: dict[int, float] = {}
    landed: dict[int, float] = {}
    down = 0.0  # through the cut below w
    for w in range(reached(walk), int(SMALLEST_WINDOW) - 1, -1):
        share = shares[w] = down / climb(w, walk, others) if shares else 1.0  # 4
        for to, chance in fall(w, walk, others).items():
            landed[to] = landed.get(to, 0.0) + share * chance
        down += share * walk.loss - landed.pop(w, 0.0)
    return shares


def climb(window: int, walk: Walk, others: Field) -> float:
    """The chance that a segment takes the window to the next."""
    return (1 - walk.loss) * sum(
        p * increase(window, r, others.others, others.best) for r, p in walk.rtts_s
    )  # 2


def fall(window: int, walk: Walk, others: Field) -> dict[int, float]:
    """The chances of the windows that a lost segment leaves."""
    chances: dict[int, float] = {}
    for r, p in walk.rtts_s:
        left = after_loss(window, r, others.best)
        whole = int(left)
        for to, part in ((whole, whole + 1 - left), (whole + 1, left - whole)):  # 3
            if part:
                chances[to] = chances.get(to, 0.0) + walk.loss * p * part
    return chances


def reached(walk: Walk) -> int:
    """The largest window worth a state: BALIA adds at most 1/w a segment, so climbing through all w without a loss is rare."""
    chance = 1.0
    for w in range(int(SMALLEST_WINDOW), walk.largest):
        chance /= 1 + w * walk.loss / (1 - walk.loss)
        if chance < RARE:
            return w
    return walk.largest
