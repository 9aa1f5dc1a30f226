"""Find the users' own files (strategies, congestion controls, topologies) that a scenario needs."""

from __future__ import annotations

from collections.abc import Container

from controller.strategy_names import base_name
from lab import extensions, user_file
from lab.extensions import Extension
from lab.scenario.engine_table import ENGINES
from lab.scenario.schema import Scenario


def strategies(scenario: Scenario) -> list[str]:
    """Return the strategies that a scenario uses: the one at the start, then those that events
    select."""
    named = [scenario.strategy.name]
    for event in scenario.events:
        if event.target == "strategy":
            named.append(event.value["name"] if isinstance(event.value, dict) else event.value)
    return list(dict.fromkeys(named))


def user_files(scenario: Scenario, engine: str) -> tuple[Extension, ...]:
    """Return the users' files that are loaded when the scenario runs on this engine."""
    names = {
        *map(base_name, strategies(scenario)),
        *scenario.congestion_controls,
        scenario.topology.kind,
    }
    return files_named(names, engine)


def files_named(names: Container[str], engine: str) -> tuple[Extension, ...]:
    """The users' registered files that define one of `names`, and all metrics, sorted by name.

    Of a congestion control, which can have a file for each engine, only the file for `engine`.
    """
    suffix = ENGINES[engine].law_suffix if engine in ENGINES else user_file.PYTHON
    found = (
        each
        for each in extensions.registered()
        if (each.name in names or each.kind == "metric")
        and each.kind != "scenario"
        and (each.kind != "cc" or each.path.suffix == suffix)
    )
    return tuple(sorted(found, key=lambda each: each.name))
