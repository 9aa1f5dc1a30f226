"""The best of all sets of subflows by the same forecast: what Algorithm 1 of DTMC selection is measured against.

Everything but the search is that of `subflow_selection` (paper, section V-B: the optimal path manager).
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.strategies.base import param
from controller.strategies.subflow_selection.forecast import Model, PathQuality
from controller.strategies.subflow_selection.selection import Choice, exhaustive
from controller.strategies.subflow_selection.strategy import Selecting, SelectingParams


class OptimumParams(SelectingParams):
    """How far the search goes."""

    most_paths: int = param(
        6,
        "subflows",
        "Largest set that is looked at; a set's throughput falls long before",
        ge=1,
        le=15,
    )


class Optimum(Selecting):
    """Exhaustive search; sets that cannot be the best are left out unseen."""

    name = "optimum"
    Params = OptimumParams
    params: OptimumParams

    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        return exhaustive(tuple(paths), model, rl_max_bytes, self.params.most_paths)
