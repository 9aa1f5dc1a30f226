"""Choose the best of all sets of subflows by the forecast of DTMC selection (baseline).

The result shows how far the greedy search of the strategy `subflow_selection` is from the best set
(DTMC selection, section V-B: the optimal path manager). Only the search differs; everything else is
in `controller/strategies/subflow_selection`.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.strategies.base import param
from controller.strategies.subflow_selection.forecast import Model, PathQuality
from controller.strategies.subflow_selection.search import Choice, exhaustive
from controller.strategies.subflow_selection.selecting import Selecting, SelectingParams


class OptimumParams(SelectingParams):
    most_paths: int = param(
        6,
        "subflows",
        "Largest set that the search tries; more subflows rarely bring more throughput",
        ge=1,
        le=15,
    )


class Optimum(Selecting):
    """Finds, among all sets of subflows, the one with the largest forecast throughput.

    To save time, a set gets no forecast if an upper bound shows that another set is better.
    """

    name = "optimum"
    Params = OptimumParams
    params: OptimumParams

    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        return exhaustive(tuple(paths), model, rl_max_bytes, self.params.most_paths)
