"""Carry out `crosscheck`: make the runs of studies in both engines, and write their page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lab.cli.terminal import Terminal
from lab.evaluation.crosscheck import PAGE
from lab.evaluation.crosscheck_runs import RUNS, CrossCheck
from lab.run.outcome import EXIT_INTERRUPTED


def main(
    names: Sequence[str],
    repeat: int,
    only: str | None = None,
    runs: Path | None = None,
    page: Path = PAGE,
) -> int:
    """Make missing runs and write the page. Return the exit code.

    If `only` names an engine, make just the runs of that engine and write no page. An interruption
    leaves the page unchanged and keeps the runs that have ended.
    """
    crosscheck = CrossCheck(repeat, runs or RUNS, Terminal())
    if only is not None:
        return 0 if crosscheck.make(names, only) else EXIT_INTERRUPTED
    if not crosscheck.write(names, page):
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
