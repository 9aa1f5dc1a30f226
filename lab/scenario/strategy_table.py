"""The controller's strategies by name: their parameters, their help texts, and whether they can act
in a given network.

`controller.strategies` is imported only when a function needs it, so that the command line starts
quickly.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from lab.errors import RequestError, unknown
from lab.scenario.checking import described, validate
from lab.topologies.topology import Topology, wire


def strategies() -> dict[str, Any]:
    """Return the class of each strategy by name, users' own strategies included."""
    from controller.strategies import STRATEGIES

    return dict(STRATEGIES)


def params_of(name: str, source: str = "strategy") -> type[BaseModel]:
    """Return the pydantic model that checks the parameters of the strategy `name`.

    Raise `RequestError`, which lists the known names, if there is no such strategy. The message
    begins with `source`.
    """
    from controller.strategies import forms

    known = strategies()
    if name not in known:
        raise RequestError(
            f"{source}: {forms.explain_unknown(name, known) or unknown(name, sorted(known))}"
        )
    model: type[BaseModel] = known[name].Params
    return model


def checked_params(name: str, params: dict[str, Any], source: str, *prefix: str) -> dict[str, Any]:
    """Return all parameters of a strategy as plain data: the values in `params`, checked, and
    defaults for the others.

    Raise `RequestError` if a value is wrong. The message begins with `source` and the keys
    `prefix`, which say where in the file the parameters are.
    """
    model = params_of(name, f"{source}: {prefix[0]}.name" if prefix else source)
    return validate(model, params, source, *prefix).model_dump(mode="json")


def check_fit(name: str, topology: Topology, source: str) -> None:
    """Raise `RequestError` if the strategy `name` could never act in this network.

    The message begins with `source` and lists the strategies that can.
    """
    why = unfit(topology)
    if why[name]:
        fit = ", ".join(each for each, reason in why.items() if not reason)
        raise RequestError(
            f"{source}: strategy '{name}' has nothing to do in this network: {why[name]}. "
            f"Choose from {fit}"
        )


def unfit(topology: Topology) -> dict[str, str | None]:
    """Return for each strategy why it could never act in this network, or None if it can."""
    from controller.plan import Plan
    from lab.topologies.topology import as_json

    plan = Plan.model_validate(as_json(topology, wire(topology)))
    return {name: strategy.unfit(plan) for name, strategy in sorted(strategies().items())}


def summary(name: str) -> str:
    """Return the help text of a strategy: the first line of its module's docstring, and the presets
    of its improved form if it has one."""
    from controller.strategies.forms import preset_text

    strategy = strategies()[name]
    line = (sys.modules[strategy.__module__].__doc__ or "").strip().partition("\n")[0]
    presets = preset_text(strategy)
    return f"{line} Improved form: {presets}." if presets else line


def describe_params(name: str) -> list[dict[str, Any]]:
    """Return name, type, unit, bounds, choices, default and help text of each parameter of a
    strategy."""
    return described(params_of(name))
