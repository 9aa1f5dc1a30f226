"""The command `reproduce`, which repeats a paper's experiments and writes the results to a Markdown
page.

The page is in docs/notebook/reproduction. It is called PAPER.md for the simulator, and
PAPER_mininet.md for the emulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lab.cli.terminal import Terminal
from lab.results.statistics import MIN_RUNS
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario.engine_table import STACKS
from papers.emulated_runs import reproduce_in_emulation
from papers.paired_runs import ENGINES, PairedRuns, Trial
from papers.runs import (
    DEFAULT_REPEAT,
    FOLDERS,
    PAGES,
    RUNS,
    SWEEP_REPEAT,
    Folders,
    reproduce,
    vary,
)

QUICK = MIN_RUNS  # seeds; fewer decide nothing
TRIAL = Trial()


def main(
    name: str,
    repeat: int | None = None,
    folders: Folders = FOLDERS,
    stack: str | None = None,
    quick: bool = False,
    cluster: str | None = None,
) -> int:
    """Repeat a paper's experiments in the simulator, and write the results to a Markdown page.
    Return the exit code.

    `name` is the paper. Each experiment is run `repeat` times. The default is 10, or 5 if `quick`
    is True. `stack` is the version of Multipath TCP; by default, each version is used. Runs that
    exist already are not repeated. After an interruption the page is unchanged. The workers of
    `cluster`, the address of a scheduler of Dask, make the runs if it is given.
    """
    stacks = (stack,) if stack else tuple(STACKS)
    repeat = repeat or (QUICK if quick else DEFAULT_REPEAT)
    return _end(reproduce(name, repeat, Terminal(), folders, stacks, quick, cluster))


def sensitivity(
    name: str,
    repeat: int | None = None,
    folders: Folders = FOLDERS,
    stack: str | None = None,
    cluster: str | None = None,
) -> int:
    """In the simulator, vary settings that the paper `name` does not state, and write the results
    to a Markdown page. Return the exit code.

    By default, each experiment is run 5 times, with the Multipath TCP of the papers' kernel
    (`stack`).
    """
    stacks = (stack or "paper",)
    return _end(vary(name, repeat or SWEEP_REPEAT, Terminal(), folders, stacks, cluster))


def emulated(
    name: str,
    repeat: int,
    claims: Sequence[str] = (),
    trial: Trial = TRIAL,
    runs: Path | None = None,
    pages: Path | None = None,
) -> int:
    """Check claims of a paper in both engines, and write the results to a Markdown page. Return the
    exit code.

    `name` is the paper, and `claims` names the claims. If `claims` is empty, all claims that fit
    into the emulation are checked.
    """
    folder = (runs or RUNS) / ENGINES[0]
    paired = PairedRuns(
        repeat, folder, Terminal(), trial.duration_s, tries=trial.tries, cluster=trial.cluster
    )
    return _end(reproduce_in_emulation(name, claims, paired, pages or PAGES))


def _end(page: Path | None) -> int:
    if page is None:
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
