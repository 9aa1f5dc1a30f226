"""`reproduce`: make a paper's experiments, and write docs/reproduction/PAPER.md from what they measured."""

from __future__ import annotations

from pathlib import Path

import click

import lab
from lab.cli import run as running
from lab.errors import LabError, RequestError, unknown
from lab.evaluation.reproduction import PAPERS
from lab.evaluation.reproduction.base import Case, Paper
from lab.run.manifest import ROOT
from lab.run.recorder import read_document
from lab.run.runner import EXIT_INTERRUPTED, Outcome

PAGES = ROOT / "docs" / "reproduction"
RUNS = ROOT / "data" / "reproduction"
REPEAT, QUICK = 10, 3
INTRODUCTION = """# {title}

Made by `./run_lab.sh reproduce {name}{repeat}` with version {version} of the lab ({commits}), in the simulator, seeds 1 to {seeds}, {runs} runs.
Nothing was tuned to a number of the paper. Each claim is a number of relations between means over the seeds. `>` holds if the 95 % interval of the ratio
says so, `>=` and `<=` if it does not say the opposite, `~` if the means are within 5 %; of medians, and of every single run, the plain number counts. A claim
agrees if all its relations hold, disagrees if one fails, and is not significant otherwise. Its strength: S, the paper says it plainly and confirms it; M, once; W, weakly; a
reproduction stands or falls with those that are judged.
"""


def main(name: str, repeat: int, runs: Path = RUNS, pages: Path = PAGES) -> int:
    """Run what is missing, and write the page; an interruption leaves it as it was, and what has run is kept."""
    if name not in PAPERS:
        raise RequestError(f"reproduce: paper {unknown(name, sorted(PAPERS))}")
    paper = PAPERS[name]
    asked = [_request(case, repeat, runs / name) for case in paper.cases]
    outcomes = running.run_requests(asked)
    if any(len(each) < repeat for each in outcomes):
        return EXIT_INTERRUPTED
    found = {
        case.name: [paper.measure(case, outcome.result, outcome.folder) for outcome in each]
        for case, each in zip(paper.cases, outcomes, strict=True)
    }
    page = pages / f"{name}.md"
    _write(page, f"{_introduction(paper, repeat, outcomes)}\n{paper.page(found)}\n")
    click.echo(f"written: {page}")
    return 0


def _request(case: Case, repeat: int, runs: Path) -> running.Request:
    return running.Request(
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


def _introduction(paper: Paper, repeat: int, outcomes: list[list[Outcome]]) -> str:
    folders = [outcome.folder for each in outcomes for outcome in each]
    commits = sorted(
        {str(read_document(folder, "manifest.json")["versions"]["commit"]) for folder in folders}
    )
    return INTRODUCTION.format(
        title=paper.title,
        name=paper.name,
        repeat="" if repeat == REPEAT else f" --repeat {repeat}",
        version=lab.__version__,
        commits=f"commit {', '.join(commits)}",
        seeds=repeat,
        runs=len(folders),
    )


def _write(page: Path, text: str) -> None:
    """Beside it first, then in its place."""
    draft = page.with_suffix(".part")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(page)
    except OSError as error:
        raise LabError(f"write {page}: {error.strerror}") from error
