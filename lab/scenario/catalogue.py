"""The strategies the brain knows, their parameters, and what to say about each: asked for late, so that start-up stays short."""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from lab.errors import RequestError, unknown
from lab.scenario.checking import described, validate
from lab.topologies.topology import Topology, wire


def strategies() -> dict[str, Any]:
    """The visible table of `controller.strategies`."""
    from controller.strategies import STRATEGIES

    return dict(STRATEGIES)


def params_of(name: str, source: str = "strategy") -> type[BaseModel]:
    """The parameter schema of a strategy, or an error that lists the known ones."""
    known = strategies()
    if name not in known:
        raise RequestError(f"{source}: {unknown(name, sorted(known))}")
    model: type[BaseModel] = known[name].Params
    return model


def checked_params(name: str, params: dict[str, Any], source: str, *prefix: str) -> dict[str, Any]:
    """All parameters of a strategy, defaults included, as plain data."""
    model = params_of(name, f"{source}: {prefix[0]}.name" if prefix else source)
    return validate(model, params, source, *prefix).model_dump(mode="json")


def check_fit(name: str, topology: Topology, source: str) -> None:
    """Refuse a strategy that could never act on this network."""
    why = unfit(topology)
    if why[name]:
        fit = ", ".join(each for each, reason in why.items() if not reason)
        raise RequestError(
            f"{source}: strategy '{name}' has nothing to do in this network: {why[name]}. Choose from {fit}"
        )


def unfit(topology: Topology) -> dict[str, str | None]:
    """Why each strategy could never act on this network; None if it could."""
    from controller.plan import Plan
    from lab.topologies.topology_file import describe

    plan = Plan.model_validate(describe(topology, wire(topology)))
    return {name: strategy.unfit(plan) for name, strategy in sorted(strategies().items())}


def summary(name: str) -> str:
    """The first line of the strategy's own file."""
    return (sys.modules[strategies()[name].__module__].__doc__ or "").strip().partition("\n")[0]


def describe_params(name: str) -> list[dict[str, Any]]:
    """Each parameter's name, type, unit, bounds, default and help, for people and for forms."""
    return described(params_of(name))
