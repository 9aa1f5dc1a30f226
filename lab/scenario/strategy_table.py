"""Look up strategies by name: their parameters, their help texts, and the networks they fit.

`controller.strategies` is imported when it is needed, so that the command line starts quickly.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from lab.errors import RequestError, unknown
from lab.scenario.checking import described, validate
from lab.topologies.topology import Topology, wire


def strategies() -> dict[str, Any]:
    """Return the table of `controller.strategies`: name to class."""
    from controller.strategies import STRATEGIES

    return dict(STRATEGIES)


def params_of(name: str, source: str = "strategy") -> type[BaseModel]:
    """Return the parameter schema of a strategy.

    Raise `RequestError` that lists the known names if the name is unknown.
    """
    known = strategies()
    if name not in known:
        raise RequestError(f"{source}: {unknown(name, sorted(known))}")
    model: type[BaseModel] = known[name].Params
    return model


def checked_params(name: str, params: dict[str, Any], source: str, *prefix: str) -> dict[str, Any]:
    """Return all parameters of a strategy, defaults included, as plain data."""
    model = params_of(name, f"{source}: {prefix[0]}.name" if prefix else source)
    return validate(model, params, source, *prefix).model_dump(mode="json")


def check_fit(name: str, topology: Topology, source: str) -> None:
    """Refuse a strategy that could never act on this network."""
    why = unfit(topology)
    if why[name]:
        fit = ", ".join(each for each, reason in why.items() if not reason)
        raise RequestError(
            f"{source}: strategy '{name}' has nothing to do in this network: {why[name]}. "
            f"Choose from {fit}"
        )


def unfit(topology: Topology) -> dict[str, str | None]:
    """Return by strategy the reason why it could never act on this network, or None."""
    from controller.plan import Plan
    from lab.topologies.topology_file import describe

    plan = Plan.model_validate(describe(topology, wire(topology)))
    return {name: strategy.unfit(plan) for name, strategy in sorted(strategies().items())}


def summary(name: str) -> str:
    """Return the first line of the docstring of the strategy's module."""
    return (sys.modules[strategies()[name].__module__].__doc__ or "").strip().partition("\n")[0]


def describe_params(name: str) -> list[dict[str, Any]]:
    """Return a row per parameter: name, type, unit, bounds, default and help."""
    return described(params_of(name))
