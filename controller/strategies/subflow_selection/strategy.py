"""Select the subflows with the largest throughput forecast by Markov chains (DTMC selection).

Every `interval_s`, and as soon as a subflow opens or closes, for every connection with more than
one subflow:
1) Determine bandwidth, loss and round trip of each subflow's path (module `path_quality`).
2) Search the set with the largest expected throughput whose receive buffer is within `rl_max_kb`
   (module `selection`).
3) Make the chosen subflows normal and the others backup. No subflow becomes backup before at least
   one chosen subflow is normal.
4) Log the forecast together with the throughput measured since the last step.
The forecast uses the rates on the wire. Paper: sections IV and V-A.

Two parameters replace the paper's step 2; both are ours:
5) `forecast: today` forecasts with the TCP of today (module `forecast_today`). As this forecast is
   not exact, all subflows are used unless a set promises more by the part `trial_gain`.
6) `loop: closed` uses all subflows first and measures them. A set that promises more than was
   measured is tried for a bounded time, and kept only if it carries more (module `trial`). While
   a user has several connections, nothing is tried: the kernel sets backup flags per address.
   If today's forecast promises `OPENING_GAIN` times as much of a set as of all subflows, whether
   their windows are coupled or not, the connection begins with that set, and all subflows are
   tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import inf, sqrt
from typing import Literal

from controller.strategies.base import StrategyParams, param
from controller.strategies.subflow_selection.forecast import (
    LARGEST_DECREASE,
    LARGEST_LOSS,
    SMALLEST_WINDOW,
    Estimate,
    Model,
    PathQuality,
    estimate,
)
from controller.strategies.subflow_selection.selecting import (
    Selecting,
    SelectingParams,
    Situation,
)
from controller.strategies.subflow_selection.selection import Accept, Choice, Starts, greedy
from controller.strategies.trial import Numbers, TrialParams, Trials, loss_conditions

# Forecast the goodput of a set of paths for the TCP of today, as an alternative to `forecast`.
#
# b, l and mu are bandwidth, loss and round trip of a path, S is the size of a frame. Terms that
# the paper's forecast does not have:
# 1) Fast recovery (RFC 6675): the losses of one round trip halve the window once, and no segment
#    waits for a timeout. A subflow then carries S/mu sqrt(3 (1 - l) / (2 l)) (Mathis et al., CCR
#    27(3), 1997).
# 2) A queue that fills: a window above the bandwidth-delay product adds delay and no rate, so a
#    subflow carries at most b. Each subflow sends at its own pace: rates are added, and no subflow
#    waits for the slowest one. The chain limits the sum of the windows per slowest round instead.
# 3) A large receive buffer B: data of a lost segment waits for one more round trip. So the sum is
#    at most 8 B / (2 max mu), and 8 B / max mu if no path loses packets.
# 4) Coupled congestion control (BALIA): the windows at which growth and loss are in balance, with
#    the law of the module `balia`. As they vary less than those of a subflow alone, the factor
#    that leads from the balance to the mean is the same as in 1. Nobody reports the congestion
#    control in use. Of both forecasts for the set that is in use, the one that is closer to the
#    measured goodput decides (`is_coupled`).


FRAME_BITS = 1514 * 8
BALANCE_TO_MEAN = sqrt(3) / 2  # sqrt(3/2) of the sawtooth, sqrt(2) of the balance of its law
ROUNDS = 400
CLOSE_ENOUGH = 1e-4
MOST_PATHS = 6  # of more paths, not all sets are searched


@lru_cache(maxsize=8192)
def estimate_today(paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool) -> Estimate:
    """Return the forecast for a connection that uses all these paths together.

    `buffer_bytes` is the size of its receive buffer, and `coupled` says whether its congestion
    control couples the windows of the subflows. `throughput_bps` counts Ethernet frames.
    """
    windows = _coupled_windows(paths) if coupled else tuple(map(_window_alone, paths))
    wanted_bps = sum(
        window * FRAME_BITS / path.rtt_s for window, path in zip(windows, paths, strict=True)
    )
    longest_s = max(path.rtt_s * (2 if path.loss else 1) for path in paths)
    throughput_bps = min(wanted_bps, 8 * buffer_bytes / longest_s)  # 3
    return Estimate(throughput_bps, throughput_bps * longest_s / 8, windows)


def is_coupled(paths: tuple[PathQuality, ...], buffer_bytes: int, measured_bps: float) -> bool:
    """Return whether the forecast with coupled windows is closer to the measured goodput."""
    coupled, alone = (
        abs(estimate_today(paths, buffer_bytes, each).throughput_bps - measured_bps)
        for each in (True, False)
    )
    return coupled < alone


def searched(
    paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool
) -> list[tuple[float, tuple[int, ...]]]:
    """Return (forecast in bit/s, indices of paths) of many sets, the largest forecast first.

    Of equal forecasts, the larger set comes first. Up to six paths, these are all sets. Of more
    paths, one path after the other is left out, always that which is missed least.
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
    """Return the bandwidth-delay product of a path in frames (2)."""
    return path.bandwidth_bps * path.rtt_s / FRAME_BITS


def _window_alone(path: PathQuality) -> float:
    loss = min(path.loss, LARGEST_LOSS)
    balance = sqrt(3 * (1 - loss) / (2 * loss)) if loss else inf
    return min(balance, _full(path))  # 1


