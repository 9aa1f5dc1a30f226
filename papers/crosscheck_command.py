"""The command `crosscheck`. It runs scenarios in both engines, and writes a Markdown page that
compares the results. A study looks at one scenario in detail; `all` stands for every scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lab.cli.terminal import Terminal
from lab.errors import RequestError
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario import loading
from papers import crosscheck as study_page
from papers import crosscheck_all
from papers.crosscheck import RUNS, CrossCheck
from papers.crosscheck_all import CrossCheckAll
from papers.paired_runs import PairedRuns, Trial

ALL = "all"
TRIAL = Trial()


def main(
    names: Sequence[str],
    repeat: int,
    only: str | None = None,
    runs: Path | None = None,
    page: Path | None = None,
    trial: Trial = TRIAL,
) -> int:
    """Run studies or scenarios in both engines, and write the page that compares them. Return the
    exit code.

    `names` are names of studies, or of scenarios. They count as scenarios if `all` is among them;
    `all` alone means every scenario. They also count as scenarios if one of them is a scenario
    without a study.

    Each experiment is run `repeat` times per engine. Runs that exist in the folder `runs` are not
    repeated. If `only` names an engine, only the runs of this engine are made, and no page is
    written. After an interruption the page is unchanged, and finished runs are kept. A duration or
    a rate scale in `trial` is only for scenarios: with studies it raises `RequestError`.
    """
    known = {study.scenario for study in study_page.chosen(())}
    scenarios = [name for name in names if name != ALL]
    crosscheck: CrossCheck | CrossCheckAll
    if ALL in names or any(name not in known and name in loading.names() for name in names):
        paired = PairedRuns(
            repeat,
            (runs or RUNS) / ALL,
            Terminal(),
            trial.duration_s,
            tries=trial.tries,
            cluster=trial.cluster,
            rate_scale=trial.rate_scale,
            seed=trial.seed,
            expected=crosscheck_all.expected_factor,
        )
        crosscheck, page = CrossCheckAll(paired), page or crosscheck_all.PAGE
    elif trial.duration_s is not None:
        raise RequestError("--duration: a study has durations of its own. Write: crosscheck all")
    elif trial.rate_scale is not None:
        raise RequestError("--rate-scale: a study has its own. Write: crosscheck all")
    else:
        paired = PairedRuns(
            repeat,
            runs or RUNS,
            Terminal(),
            tries=trial.tries,
            cluster=trial.cluster,
            seed=trial.seed,
        )
        crosscheck, page = CrossCheck(paired), page or study_page.PAGE
    if only is not None:
        return 0 if crosscheck.make(scenarios, only) else EXIT_INTERRUPTED
    if not crosscheck.write(scenarios, page):
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
