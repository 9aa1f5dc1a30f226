"""List the scenarios, strategies, topologies, engines and so on that the lab offers, as plain
dictionaries for the command line and the dashboard."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lab import extensions
from lab.errors import LabError, RequestError, unknown
from lab.scenario import checking, loading, strategy_table, targets, yaml_text
from lab.scenario.engine_table import ENGINES, congestion_controls
from lab.scenario.schema import Scenario
from lab.topologies.families import TOPOLOGIES

Row = dict[str, Any]


def scenario_rows(refuse: Callable[[Any], None] = lambda document: None) -> list[Row]:
    """Return a dictionary per scenario. For a scenario that cannot be loaded it has an `error` with
    the message.

    `refuse` is called with the content of each scenario file before it is loaded; it may raise
    `LabError` to exclude the scenario in this way.
    """
    rows = []
    for name in loading.names():
        try:
            refuse(yaml_text.read(loading.find(name)))
            rows.append(_scenario_row(loading.load(name)))
        except LabError as error:
            rows.append({"name": name, "title": name, "error": str(error)})
    return rows


def strategy_rows() -> list[Row]:
    """Return a dictionary per strategy: its name, help text and parameters."""
    return [
        {
            "name": name,
            "help": strategy_table.summary(name),
            "params": strategy_table.describe_params(name),
        }
        for name in strategy_table.strategies()
    ]


def congestion_control_rows() -> list[Row]:
    """Return a dictionary per congestion control: its name, its help text, and the engines that can
    run it."""
    return [
        {
            "name": name,
            "help": text,
            "engines": [each for each in ENGINES if name in congestion_controls(each)],
        }
        for name, text in extensions.congestion_controls().items()
    ]


def engine_rows() -> list[Row]:
    """Return a dictionary per engine.

    `real_time`: the engine follows the wall clock, so its runs have neither speed nor pause.
    `cannot_build`: the kinds of topology that it cannot build, each with the reason.
    """
    return [
        {
            "name": name,
            "real_time": entry.real_time,
            "cc": list(congestion_controls(name)),
            "schedulers": list(entry.schedulers),
            "cannot_build": dict(entry.topologies),
        }
        for name, entry in ENGINES.items()
    ]


def topology_rows() -> list[Row]:
    """Return a dictionary per kind of topology: its name, its help text, the names of its
    parameters, and a drawing."""
    rows = []
    for kind, module in TOPOLOGIES.items():
        text = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
        keys = list(module.Params.model_fields)
        rows.append(
            {"kind": kind, "help": text, "params": keys, "picture": inspect.getdoc(module.build)}
        )
    return rows


def parameter_rows(name: str) -> list[Row]:
    """Return a dictionary per parameter of a strategy, or of a kind of topology.

    Raise `RequestError`, which lists the known names, if `name` is neither.
    """
    known = [*strategy_table.strategies(), *TOPOLOGIES]
    if name not in known:
        raise RequestError(f"list params: {unknown(name, known)}")
    if name in TOPOLOGIES:
        return checking.described(TOPOLOGIES[name].Params)
    return strategy_table.describe_params(name)


def target_rows(scenario: str) -> list[Row]:
    """Return a dictionary for each target that can be changed while a scenario runs, with its unit
    and bounds."""
    return [target.row() for target in targets.targets(loading.load(scenario)).values()]


def _scenario_row(scenario: Scenario) -> Row:
    keys = ("name", "title", "paper", "question", "expect", "minutes", "seed", "duration_s")
    params = scenario.topology.params.model_dump(mode="json")
    return {key: getattr(scenario, key) for key in keys} | {
        "topology": scenario.topology.kind,
        "strategy": scenario.strategy.name,
        "params": scenario.strategy.params,
        "cc": scenario.multipath.cc,
        "users": list(scenario.network.users),
        "multipath": params.get("multipath"),
    }