def _coupled_windows(paths: Sequence[PathQuality]) -> tuple[float, ...]:
    """Return the windows in frames at which growth and loss of BALIA are in balance (4).

    For the paths that are not full: growth (1 - l) Y (1 + a)(4 + a) / (10 mu sum(Y)^2) equals
    decrease l w/2 min(a, 1.5), with Y = w / mu and a = max Y / Y. Each round moves the windows a
    part of the way.
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


MOST_CANDIDATES = 3
HEAD_START_S = 30.0  # of the budget of trials, because a forecast names the candidates
OPENING_GAIN = 2.0  # far above the error of today's forecast
ALIKE = 0.03  # the forecast does not tell sets apart that differ by less


class SubflowSelectionParams(SelectingParams, TrialParams):
    """Hold the parameters of the greedy search, of the other forecast and of the closed loop.

    The paper's Algorithm 1 can be read in several ways; `accept` and `starts` choose one.
    """

    accept: Accept = param(
        "gain",
        "choice",
        "Test of a path: buffer of the set without it, with it, or with it and more throughput",
    )
    starts: Starts = param(
        "first", "choice", "Begin with the most promising path, or once with every path"
    )
    forecast: Literal["paper", "today"] = param(
        "paper",
        "choice",
        "Markov chains as in the paper, or for the TCP of today (ours)",
    )
    loop: Literal["open", "closed"] = param(
        "open",
        "choice",
        "Use the set with the best forecast, or try it and keep it only if it carries more (ours)",
    )


class SubflowSelection(Selecting):
    """Select subflows with the greedy search (DTMC selection, Algorithm 1), or by trials.

    With `loop: closed` the strategy stores the measurements of each connection. After a restart of
    the controller, or a change of parameters, all subflows are used and measured anew.
    """

    name = "subflow_selection"
    Params = SubflowSelectionParams
    params: SubflowSelectionParams
    improved = {"forecast": "today", "loop": "closed", "interval_s": 1.0}

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._trials: dict[str, Trials] = {}

    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        return greedy(paths, model, rl_max_bytes, self.params.accept, self.params.starts)

    def choose(self, situation: Situation) -> tuple[Choice, str]:
        if self.params.loop == "closed":
            return self._tried(situation)
        if self.params.forecast == "paper":
            return super().choose(situation)
        used_bps = float(sum(each.rate_bps or 0 for each in situation.subflows))
        active = [n for n, each in enumerate(situation.subflows) if not each.backup]
        coupled = self._is_coupled(situation, tuple(active), used_bps)
        everything = tuple(range(len(situation.paths)))
        choice = self._choice(situation, everything, coupled)
        best_bps, best = searched(situation.paths, situation.buffer_bytes, coupled)[0]
        if best_bps > choice.estimate.throughput_bps * (1 + self.params.trial_gain):
            choice = self._choice(situation, best, coupled)  # 5
        return choice, ""

    def _tried(self, situation: Situation) -> tuple[Choice, str]:
        """Return the set of paths that the trials of this connection use now, and why (6)."""
        self._trials = {
            name: each for name, each in self._trials.items() if name in situation.connections
        }
        trials = self._trials.setdefault(situation.connection, Trials(self.params, HEAD_START_S))
        measured_bps, numbers = (trials.measured() or 0.0) * FRAME_BITS, situation.numbers
        used = tuple(n for n, number in enumerate(numbers) if number in trials.incumbent)
        coupled = self._is_coupled(situation, used, measured_bps)
        candidates: list[Numbers] = []
        if situation.alone and measured_bps and trials.challenger is None:
            promising = self._promising(situation, measured_bps, coupled)
            candidates = [frozenset(numbers[n] for n in each) for each in promising]
        outcome = trials.step(
            situation.now_ns,
            situation.subflows,
            loss_conditions(each.loss for each in situation.paths),
            candidates,
            lambda: self._opening(situation),
        )
        chosen = tuple(n for n, number in enumerate(numbers) if number in outcome.active)
        return self._choice(situation, chosen, coupled), outcome.reason

    def _opening(self, situation: Situation) -> Numbers:
        """Return the set of subflows to begin with; an empty one if no set promises enough."""
        if self.params.forecast == "paper" or not situation.alone:
            return frozenset()
        promises = []
        for coupled in (False, True):
            found = searched(situation.paths, situation.buffer_bytes, coupled)
            (best_bps, best), all_bps = found[0], min(found, key=lambda each: -len(each[1]))[0]
            promises.append((best_bps / max(all_bps, 1.0), best))
        gain, best = min(promises)
        return frozenset(situation.numbers[n] for n in best if gain >= OPENING_GAIN)

    def _promising(
        self, situation: Situation, measured_bps: float, coupled: bool
    ) -> list[tuple[int, ...]]:
        """Return sets of paths that may carry more than `measured_bps`, the best first.

        The chain's forecast is mostly too low, so the set with the best one always counts. Of sets
        that today's forecast does not tell apart, the smaller ones come first.
        """
        if self.params.forecast == "paper":
            return [super().choose(situation)[0].chosen]
        found = searched(situation.paths, situation.buffer_bytes, coupled)
        least_bps = max(measured_bps * (1 + self.params.trial_gain), found[0][0] * (1 - ALIKE))
        alike = [each for forecast_bps, each in found if forecast_bps >= least_bps]
        return sorted(alike, key=len)[:MOST_CANDIDATES]

    def _is_coupled(self, situation: Situation, used: tuple[int, ...], measured_bps: float) -> bool:
        paths = tuple(situation.paths[n] for n in used)
        if self.params.forecast == "paper" or not paths or not measured_bps:
            return False
        return is_coupled(paths, situation.buffer_bytes, measured_bps)

    def _choice(self, situation: Situation, chosen: tuple[int, ...], coupled: bool) -> Choice:
        paths = tuple(situation.paths[n] for n in chosen)
        if self.params.forecast == "paper":
            return Choice(chosen, estimate(paths, situation.model))
        return Choice(chosen, estimate_today(paths, situation.buffer_bytes, coupled))
