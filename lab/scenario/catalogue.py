"""Tables of the scenarios, strategies, congestion controls, engines and topologies of the lab.

Each row is a plain dictionary, for the command line and the dashboard.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lab import extensions
from lab.errors import LabError, RequestError, unknown
from lab.scenario import loading, schema, targets
from lab.scenario.engine_table import ENGINES, VARIANTS, congestion_controls, refuse
from lab.scenario.network_files import KEYS, READERS
from lab.scenario.schema import Scenario
from lab.topologies.families import TOPOLOGIES

Row = dict[str, Any]


def scenario_rows(refuse: Callable[[str], None] = lambda name: None) -> list[Row]:
    """Return one row per scenario. If a scenario cannot be loaded, its row has the key `error`.

    `refuse` is called with the name of each scenario before the scenario is loaded. It can raise
    `LabError`; the text becomes the `error` of this scenario.
    """
    rows = []
    for name in loading.names():
        try:
            refuse(name)
            rows.append(_scenario_row(loading.load(name)))
        except LabError as error:
            rows.append({"name": name, "title": name, "error": str(error)})
    return rows


def strategy_rows() -> list[Row]:
    return [
        {
            "name": name,
            "help": schema.strategy_help(name),
            "params": schema.described_strategy(name),
        }
        for name in schema.strategies()
    ]


def congestion_control_rows() -> list[Row]:
    return [
        {
            "name": name,
            "help": text,
            "engines": [each for each in ENGINES if name in congestion_controls(each)],
        }
        for name, text in extensions.congestion_controls().items()
    ]


def engine_rows() -> list[Row]:
    """Return one row per engine (emulation and simulator).

    `real_time` is True if the engine follows the wall clock, so that its runs cannot be paused or
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
    """Return one row per kind of topology: its help text, the names of its parameters, and a
    drawing made of text characters. Then follow the keys of `topology` that name another program's
    file, which have no drawing."""
    rows: list[Row] = [
        {
            "kind": kind,
            "help": _first_paragraph(module),
            "params": list(module.Params.model_fields),
            "picture": inspect.getdoc(module.build),
        }
        for kind, module in TOPOLOGIES.items()
    ]
    for key, model in KEYS.items():
        text = f"{_first_paragraph(READERS[key])} Write 'topology: {{{key}: FILE, ...}}'."
        rows.append({"kind": key, "help": text, "params": list(model.model_fields)})
    return rows


def _first_paragraph(module: ModuleType) -> str:
    return " ".join((module.__doc__ or "").partition("\n\n")[0].split())


def parameter_rows(name: str) -> list[Row]:
    """Return one row per parameter of a strategy or of a kind of topology.

    Raise `RequestError`, which lists the known names, if `name` is neither.
    """
    known = [*schema.strategies(), *TOPOLOGIES, *KEYS]
    if name in TOPOLOGIES:
        return schema.described(TOPOLOGIES[name].Params)
    if name in KEYS:
        return schema.described(KEYS[name])
    if "/" not in name and name not in known:
        raise RequestError(f"list params: {unknown(name, known)}")
    return schema.described_strategy(name)


def target_rows(scenario: str) -> list[Row]:
    """Return one row per parameter of a scenario that can be changed while it runs."""
    loaded = loading.load(scenario, may_run_code=True)
    return [target.row() for target in targets.targets(loaded).values()]


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
