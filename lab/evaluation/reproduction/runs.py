"""Make the runs of a paper's experiments, and write docs/reproduction/PAPER.md from their
results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lab
from lab.batch import jobs
from lab.batch.jobs import Display
from lab.batch.request import Request, placed
from lab.errors import RequestError, unknown
from lab.evaluation.page_file import write_page
from lab.evaluation.reproduction import PAPERS
from lab.evaluation.reproduction.base import Case, Paper
from lab.results.documents import FinishedRun
from lab.run.manifest import ROOT
from lab.run.outcome import Outcome
from lab.run.reading import read_document

PAGES = ROOT / "docs" / "reproduction"
RUNS = ROOT / "data" / "reproduction"
DEFAULT_REPEAT = 10
INTRODUCTION = """# {title}

Made by `./run_lab.sh reproduce {name}{repeat}` with version {version} of the lab ({commits}), in
the simulator, seeds 1 to {seeds}, {runs} runs. Nothing was tuned to a number of the paper.

A claim is a list of relations between means over the seeds. `>` holds if the 95 % interval of the
ratio is above 1; `>=` and `<=` hold unless that interval says the opposite; `~` holds if the means
are within 5 %. Medians and single runs are compared as plain numbers. A claim agrees if all its
relations hold and disagrees if one fails; otherwise it is not significant.

Strength: S, the paper states the claim plainly and confirms it; M, once; W, weakly. The judged
claims decide whether the reproduction succeeds.
"""


def reproduce(
    name: str, repeat: int, display: Display, runs: Path = RUNS, pages: Path = PAGES
) -> Path | None:
    """Make those runs of the paper `name` that do not exist yet, write its page, and return the
    path of the page.

    Each case (experiment) is run with the seeds 1 to `repeat`. Return None if the user interrupted:
    the page is then unchanged, and runs that have ended are kept. Raise `RequestError` for an
    unknown paper.
    """
    if name not in PAPERS:
        raise RequestError(f"reproduce: paper {unknown(name, sorted(PAPERS))}")
    paper = PAPERS[name]
    outcomes = _outcomes([_request(case, repeat, runs / name) for case in paper.cases], display)
    if any(len(each) < repeat for each in outcomes):
        return None
    found = {
        case.name: [
            paper.measure(case, FinishedRun(outcome.result, outcome.folder)) for outcome in each
        ]
        for case, each in zip(paper.cases, outcomes, strict=True)
    }
    page = pages / f"{name}.md"
    write_page(page, f"{_introduction(paper, repeat, outcomes)}\n{paper.page(found)}\n")
    return page


def _outcomes(requests: Sequence[Request], display: Display) -> list[list[Outcome]]:
    """Make the runs of all requests, several at a time. Return one list of outcomes per request.
    After an interruption, lists are incomplete."""
    groups = [placed(request) for request in requests]
    ended = jobs.run_all([job for group in groups for job in group], display)
    by_folder = {outcome.folder: outcome for outcome in ended}
    return [[by_folder[job.out] for job in group if job.out in by_folder] for group in groups]


def _request(case: Case, repeat: int, runs: Path) -> Request:
    return Request(
        case.scenario,
        "sim",
        (case.strategy,) if case.strategy else (),
        cc=case.cc,
        seed=1,
        repeat=repeat,
        duration_s=case.duration_s,
        settings=case.settings,
        out=runs / case.name,
    )


def _introduction(paper: Paper, repeat: int, outcomes: Sequence[Sequence[Outcome]]) -> str:
    folders = [outcome.folder for each in outcomes for outcome in each]
    commits = sorted(
        {str(read_document(folder, "manifest.json")["versions"]["commit"]) for folder in folders}
    )
    return INTRODUCTION.format(
        title=paper.title,
        name=paper.name,
        repeat="" if repeat == DEFAULT_REPEAT else f" --repeat {repeat}",
        version=lab.__version__,
        commits=f"commit {', '.join(commits)}",
        seeds=repeat,
        runs=len(folders),
    )
