"""Run jobs and show their progress on the terminal. A job is one run to make."""

from __future__ import annotations

from dataclasses import dataclass

import click

from lab.batch.jobs import Job
from lab.batch.single import run_job
from lab.cli import view
from lab.errors import LabError
from lab.run.outcome import Outcome
from lab.scenario import engine_table


@dataclass(frozen=True)
class Terminal:
    """Run jobs, and show on standard error their progress and lines of text.

    `progress`: show the progress of emulations. `simulations`: also show the progress of
    simulations. `text`: show the lines of text. `report`: write report.md into each run folder.
    """

    progress: bool = True
    simulations: bool = False
    text: bool = True
    report: bool = False

    def run(self, job: Job) -> Outcome:
        """Run one job, show its progress and its error if it has one, and return its outcome."""
        shown = self.progress and (self.simulations or engine_table.entry(job.engine).real_time)
        live = view.Live(quiet=not shown)
        outcome = run_job(job, live)
        live.done()
        if self.report:
            _write_report(job, outcome)
        if outcome.error:
            click.echo(f"error: {outcome.error}", err=True)
        return outcome

    def say(self, text: str) -> None:
        """Print a line of text to standard error, unless `self.text` is False."""
        if self.text:
            click.echo(text, err=True)


def _write_report(job: Job, outcome: Outcome) -> None:
    path = outcome.folder / "report.md"
    try:
        path.write_text(view.report(job.scenario, outcome.result, outcome.folder), "utf-8")
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
