"""Implement the command `crosscheck`, which compares the results of the two engines.

Both engines run the same studies, which are sets of scenarios, and the results are written to a
page.
"""

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
    """Run the studies `names` in both engines, and write the page. Return the exit code.

    Each case of a study is run `repeat` times per engine. Runs that exist in the folder `runs` are
    not repeated. If `only` names an engine, make only the runs of this engine and write no page.
    After an interruption the page is unchanged, and the runs that have ended are kept.
    """
    crosscheck = CrossCheck(repeat, runs or RUNS, Terminal())
    if only is not None:
        return 0 if crosscheck.make(names, only) else EXIT_INTERRUPTED
    if not crosscheck.write(names, page):
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
