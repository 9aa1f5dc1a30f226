"""The program that makes the runs of a batch of the page, or estimates what they take.

The dashboard starts it as a hidden command of the lab.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from controller.bounded_json import parse_object
from dashboard import batch_plan
from dashboard.base.serving import add_extensions
from dashboard.batch_plan import BatchRequest
from lab import plain_file
from lab.batch import jobs
from lab.batch.estimate import estimated
from lab.batch.job import Job
from lab.batch.single import run_job
from lab.run.outcome import Outcome, Progress
from lab.scenario import engine_table, schema


class Quiet:
    """Makes runs and shows nothing: the dashboard reads their folders."""

    def run(self, job: Job) -> Outcome:
        return run_job(job, _ignore)

    def say(self, text: str) -> None:
        """Show nothing."""


@click.command("batch")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--runs", required=True, type=click.Path(path_type=Path))
@click.option("--at-once", required=True, type=int)
@click.option("--dry-run", is_flag=True)
@click.option("--with", "extension_folders", multiple=True)
def batch(
    file: Path, runs: Path, at_once: int, dry_run: bool, extension_folders: tuple[str, ...]
) -> None:
    """Make the runs of the batch FILE that are missing, AT_ONCE of them side by side. The stem of
    the file's name is the id of the batch."""
    add_extensions(extension_folders)
    found = requested(file)
    planned = batch_plan.Jobs(found, runs, file.stem)
    if dry_run:
        estimate = estimated(planned, at_once)
        click.echo(json.dumps(asdict(estimate) | {"text": estimate.text()}))
        return
    for _ in jobs.run_each(planned, Quiet(), partial(_executor, at_once)):
        pass


def requested(file: Path) -> batch_plan.Asked:
    """Return the runs that the file of a batch asks for."""
    data = parse_object(plain_file.read(file))
    return batch_plan.asked(schema.validate(BatchRequest, data["request"], file.name))


def _executor(
    at_once: int, planned: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    if any(engine_table.entry(planned[n].engine).real_time for n in left[:1]):
        return jobs.locally(planned, left, run)
    return jobs.side_by_side(planned, left, run, at_once)


def _ignore(_: Progress) -> None:
    """Show no progress."""
