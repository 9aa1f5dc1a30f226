"""`list`: what there is, as rows for people and as JSON for programs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import click

from lab import engines
from lab.errors import RequestError, unknown
from lab.results.tables import text_table
from lab.scenario import catalogue as brain
from lab.scenario import checking, targets
from lab.scenario import loading as scenario
from lab.scenario.congestion import CONGESTION_CONTROLS
from lab.topologies.families import TOPOLOGIES

Row = dict[str, Any]


def scenarios() -> list[Row]:
    keys = ("name", "title", "paper", "question", "expect", "minutes")
    loaded = (scenario.load(name) for name in scenario.names())
    return [
        {key: getattr(each, key) for key in keys} | {"topology": each.topology.kind}
        for each in loaded
    ]


def strategies() -> list[Row]:
    return [
        {"name": name, "help": brain.summary(name), "params": brain.describe_params(name)}
        for name in brain.strategies()
    ]


def congestion_controls() -> list[Row]:
    able = {
        name: [engine for engine, entry in engines.ENGINES.items() if name in entry.cc]
        for name in CONGESTION_CONTROLS
    }
    return [
        {"name": name, "help": text, "engines": able[name]}
        for name, text in CONGESTION_CONTROLS.items()
    ]


def engine_table() -> list[Row]:
    """Engines by name. `real_time`: its clock is the wall's, so it has neither speed nor pause. `cannot_build`: topologies, and why."""
    return [
        {
            "name": name,
            "real_time": entry.real_time,
            "cc": list(entry.cc),
            "schedulers": list(entry.schedulers),
            "cannot_build": dict(entry.topologies),
        }
        for name, entry in engines.ENGINES.items()
    ]


def topologies() -> list[Row]:
    rows = []
    for kind, module in TOPOLOGIES.items():
        text = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
        keys = list(module.Params.model_fields)
        rows.append(
            {"kind": kind, "help": text, "params": keys, "picture": inspect.getdoc(module.build)}
        )
    return rows


def params(name: str) -> list[Row]:
    """Of a strategy, or of a kind of topology."""
    known = [*brain.strategies(), *TOPOLOGIES]
    if name not in known:
        raise RequestError(f"list params: {unknown(name, known)}")
    return (
        checking.described(TOPOLOGIES[name].Params)
        if name in TOPOLOGIES
        else brain.describe_params(name)
    )


def flippable(wanted: str) -> list[Row]:
    return [target.row() for target in targets.targets(scenario.load(wanted)).values()]


def show(rows: Sequence[Row], columns: Sequence[str], as_json: bool) -> None:
    """Print rows: all their keys as JSON, or some as columns."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif not rows:
        click.echo("none")
    else:
        click.echo(
            text_table(columns, [[_text(row[column]) for column in columns] for row in rows])
        )


def _text(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "true" if value is True else "false" if value is False else value
