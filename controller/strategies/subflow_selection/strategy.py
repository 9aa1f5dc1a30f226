"""Select the subflows with the largest throughput forecast by Markov chains (DTMC selection).

Every `interval_s`, and as soon as a subflow opens or closes, for every connection with more than
one subflow:
1) Determine bandwidth, loss and round trip of each subflow's path (module `selecting`).
2) Search the set with the largest expected throughput whose receive buffer is within `rl_max_kb`
   (module `search`).
3) Use the chosen subflows and make the others backup. No subflow becomes backup before at least one
   chosen subflow is in use.
4) Log the forecast together with the throughput measured since the last step.
The forecast uses the rates on the wire. Paper: sections IV and V-A.

Two parameters replace the paper's step 2; both are ours:
5) `forecast: today` forecasts with the TCP of today (`estimate_today`). As this forecast is
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
from typing import Literal

from controller.strategies.base import StrategyParams, choice
from controller.strategies.subflow_selection.forecast import (
    FRAME_BITS,
    Model,
    PathQuality,
    estimate,
    estimate_today,
    is_coupled,
    searched,
)
from controller.strategies.subflow_selection.search import Accept, Choice, Starts, greedy
from controller.strategies.subflow_selection.selecting import (
    Selecting,
    SelectingParams,
    Situation,
)
from controller.strategies.trial import Conditions, Numbers, TrialParams, Trials

MOST_CANDIDATES = 3
HEAD_START_S = 30.0  # of the budget of trials, because a forecast names the candidates
OPENING_GAIN = 2.0  # far above the error of today's forecast
ALIKE = 0.03  # the forecast does not tell sets apart that differ by less


class SubflowSelectionParams(SelectingParams, TrialParams):
    """Parameters of the greedy search, of the forecast for present-day TCP and of the trials.

    The paper's Algorithm 1 can be read in several ways; `accept` and `starts` choose between them.
    """

    accept: Accept = choice(
        "gain",
        "Test of a path: buffer of the set without it, with it, or with it and more throughput",
    )
    starts: Starts = choice("first", "Begin with the most promising path, or once with every path")
    forecast: Literal["paper", "today"] = choice(
        "paper",
        "Markov chains as in the paper, or for the TCP of today (ours)",
    )
    loop: Literal["open", "closed"] = choice(
        "open",
        "Use the set with the best forecast, or try it and keep it only if it carries more (ours)",
    )


class SubflowSelection(Selecting):
    """Selects subflows by the greedy search (DTMC selection, Algorithm 1), or by trials.

    With trials (`loop: closed`), the strategy stores the measurements of each connection. After a
    restart of the controller, or a change of parameters, all subflows are used and measured anew.
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
        """Return the set of paths that the trials want to use now, and the reason."""  # 6
        self._trials = {
            name: each for name, each in self._trials.items() if name in situation.connections
        }
        connection = situation.subflows[0].connection
        trials = self._trials.setdefault(connection, Trials(self.params, HEAD_START_S))
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
            Conditions(situation.states),
            candidates,
            lambda: self._opening(situation),
        )
        chosen = tuple(n for n, number in enumerate(numbers) if number in outcome.active)
        return self._choice(situation, chosen, coupled), outcome.reason

    def _opening(self, situation: Situation) -> Numbers:
        """Return the set of subflows with which a new connection begins.

        This is the set with the largest forecast, if this forecast is at least `OPENING_GAIN` times
        that for all subflows together. Otherwise the result is empty, which means all subflows.
        """
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

        The paper's forecast is mostly too low. With this forecast, the best set is therefore
        returned even if it promises less than `measured_bps`. With the forecast for present-day
        TCP, sets with nearly equal forecasts count as equal, and smaller sets come first.
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
