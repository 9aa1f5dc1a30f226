"""Run jobs and show their progress on the terminal."""

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
    """Show on standard error how runs progress, and lines of text between them.

    `progress`: show the progress of emulations; `simulations`: of simulations as well. `text`: show
    the lines of text. `report`: write report.md into each run folder.
    """

    progress: bool = True
    simulations: bool = False
    text: bool = True
    report: bool = False

    def run(self, job: Job) -> Outcome:
        """Run one job, show its progress and any error, and return its outcome."""
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
        """Show one line of text, if `text` is set."""
        if self.text:
            click.echo(text, err=True)


def _write_report(job: Job, outcome: Outcome) -> None:
    path = outcome.folder / "report.md"
    try:
        path.write_text(view.report(job.scenario, outcome.result, outcome.folder), "utf-8")
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
