"""List the scenarios, strategies, congestion controls, engines and topologies that the lab offers.
The rows are plain dictionaries for the command line and the dashboard."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lab import extensions
from lab.errors import LabError, RequestError, unknown
from lab.scenario import checking, loading, strategy_table, targets, yaml_text
from lab.scenario.engine_table import ENGINES, VARIANTS, congestion_controls, refuse
from lab.scenario.schema import Scenario
from lab.topologies.families import TOPOLOGIES

Row = dict[str, Any]


def scenario_rows(refuse: Callable[[Any], None] = lambda document: None) -> list[Row]:
    """Return one dictionary per scenario. If a scenario cannot be loaded, its dictionary holds the
    message under the key `error`.

    `refuse` is called with the content of each scenario file before the scenario is loaded. It can
    raise `LabError`, which counts as an error of this scenario.
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
    """Return one dictionary per strategy: the name, the help text and the parameters."""
    return [
        {
            "name": name,
            "help": strategy_table.summary(name),
            "params": strategy_table.describe_params(name),
        }
        for name in strategy_table.strategies()
    ]


def congestion_control_rows() -> list[Row]:
    """Return one dictionary per congestion control: the name, the help text, and the engines that
    can run it."""
    return [
        {
            "name": name,
            "help": text,
            "engines": [each for each in ENGINES if name in congestion_controls(each)],
        }
        for name, text in extensions.congestion_controls().items()
    ]


def engine_rows() -> list[Row]:
    """Return one dictionary per engine.

    `real_time` says whether the engine follows the wall clock, so that its runs cannot be paused or
    sped up.
    """
    return [
        {
            "name": name,
            "real_time": entry.real_time,
            "cc": list(congestion_controls(name)),
            "schedulers": list(entry.schedulers),
        }
        for name, entry in ENGINES.items()
    ]


def topology_rows() -> list[Row]:
    """Return one dictionary per kind of topology: the kind, the help text, the names of the
    parameters, and a drawing in text."""
    rows = []
    for kind, module in TOPOLOGIES.items():
        text = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
        keys = list(module.Params.model_fields)
        rows.append(
            {"kind": kind, "help": text, "params": keys, "picture": inspect.getdoc(module.build)}
        )
    return rows


def parameter_rows(name: str) -> list[Row]:
    """Return one dictionary per parameter of the strategy or kind of topology `name`.

    Raise `RequestError`, which lists the known names, if `name` is neither a strategy nor a kind of
    topology.
    """
    known = [*strategy_table.strategies(), *TOPOLOGIES]
    if name in TOPOLOGIES:
        return checking.described(TOPOLOGIES[name].Params)
    if "/" not in name and name not in known:
        raise RequestError(f"list params: {unknown(name, known)}")
    return strategy_table.describe_params(name)


def target_rows(scenario: str) -> list[Row]:
    """Return one dictionary per target, that is, per value that can be changed while the scenario
    runs: its name, unit, bounds and value at the start."""
    return [target.row() for target in targets.targets(loading.load(scenario)).values()]


def _scenario_row(scenario: Scenario) -> Row:
    keys = ("name", "title", "paper", "question", "expect", "minutes", "seed", "duration_s")
    params = scenario.topology.params.model_dump(mode="json")
    return {key: getattr(scenario, key) for key in keys} | {
        "topology": scenario.topology.kind,
        "strategy": scenario.strategy.name,
        "params": scenario.strategy.params,
        "cc": scenario.multipath.cc,
        "engines": [each for each in ENGINES if _has_all_settings(each, scenario)],
        "users": list(scenario.network.users),
        "multipath": params.get("multipath"),
    }


def _has_all_settings(engine: str, scenario: Scenario) -> bool:
    """Return whether an engine supports the congestion controls and settings of a scenario."""
    multipath = scenario.multipath
    settings = [("cc", cc) for cc in scenario.congestion_controls]
    for name in ("stack", "scheduler", "penalisation", *VARIANTS):
        settings.append((name, getattr(multipath, name)))
    try:
        for name, value in settings:
            refuse(engine, name, value)
    except LabError:
        return False
    return True
