"""Forecast the throughput and the receive buffer of a set of paths.

Source: DTMC selection, sections III-C and III-D. Each subflow s uses one path of the set. b is the
bandwidth of a path, l its loss probability, mu its mean RTT; w_s is the congestion window of
subflow s. S is the size of a segment, a the size of an acknowledgement, x = 3 the number of
duplicate acknowledgements that signal a loss.

1) The largest window of a path is what the path and its queue can hold.
2) Markov chains give the mean window E[w] of every subflow (`mean_windows`).
3) A round of subflow s takes
       paper:      G_s = (E[w_s] + x l_s) S/b_s + E[w_s] a/b_s + mu_s          (14)
       pipelined:  G_s = max(mu_s + S/b_s, (E[w_s] + x l_s) S/b_s)      (ACKs return while it sends)
4) All subflows wait for the slowest: Avg_Th = sum E[w] S / max_s G_s         (13), (15)
5) Data of the fastest path waits for the slowest: RL = (max mu - min mu) Avg_Th / 8    (17)

`estimate_today` is another forecast, for present-day TCP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, sqrt
from typing import Literal

from controller.strategies.subflow_selection.balia import (
    LARGEST_DECREASE,
    SMALLEST_WINDOW,
    after_loss,
    increase,
)

# Mean congestion windows
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
SETTLED = 1e-3  # segments
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
class SubflowChain:
    """The parameters of the Markov chain of one subflow. Its states are congestion windows.

    `largest` is the largest window in segments. `loss` is the probability that a segment is lost.
    `rtts_s` has pairs (RTT in s, probability).
    """

    largest: int
    loss: float
    rtts_s: Weighted
    mean_rtt_s: float


@dataclass(frozen=True)
class OtherRates:
    """The rates of a connection's other subflows: their sum and the largest of them.

    A rate is mean window / mean RTT, in segments/s. The Markov chain of a subflow uses only these
    two numbers of the other subflows (mean-field approximation).
    """

    total: float = 0.0
    largest: float = 0.0


def round_trips(mean_s: float, sd_s: float) -> Weighted:
    """Return up to five pairs (RTT in s, probability) that stand for a normal distribution.

    The distribution has the mean `mean_s` and the standard deviation `sd_s`, and is cut off at 0.
    """
    if sd_s == 0:
        return ((mean_s, 1.0),)
    points = [(mean_s + sd_s * node, weight) for node, weight in NODES if mean_s + sd_s * node > 0]
    total = sum(weight for _, weight in points)
    return tuple((value, weight / total) for value, weight in points)


def mean_windows(chains: Sequence[SubflowChain]) -> tuple[float, ...]:
    """Return the mean congestion window of every subflow of a connection, in segments."""
    means = [min(FIRST_WINDOW, float(chain.largest)) for chain in chains]
    for _ in range(MOST_ROUNDS):
        before = tuple(means)
        for n, chain in enumerate(chains):
            means[n] = mean_window(chain, rates_of_others(n, means, chains))  # 6
        if max(abs(new - old) for new, old in zip(means, before, strict=True)) < SETTLED:
            break
    return tuple(means)


def rates_of_others(
    subflow: int, means: Sequence[float], chains: Sequence[SubflowChain]
) -> OtherRates:
    """Return the sum and the largest of the rates of all subflows except one.

    `subflow` is the index of the excepted one. A rate is mean window / mean RTT. `means` has the
    mean window of every subflow in segments.
    """
    rates = [
        mean / chain.mean_rtt_s
        for n, (mean, chain) in enumerate(zip(means, chains, strict=True))
        if n != subflow
    ]  # 1
    return OtherRates(sum(rates), max(rates, default=0.0))


def mean_window(chain: SubflowChain, others: OtherRates) -> float:
    """Return the mean congestion window of one subflow over time, in segments.

    If the subflow has no loss, it is the largest window.
    """
    if chain.loss == 0:
        return float(chain.largest)
    shares = stationary(chain, others)
    rounds = sum(share / w for w, share in shares.items())  # 5
    return sum(shares.values()) / rounds


def stationary(chain: SubflowChain, others: OtherRates) -> dict[int, float]:
    """Map each congestion window in segments to its stationary probability in the Markov chain.

    The values are not normalised to a sum of 1.
    """
    shares: dict[int, float] = {}
    landed: dict[int, float] = {}
    down = 0.0  # through the cut below w
    for w in range(largest_state(chain), int(SMALLEST_WINDOW) - 1, -1):
        share = shares[w] = down / growth_probability(w, chain, others) if shares else 1.0  # 4
        for to, probability in windows_after_loss(w, chain, others).items():
            landed[to] = landed.get(to, 0.0) + share * probability
        down += share * chain.loss - landed.pop(w, 0.0)
    return shares


def growth_probability(window: int, chain: SubflowChain, others: OtherRates) -> float:
    """Return the probability that one segment raises the congestion window from `window` by 1."""
    return (1 - chain.loss) * sum(
        p * increase(window, r, others.total, others.largest) for r, p in chain.rtts_s
    )  # 2


def windows_after_loss(window: int, chain: SubflowChain, others: OtherRates) -> dict[int, float]:
    """Map each congestion window that can follow the loss of a segment to its probability.

    `window` is the window before the loss. Each value is the probability that the segment is lost
    and this window follows. The values therefore add up to the probability of a loss, not to 1.
    """
    probabilities: dict[int, float] = {}
    for r, p in chain.rtts_s:
        left = after_loss(window, r, others.largest)
        whole = int(left)
        for to, part in ((whole, whole + 1 - left), (whole + 1, left - whole)):  # 3
            if part:
                probabilities[to] = probabilities.get(to, 0.0) + chain.loss * p * part
    return probabilities


def largest_state(chain: SubflowChain) -> int:
    """Return the largest congestion window, in segments, that the Markov chain includes.

    Windows with a probability below `RARE` are left out. The result can therefore be smaller than
    `chain.largest`: BALIA adds at most 1/w per segment, so a large window w is rarely reached
    without a loss.
    """
    probability = 1.0
    for w in range(int(SMALLEST_WINDOW), chain.largest):
        probability /= 1 + w * chain.loss / (1 - chain.loss)
        if probability < RARE:
            return w
    return chain.largest


# The forecast of the paper; the numbers are those of the module's docstring

SEGMENT_BITS = 1500 * 8  # S
ACK_BITS = 40 * 8  # a
DUPLICATE_ACKS = 3  # x
SMALLEST_CAP = 4  # segments
LARGEST_LOSS = 0.99  # the chain needs some segments that arrive


@dataclass(frozen=True)
class PathQuality:
    """The quality of a path, (b, l, mu, sigma) in DTMC selection.

    `loss` is the probability that a segment is lost. `rtt_s` is the mean RTT, and `rtt_sd_s` its
    standard deviation.
    """

    bandwidth_bps: float
    loss: float
    rtt_s: float
    rtt_sd_s: float = 0.0


@dataclass(frozen=True)
class Model:
    """Settings of the paper's throughput forecast.

    In a round a subflow sends one window and gets the ACKs. With `round` "paper", a round lasts as
    in eq (14) of DTMC selection; with "pipelined", ACKs return while the sender still sends.
    `largest_window` limits every window, in segments. `queue_bdp` is the queue of a path as a
    multiple of its bandwidth-delay product.
    """

    round: Literal["paper", "pipelined"] = "paper"
    largest_window: int = 64
    queue_bdp: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """A throughput forecast for a connection that uses several paths together.

    `buffer_bytes` is the receive buffer that the connection needs. `windows` has the mean
    congestion window of each path in segments.
    """

    throughput_bps: float
    buffer_bytes: float
    windows: tuple[float, ...]


@lru_cache(maxsize=8192)
def estimate(paths: tuple[PathQuality, ...], model: Model) -> Estimate:
    """Forecast a connection that uses all these paths together (DTMC selection, section III)."""
    windows = mean_windows([_chain(path, model) for path in paths])  # 2
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
    """Return the time in s that a subflow needs to send one window and get the ACKs.

    `window` is the mean congestion window in segments. `model.round` chooses the formula (DTMC
    selection, eq (14), or a variant of it).
    """
    segment_s = SEGMENT_BITS / path.bandwidth_bps
    sending_s = (window + DUPLICATE_ACKS * path.loss) * segment_s
    if model.round == "pipelined":
        return max(path.rtt_s + segment_s, sending_s)  # 3
    return sending_s + window * ACK_BITS / path.bandwidth_bps + path.rtt_s


def _chain(path: PathQuality, model: Model) -> SubflowChain:
    rtts_s = round_trips(path.rtt_s, path.rtt_sd_s)
    return SubflowChain(window_cap(path, model), min(path.loss, LARGEST_LOSS), rtts_s, path.rtt_s)


# The forecast for present-day TCP
#
# b, l and mu are bandwidth, loss and RTT of a path, S is the size of a frame. Differences from the
# paper's forecast:
# 1) Fast recovery (RFC 6675): the losses of one round trip halve the window once, and no segment
#    waits for a timeout. A subflow then carries S/mu sqrt(3 (1 - l) / (2 l)) (Mathis et al., CCR
#    27(3), 1997).
# 2) A queue that fills: a window above the bandwidth-delay product adds delay and no rate, so a
#    subflow carries at most b. Each subflow sends at its own pace: rates are added, and no subflow
#    waits for the slowest one. The chain limits the sum of the windows per slowest round instead.
# 3) A large receive buffer B: data of a lost segment waits for one more round trip. So the sum is
#    at most 8 B / (2 max mu), and 8 B / max mu if no path loses packets.
# 4) Coupled congestion control (BALIA): the windows at which growth and loss are in balance, with
#    the window changes of the module `balia`. These windows vary less than the window of a subflow
#    alone, so the factor from the balance to the mean is the same as in 1.
# Nobody reports the congestion control in use. Of both forecasts for the set that is in use, the
# one that is closer to the measured goodput decides (`is_coupled`).


FRAME_BITS = 1514 * 8
BALANCE_TO_MEAN = sqrt(3) / 2  # sqrt(3/2) of the sawtooth, sqrt(2) of growth and loss in balance
ROUNDS = 400
CLOSE_ENOUGH = 1e-4
MOST_PATHS = 6  # of more paths, not all sets are searched


@lru_cache(maxsize=8192)
def estimate_today(paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool) -> Estimate:
    """Forecast a connection that uses all these paths together, for present-day TCP.

    `buffer_bytes` is the size of the connection's receive buffer. `coupled` is True if the
    congestion control couples the windows of the subflows, as BALIA does. The forecast throughput
    counts Ethernet frames.
    """
    windows = _coupled_windows(paths) if coupled else tuple(map(_window_alone, paths))
    wanted_bps = sum(
        window * FRAME_BITS / path.rtt_s for window, path in zip(windows, paths, strict=True)
    )
    longest_s = max(path.rtt_s * (2 if path.loss else 1) for path in paths)
    throughput_bps = min(wanted_bps, 8 * buffer_bytes / longest_s)  # 3
    return Estimate(throughput_bps, throughput_bps * longest_s / 8, windows)


def is_coupled(paths: tuple[PathQuality, ...], buffer_bytes: int, measured_bps: float) -> bool:
    """Guess from the measured goodput whether the windows of the subflows are coupled.

    Make one forecast with coupled and one with uncoupled windows. Return True if the first is
    closer to the goodput.
    """
    coupled, alone = (
        abs(estimate_today(paths, buffer_bytes, each).throughput_bps - measured_bps)
        for each in (True, False)
    )
    return coupled < alone


def searched(
    paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool
) -> list[tuple[float, tuple[int, ...]]]:
    """Return (forecast in bit/s, indices of paths) for many sets of paths, the best set first.

    Of sets with equal forecasts, the larger one comes first. With at most `MOST_PATHS` paths, all
    sets are compared. With more, the search begins with all paths and leaves out one after another:
    always the path without which the forecast is largest.
    """

    def forecast(numbers: tuple[int, ...]) -> float:
        chosen = tuple(paths[n] for n in numbers)
        return estimate_today(chosen, buffer_bytes, coupled).throughput_bps

    everything = tuple(range(len(paths)))
    compared = [everything]
    if len(paths) <= MOST_PATHS:
        compared = [each for size in everything for each in combinations(everything, size + 1)]
    while len(compared[-1]) > 1 and len(paths) > MOST_PATHS:
        compared.append(max(combinations(compared[-1], len(compared[-1]) - 1), key=forecast))
    return sorted(((forecast(each), each) for each in compared), key=_order)


def _order(found: tuple[float, tuple[int, ...]]) -> tuple[float, int, tuple[int, ...]]:
    return -found[0], -len(found[1]), found[1]


def _full(path: PathQuality) -> float:
    """Return the bandwidth-delay product of a path in frames."""  # 2
    return path.bandwidth_bps * path.rtt_s / FRAME_BITS


def _window_alone(path: PathQuality) -> float:
    loss = min(path.loss, LARGEST_LOSS)
    balance = sqrt(3 * (1 - loss) / (2 * loss)) if loss else inf
    return min(balance, _full(path))  # 1


def _coupled_windows(paths: Sequence[PathQuality]) -> tuple[float, ...]:
    """Return the windows in frames at which BALIA's growth and decrease are in balance.

    A window is at most the bandwidth-delay product of its path. Below this limit, the growth (1 -
    l) Y (1 + a)(4 + a) / (10 mu sum(Y)^2) equals the decrease l w/2 min(a, 1.5). w is a window, l
    the loss and mu the RTT of its path, Y = w / mu, and a = max Y / Y. The equation is solved by
    iteration.
    """
    rtts_s, full = [path.rtt_s for path in paths], [_full(path) for path in paths]
    losses = [min(path.loss, LARGEST_LOSS) for path in paths]
    windows = [min(4.0, limit) for limit in full]
    for _ in range(ROUNDS):
        rates = [window / rtt_s for window, rtt_s in zip(windows, rtts_s, strict=True)]
        total, best = sum(rates), max(rates)
        largest_change = 0.0
        for n, rate in enumerate(rates):
            a = best / rate
            growth = (1 - losses[n]) * (1 + a) * (4 + a) / (10 * (rtts_s[n] * total) ** 2)
            decrease = losses[n] / 2 * min(a, LARGEST_DECREASE)
            factor = (growth / decrease) ** 0.25 if decrease else 2.0
            new = min(max(windows[n] * factor, SMALLEST_WINDOW), full[n])
            largest_change = max(largest_change, abs(new / windows[n] - 1))
            windows[n] = new
        if largest_change < CLOSE_ENOUGH:
            break
    return tuple(
        window if window >= limit else max(window * BALANCE_TO_MEAN, min(SMALLEST_WINDOW, limit))
        for window, limit in zip(windows, full, strict=True)
    )
