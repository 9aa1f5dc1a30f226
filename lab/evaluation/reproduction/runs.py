"""Make the runs of a paper's experiments, and write docs/reproduction/PAPER.md from their
results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.batch import jobs
from lab.batch.jobs import Display
from lab.batch.request import Request, placed
from lab.errors import RequestError, unknown
from lab.evaluation.page_file import read_page, write_page
from lab.evaluation.reproduction import PAPERS
from lab.evaluation.reproduction.base import Case
from lab.evaluation.reproduction.page import Origin, figure, is_of_more, page
from lab.evaluation.reproduction.relations import Numbers
from lab.results.documents import FinishedRun
from lab.run.manifest import ROOT
from lab.run.outcome import Outcome
from lab.run.reading import read_document
from lab.scenario.stacks import STACKS

PAGES = ROOT / "docs" / "reproduction"
RUNS = ROOT / "data" / "reproduction"
DEFAULT_REPEAT = 10
WALL_TIME = "seconds.txt"  # beside the runs


def reproduce(
    name: str,
    repeat: int,
    display: Display,
    runs: Path = RUNS,
    pages: Path = PAGES,
    stacks: Sequence[str] = tuple(STACKS),
) -> Path | None:
    """Make those runs of the paper `name` that do not exist yet, write its page, and return the
    path of the page.

    Each case (experiment) is run with each of `stacks` and the seeds 1 to `repeat`. A page of more
    seeds or further stacks is kept: the new page then goes to the folder of the runs. Return None
    if the user interrupted: the page is then unchanged, and runs that have ended are kept. Raise
    `RequestError` for an unknown paper.
    """
    if name not in PAPERS:
        raise RequestError(f"reproduce: paper {unknown(name, sorted(PAPERS))}")
    paper, folder = PAPERS[name], runs / name
    pairs = [(stack, case) for stack in stacks for case in paper.cases]
    with _timed(folder / WALL_TIME) as seconds:
        outcomes = _outcomes(
            [_request(case, repeat, folder, stack) for stack, case in pairs], display
        )
    if any(len(each) < repeat for each in outcomes):
        return None
    found: dict[str, dict[str, list[Numbers]]] = {stack: {} for stack in stacks}
    for (stack, case), each in zip(pairs, outcomes, strict=True):
        found[stack][case.name] = [
            paper.measure(case, FinishedRun(outcome.result, outcome.folder)) for outcome in each
        ]
    path = pages / f"{name}.md"
    if is_of_more(read_page(path), repeat, found):
        path = folder / f"{name}.md"
    if chart := figure(paper, found):
        write_page(path.with_suffix(".svg"), chart)
    write_page(path, page(paper, found, _origin(repeat, stacks, outcomes, seconds())))
    return path


@contextmanager
def _timed(file: Path) -> Iterator[Callable[[], float]]:
    """Add the wall time of the `with` block, in s, to the number in `file`. Return a function that
    returns the number. An interrupted command thus counts too."""

    def before() -> float:
        return float(read_page(file) or 0)

    began = time.monotonic()
    try:
        yield before
    finally:
        write_page(file, f"{before() + time.monotonic() - began:.1f}\n")


def _outcomes(requests: Sequence[Request], display: Display) -> list[list[Outcome]]:
    """Make the runs of all requests, several at a time. Return one list of outcomes per request.
    After an interruption, lists are incomplete."""
    groups = [placed(request) for request in requests]
    ended = jobs.run_all([job for group in groups for job in group], display)
    by_folder = {outcome.folder: outcome for outcome in ended}
    return [[by_folder[job.out] for job in group if job.out in by_folder] for group in groups]


def _request(case: Case, repeat: int, runs: Path, stack: str) -> Request:
    return Request(
        case.scenario,
        "sim",
        (case.strategy,) if case.strategy else (),
        cc=case.cc,
        seed=1,
        repeat=repeat,
        duration_s=case.duration_s,
        settings=case.settings,
        out=runs / stack / case.name,
        stack=stack,
    )


def _origin(
    repeat: int, stacks: Sequence[str], outcomes: Sequence[Sequence[Outcome]], seconds: float
) -> Origin:
    folders = [outcome.folder for each in outcomes for outcome in each]
    commits = sorted(
        {str(read_document(folder, "manifest.json")["versions"]["commit"]) for folder in folders}
    )
    options = "" if repeat == DEFAULT_REPEAT else f" --repeat {repeat}"
    if tuple(stacks) != tuple(STACKS):
        options += "".join(f" --stack {stack}" for stack in stacks)
    return Origin(
        repeat,
        len(folders),
        f"commit {', '.join(commits)}",
        seconds / 60,
        os.cpu_count() or 1,
        options,
    )
