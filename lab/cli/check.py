"""Implement the command `check`: load a scenario and the user's own files, but start no run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lab import extensions, user_file_kind
from lab.engines import registry
from lab.scenario import engine_table
from lab.scenario.loading import load
from lab.scenario.overrides import Overrides


def check(scenario: str, settings: Sequence[str], strategy: str | None, cc: str | None) -> None:
    """Load a scenario. Print that it is valid, and which of the user's own files were imported.

    `strategy` and `cc` are names or files; they and the `settings` (KEY=VALUE) replace values of
    the scenario. Raise `LabError` if the scenario is not valid.
    """
    strategy = strategy and extensions.strategy_name(strategy)
    cc = cc and extensions.cc_name(cc)
    loaded = load(scenario, Overrides(strategy, cc, settings=tuple(settings)))
    for engine in engine_table.ENGINES:
        registry.load_laws(engine)
    for each in extensions.registered():
        if each.path.suffix == user_file_kind.PYTHON:
            click.echo(f"imported {each.path}: {each.kind} '{each.name}'")
    click.echo(f"{loaded.name}: valid. {loaded.title}")
    if late := [f"{event.at_s:g}" for event in loaded.events if event.at_s > loaded.duration_s]:
        click.echo(
            f"warning: the run ends at {loaded.duration_s:g} s, "
            f"before its events at {', '.join(late)} s"
        )
