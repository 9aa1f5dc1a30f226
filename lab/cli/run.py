"""The work of the commands `run` and `check`. All runs are checked before the first one starts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from lab import extensions, user_file
from lab.batch import jobs
from lab.batch.cluster import executor
from lab.batch.estimate import estimated
from lab.batch.job import Job
from lab.batch.plan import Plan
from lab.batch.request import Request, checked
from lab.batch.sweep import Sweep
from lab.cli import terminal as view
from lab.cli.terminal import Terminal
from lab.engines import registry
from lab.results import compare, compare_text, responses
from lab.run.outcome import EXIT_INTERRUPTED, Outcome
from lab.run.reading import read_document
from lab.scenario import engine_table
from lab.scenario.cautions import cautions
from lab.scenario.loading import Overrides, load
from lab.topologies import nodes_and_links
from lab.vm_environment import asked_dilation

NAMED_FAILURES = 20
NAMED_WARNINGS = 5


def check(scenario: str, settings: Sequence[str], strategy: str | None, cc: str | None) -> None:
    """Load a scenario. Print that it is valid, and which of the user's own files were imported.

    `strategy` and `cc` are names or files that replace those of the scenario. `settings` are texts
    such as `KEY=VALUE` that replace other values. Raise `LabError` if the scenario is not valid.
    """
    strategy = strategy and extensions.strategy_name(strategy)
    cc = cc and extensions.cc_name(cc)
    overrides = Overrides(strategy, cc, settings=tuple(settings), are_typed=True)
    loaded = load(scenario, overrides, may_run_code=True)
    for engine in engine_table.ENGINES:
        registry.load_laws(engine)
    for each in extensions.registered():
        if each.path.suffix == user_file.PYTHON:
            click.echo(f"imported {each.path}: {each.kind} '{each.name}'")
    for note in nodes_and_links.notes(loaded.topology.params):
        click.echo(f"network: {note}")
    click.echo(f"{loaded.name}: valid. {loaded.title}")
    for text in cautions(loaded):
        click.echo(f"warning: {text}")


@dataclass(frozen=True)
class Output:
    """What to write: `report` writes report.md for each run, `as_json` prints only JSON, and
    `quiet` prints only errors."""

    report: bool = False
    as_json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        return self.quiet or self.as_json


def run(request: Request, output: Output, cluster: str | None = None) -> int:
    """Make the requested runs and print the results. Return the exit code. `cluster` is the address
    of a scheduler of Dask, whose workers make them.

    The exit code is that of the first run that failed. If no run failed but some were not made, it
    is the exit code of an interruption.
    """
    requested = checked(request)
    single = len(requested) == 1 and cluster is None
    terminal = Terminal(not output.silent, single, not output.quiet, output.report)
    _warn(requested, terminal)
    if single:
        outcome = _single(requested[0], terminal)
        if not output.silent:
            click.echo(_summary(outcome))
        if output.as_json:
            click.echo(json.dumps(outcome.result, indent=1))
        return outcome.exit_code
    outcomes = _ended(requested, terminal, cluster)
    _say_what_failed(outcomes)
    if not output.silent and outcomes:
        click.echo(_table(outcomes))
    if output.as_json:
        _print_results(outcomes)
    return _exit_code(outcomes, len(requested))


def _warn(requested: Sequence[Job], terminal: Terminal) -> None:
    """Show what the checked scenarios probably do not mean, before the first run starts."""
    found = requested.cautions if isinstance(requested, Plan) else cautions(requested[0].scenario)
    for text in found[:NAMED_WARNINGS]:
        terminal.say(f"warning: {text}")
    if (more := len(found) - NAMED_WARNINGS) > 0:
        terminal.say(f"warning: {more} more of this kind, at other settings")


def _single(job: Job, terminal: Terminal) -> Outcome:
    """Make a run once, whatever comes out; with `--dilation auto`, until the machine keeps up."""
    if job.vm and asked_dilation() is None:
        return jobs.run_all([job], terminal)[0]
    jobs.refuse_occupied([job])
    return terminal.run(job)


def sweep(asked: Request, wanted: Sweep, output: Output, cluster: str | None = None) -> int:
    """Make the runs of a sweep and print its table. Return the exit code, as `run` does."""
    requested = checked(asked)
    terminal = Terminal(not output.silent, False, not output.quiet)
    _warn(requested, terminal)
    outcomes = _ended(requested, terminal, cluster)
    _say_what_failed(outcomes)
    measured = [each.folder for each in outcomes if each.was_measured]
    if measured and not output.quiet:
        window = wanted.window and compare.Window(*wanted.window)
        table = responses.table(measured, wanted.responses, window)
        for text in compare.few(table.left_out):
            click.echo(f"careful: {text}", err=True)
        click.echo(table.to_json() if output.as_json else table.text())
    return _exit_code(outcomes, len(requested))


def _exit_code(outcomes: Sequence[Ended], requested: int) -> int:
    code = next((outcome.exit_code for outcome in outcomes if outcome.exit_code), 0)
    return code or (EXIT_INTERRUPTED if len(outcomes) < requested else 0)


def dry_run(request: Request, as_json: bool) -> None:
    """Print how many runs a request asks for, and what they would take on this machine."""
    requested = checked(request)
    _warn(requested, Terminal())
    found = estimated(requested)
    click.echo(json.dumps(asdict(found)) if as_json else found.text())


@dataclass(frozen=True)
class Ended:
    """What is kept of a run of a batch; its result is in its folder. If that could not be written,
    it is in `result`."""

    folder: Path
    exit_code: int
    error: str
    was_measured: bool
    result: dict[str, Any] | None


def _ended(requested: Sequence[Job], terminal: Terminal, cluster: str | None) -> list[Ended]:
    """Make the requested runs. Return those that ended, in the order of the request."""
    made = jobs.run_each(requested, terminal, executor(cluster))
    found = {n: _kept(outcome) for n, outcome in made}
    return [found[n] for n in sorted(found)]


def _kept(outcome: Outcome) -> Ended:
    measured = outcome.result["duration_s"] > 0
    result = outcome.result if outcome.error else None
    return Ended(outcome.folder, outcome.exit_code, outcome.error, measured, result)


def _print_results(outcomes: Sequence[Ended]) -> None:
    """Print the results as a list in JSON, one after the other: all of them may fill the memory."""
    for n, each in enumerate(outcomes):
        result = each.result or read_document(each.folder, "result.json")
        lines = json.dumps([result], indent=1).removeprefix("[").removesuffix("\n]")
        click.echo(f"{',' if n else '['}{lines}", nl=False)
    click.echo("\n]" if outcomes else "[]")


def _say_what_failed(outcomes: Sequence[Ended]) -> None:
    failed = [each for each in outcomes if each.error]
    for each in failed[:NAMED_FAILURES]:
        click.echo(f"failed: {each.folder}: {each.error}", err=True)
    if failed:
        click.echo(
            f"{len(failed)} of {len(outcomes)} runs failed. With --out, the same command makes "
            "them again and keeps the others",
            err=True,
        )


def _summary(outcome: Outcome) -> str:
    if not outcome.result["duration_s"] > 0:
        return f"nothing was measured. Run folder: {outcome.folder}"
    return view.summary(outcome.result, outcome.folder)


def _table(outcomes: Sequence[Ended]) -> str:
    measured = [each.folder for each in outcomes if each.was_measured]
    if not measured:
        return f"nothing was measured. Run folder: {outcomes[0].folder}"
    if len(outcomes) == 1:
        return view.summary(read_document(measured[0], "result.json"), measured[0])
    return compare_text.report(measured, as_json=False)
