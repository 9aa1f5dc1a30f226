"""The table of all strategies, and the creation of a strategy from its name.

Each strategy has a file or a folder of its own. The first line of the file's docstring is the help
text of the strategy.
"""

from __future__ import annotations

from typing import Any

from controller.errors import UnknownStrategy
from controller.strategies.base import Strategy, StrategyParams, checked_params
from controller.strategies.disjoint import Disjoint
from controller.strategies.expected_throughput import ExpectedThroughput
from controller.strategies.failures import failures_of
from controller.strategies.forms import explain_unknown, named_forms
from controller.strategies.loss_aware import LossAware
from controller.strategies.meter_throttling import MeterThrottling
from controller.strategies.none import NoStrategy
from controller.strategies.optimum import Optimum
from controller.strategies.subflow_selection.strategy import SubflowSelection

STRATEGIES: dict[str, type[Strategy]] = {
    name: form
    for strategy in (
        NoStrategy,
        MeterThrottling,
        SubflowSelection,
        Optimum,
        LossAware,
        ExpectedThroughput,
        Disjoint,
    )
    for name, form in named_forms(strategy).items()
}

BUILT_IN = frozenset(STRATEGIES)  # `from_file.register` adds further ones to the table

__all__ = ["BUILT_IN", "STRATEGIES", "Strategy", "StrategyParams", "known", "make"]


def known(name: str) -> type[Strategy]:
    """Return the class of the strategy `name`.

    Raise `UnknownStrategy` if no strategy has this name. The message lists the valid names.
    """
    if name not in STRATEGIES:
        raise UnknownStrategy(
            explain_unknown(name, STRATEGIES)
            or f"strategy {name!r} is unknown: choose from {', '.join(sorted(STRATEGIES))}"
        )
    return STRATEGIES[name]


def make(name: str, params: dict[str, Any], rate_scale: float = 1.0) -> Strategy:
    """Create the strategy `name`. Parameters that are missing in `params` get their defaults.

    Rates in `params` are as in the scenario file. Rates on the wire are `rate_scale` times as
    large.
    """
    strategy = known(name)
    checked = checked_params(strategy.Params, params, f"start strategy '{name}'", rate_scale)
    with failures_of(strategy, "__init__"):
        return strategy(checked)
