"""Forecast the throughput and the receive buffer of a set of paths.

Source: DTMC selection, sections III-C and III-D. Each subflow s uses one path of the set. b is the
bandwidth of a path, l its loss probability, mu its mean round trip; w_s is the congestion window of
subflow s. S is the size of a segment, a the size of an acknowledgement, x = 3 the number of
duplicate acknowledgements that signal a loss.

1) The largest window of a path is what the path and its queue can hold.
2) The module `chain` gives the mean window E[w] of every subflow.
3) A round of subflow s takes
       paper:      G_s = (E[w_s] + x l_s) S/b_s + E[w_s] a/b_s + mu_s          (14)
       pipelined:  G_s = max(mu_s + S/b_s, (E[w_s] + x l_s) S/b_s)      (ACKs return while it sends)
4) All subflows wait for the slowest: Avg_Th = sum E[w] S / max_s G_s         (13), (15)
5) Data of the fastest path waits for the slowest: RL = (max mu - min mu) Avg_Th / 8    (17)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, exp, pi, prod, sqrt
from typing import Literal

# Compute the mean congestion windows of a connection's subflows.
#
# Each subflow has its own Markov chain. It takes the other subflows into account only by their
# mean windows. This replaces the n-dimensional chain of the paper (DTMC selection, section III-B),
# which has too many states. A step of a chain is one segment; its states are the windows w, from 2
# segments to the largest that the path holds. pi(w) is the probability of w, mu_k the mean round
# trip of subflow k.
# 1) The other subflows enter as C = sum E[w_k] / mu_k, and as the largest of these terms.
# 2) A delivered segment changes w to w + 1 with probability D(w, r), the growth of the window for
#    one segment at round trip r, so that the mean growth is right. This is averaged over a few
#    round trips r that stand for the distribution.
# 3) A lost segment changes w to after_loss(w, r), divided between the two whole windows around
#    this value so that the mean is right.
# 4) In the stationary state, steps from w to w + 1 are as frequent as steps from above w to w or
#    below. This gives pi(w) from the largest window downwards.
# 5) A window of w has w steps per round trip, so its share of time is pi(w) / w.
# 6) One subflow after the other gets its new mean until all change by less than 0.001 segments;
#    this takes about four rounds.


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


# Compute BALIA's window law and its inverses: eqs (1) to (6) and (10) of the paper, corrected.
#
# BALIA is a congestion control for MPTCP. The module `chain` uses the law; the inverse functions
# only serve to check the equations of the paper. For one subflow, w is its congestion window in
# segments, r its round trip in seconds, and Y = w / r in segments per second. Two numbers describe
# the other subflows of the connection: `others`, the sum of their Y (C in the paper), and `best`,
# the largest of their Y. With alpha = max(1, best / Y), the new window after one segment is:
#
#     delivered:  w + Y / (r (others + Y)^2) (1 + alpha)/2 (4 + alpha)/5       (1a)
#     lost:       w - w/2 min(alpha, 1.5)                                      (1b)
#
# The paper prints only the increment of (1a) and the decrement of (1b).
#
# Law: Walid, Peng, Hwang and Low, draft-walid-mptcp-congestion-control-04, section 3. Paper: DTMC
# selection, section III.


SMALLEST_WINDOW = 2.0
LARGEST_DECREASE = 1.5  # halves of the window
INTEGRATED_SDS = 8  # the integral ends at this many standard deviations from the mean
INTEGRAL_STEPS = 2000
ROUNDING = 1e-9  # both branches of the law meet at alpha = 1, and rounding must not miss both


def increase(window: float, rtt_s: float, others: float, best: float) -> float:
    """Return the growth of the window for one delivered segment, in segments, at most 1 (eq (1a)).

    `others` is the sum of Y = window / round trip over the other subflows of the connection, `best`
    is the largest Y among them; both are in segments per second.
    """
    rate = window / rtt_s
    alpha = best / rate if best > rate else 1.0
    added = rate * (1 + alpha) * (4 + alpha) / (10 * rtt_s * (others + rate) ** 2)
    return added if added < 1 else 1.0


def after_loss(window: float, rtt_s: float, best: float) -> float:
    """Return the window in segments that a lost segment leaves, at least 2 (eq (1b)).

    `best` is the largest window / round trip among the other subflows, in segments per second.
    """
    alpha = best * rtt_s / window
    halves = LARGEST_DECREASE if alpha > LARGEST_DECREASE else alpha if alpha > 1 else 1.0
    left = window - window / 2 * halves
    return left if left > SMALLEST_WINDOW else SMALLEST_WINDOW


def rtt_of_increase(window: float, added: float, others: float, best: float) -> float | None:
    """Return the round trip in s at which a delivered segment adds `added` segments, or None.

    This is the inverse of `increase`, for eqs (3) and (5). Below, D is `added`, w is `window`, C is
    `others`, and r is the result. If this subflow has the largest Y, r = (sqrt(w/D) - w) / C.
    Otherwise let k = best/w. Then r is that root of the following equation for which k * r >= 1:
    (10 D C^2 - w k^2) r^2 + (20 D C w - 5 w k) r + (10 D w^2 - 4 w) = 0.
    None means that no such round trip exists.
    """
    k = best / window
    as_largest = (sqrt(window / added) - window) / others
    if as_largest > 0 and k * as_largest <= 1 + ROUNDING:
        return as_largest
    square, linear = (
        10 * added * others**2 - window * k**2,
        20 * added * others * window - 5 * window * k,
    )
    roots = _roots(square, linear, 10 * added * window**2 - 4 * window)
    return next((root for root in roots if root > 0 and k * root >= 1), None)


def rtt_of_loss(window: float, left: float, best: float) -> float:
    """Return the round trip in s at which a loss leaves a window of `left` segments (eq (6a)).

    `window` is the window before the loss; `left` must be from window/4 to window/2. `best` is the
    largest window / round trip among the other subflows, in segments per second.
    """
    return 2 * (window - left) / best


def probability_of_largest(
    subflow: int, windows: Sequence[float], rtts_s: Sequence[tuple[float, float]]
) -> float:
    """Return the probability that one subflow has the largest Y = window / round trip.

    `subflow` is the index of this subflow in `windows` (segments) and in `rtts_s`, the mean and the
    standard deviation (> 0) of each subflow's round trip in s. The round trips are independent and
    have a normal distribution, cut off at 0. The result is Z of the paper's eq (10), corrected: the
    subflow with the smallest ratio of round trip to window has the largest Y.
    """
    mean, sd = rtts_s[subflow]
    low, high = max(0.0, mean - INTEGRATED_SDS * sd), mean + INTEGRATED_SDS * sd
    step = (high - low) / INTEGRAL_STEPS
    others = [
        (windows[k] / windows[subflow], rtts_s[k]) for k in range(len(windows)) if k != subflow
    ]
    total = 0.0
    for n in range(INTEGRAL_STEPS):
        r = low + (n + 0.5) * step
        density = exp(-(((r - mean) / sd) ** 2) / 2) / (sd * sqrt(2 * pi) * _beyond(0, mean, sd))
        total += density * prod(
            _beyond(r * ratio, *each) / _beyond(0, *each) for ratio, each in others
        )
    return total * step


def _beyond(value: float, mean: float, sd: float) -> float:
    """Return the probability that a normally distributed variable is larger than `value`."""
    return erfc((value - mean) / (sd * sqrt(2))) / 2


def _roots(square: float, linear: float, constant: float) -> Iterable[float]:
    """Return the real roots x of square x^2 + linear x + constant = 0; `square` may be 0."""
    if square == 0:
        return [-constant / linear] if linear else []
    inside = linear**2 - 4 * square * constant
    return (
        []
        if inside < 0
        else sorted((-linear + sign * sqrt(inside)) / (2 * square) for sign in (1, -1))
    )


SEGMENT_BITS = 1500 * 8  # S
ACK_BITS = 40 * 8  # a
DUPLICATE_ACKS = 3  # x
SMALLEST_CAP = 4  # segments
LARGEST_LOSS = 0.99  # the chain needs some segments that arrive


@dataclass(frozen=True)
class PathQuality:
    """Hold the quality of a path, in DTMC selection called Q_i = (b, l, mu, sigma).

    These are the bandwidth b in bit/s, the probability l that a segment is lost, and the mean mu
    and standard deviation sigma of the round trip in seconds.
    """

    bandwidth_bps: float
    loss: float
    rtt_s: float
    rtt_sd_s: float = 0.0


@dataclass(frozen=True)
class Model:
    """Hold the settings of the forecast.

    `round` chooses the formula for the duration of a round: eq (14) of the paper, or one for ACKs
    that return while the sender still sends. `largest_window` is an upper limit of every window in
    segments. `queue_bdp` is the size of a path's queue, as a multiple of the path's bandwidth-delay
    product.
    """

    round: Literal["paper", "pipelined"] = "paper"
    largest_window: int = 64
    queue_bdp: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """Hold the forecast for a set of paths that one connection uses together.

    `buffer_bytes` is the receive buffer that the connection needs. `windows` holds the mean
    congestion window of each path in segments.
    """

    throughput_bps: float
    buffer_bytes: float
    windows: tuple[float, ...]


@lru_cache(maxsize=8192)
def estimate(paths: tuple[PathQuality, ...], model: Model) -> Estimate:
    """Return the forecast for a connection that uses all these paths together."""
    windows = mean_windows([_walk(path, model) for path in paths])  # 2
    slowest_s = max(
        round_s(path, window, model) for path, window in zip(paths, windows, strict=True)
    )
    throughput_bps = sum(windows) * SEGMENT_BITS / slowest_s  # 4
    rtts_s = [path.rtt_s for path in paths]
    return Estimate(throughput_bps, (max(rtts_s) - min(rtts_s)) * throughput_bps / 8, windows)  # 5


def window_cap(path: PathQuality, model: Model) -> int:
    """Return the largest window of a path in segments.

    It is what the path and its queue can hold, at most `model.largest_window` and at least 4.
    """
    held = (1 + model.queue_bdp) * path.bandwidth_bps * path.rtt_s / SEGMENT_BITS  # 1
    return max(SMALLEST_CAP, int(min(model.largest_window, held)))


def round_s(path: PathQuality, window: float, model: Model) -> float:
    """Return the time in seconds that a subflow needs to send one window and get the ACKs.

    `window` is the mean congestion window in segments. `model.round` chooses the formula (DTMC
    selection, eq (14), or a variant of it).
    """
    segment_s = SEGMENT_BITS / path.bandwidth_bps
    sending_s = (window + DUPLICATE_ACKS * path.loss) * segment_s
    if model.round == "pipelined":
        return max(path.rtt_s + segment_s, sending_s)  # 3
    return sending_s + window * ACK_BITS / path.bandwidth_bps + path.rtt_s


def _walk(path: PathQuality, model: Model) -> Walk:
    rtts_s = round_trips(path.rtt_s, path.rtt_sd_s)
    return Walk(window_cap(path, model), min(path.loss, LARGEST_LOSS), rtts_s, path.rtt_s)
