"""Make the runs of a paper's experiments in the simulator, and write the results to
docs/notebook/reproduction/PAPER.md and PAPER_sensitivity.md."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.batch import jobs
from lab.batch.cluster import executor
from lab.batch.job import Job
from lab.batch.jobs import Display
from lab.batch.request import Request, together
from lab.errors import LabError, RequestError, unknown
from lab.results.documents import FinishedRun
from lab.run.manifest import ROOT
from lab.run.reading import read_document
from lab.scenario.engine_table import STACKS
from papers.base import Case, Paper
from papers.list import PAPERS
from papers.page import QUICK, Origin, figure, is_of_more, page
from papers.page_file import read_page, write_page
from papers.relations import Numbers
from papers.sweep_page import figure as sweep_figure
from papers.sweep_page import figure_name, sweep_page
from papers.sweep_table import SWEEPS
from papers.sweeps import Point, Sweep

PAGES = ROOT / "docs" / "notebook" / "reproduction"
RUNS = ROOT / "data" / "reproduction"
DEFAULT_REPEAT, SWEEP_REPEAT = 10, 5
WALL_TIME = "seconds.txt"  # file with the wall time of all runs, in their folder


@dataclass(frozen=True)
class Folders:
    runs: Path = RUNS
    pages: Path = PAGES


FOLDERS = Folders()


def reproduce(
    name: str,
    repeat: int,
    display: Display,
    folders: Folders = FOLDERS,
    stacks: Sequence[str] = tuple(STACKS),
    quick: bool = False,
    cluster: str | None = None,
) -> Path | None:
    """Make the missing runs of the paper `name`, and write its page. Return the path of the page,
    or None if the user interrupted.

    Each case (experiment) is run with each of `stacks` (versions of Multipath TCP) and the seeds 1
    to `repeat`. If `quick` is True, a paper with very many cases leaves some out. An old page that
    is based on more runs (`is_of_more`) is kept; the new page then goes to the folder of the runs.
    After an interruption the page is unchanged, and finished runs are kept. `cluster` is the
    address of a scheduler of Dask whose workers make the runs. Raise `RequestError` for an unknown
    paper.
    """
    paper, folder = _paper(name), folders.runs / name
    paper = (paper.quick or paper) if quick else paper
    pairs = [(stack, case) for stack in stacks for case in paper.cases]
    with _timed(folder / WALL_TIME) as seconds:
        runs = _made(
            [_request(case, repeat, folder / stack, stack) for stack, case in pairs],
            display,
            cluster,
        )
    if not runs:
        return None
    found: dict[str, dict[str, list[Numbers]]] = {stack: {} for stack in stacks}
    for (stack, case), each in zip(pairs, runs, strict=True):
        found[stack][case.name] = [paper.measure(case, run) for run in each]
    path = folders.pages / f"{name}.md"
    if is_of_more(read_page(path), repeat, found, quick):
        path = folder / f"{name}.md"
    if chart := figure(paper, found):
        write_page(path.with_suffix(".svg"), chart)
    options = _options(repeat, DEFAULT_REPEAT, stacks, tuple(STACKS), quick)
    write_page(path, page(paper, found, _origin(repeat, runs, seconds(), options)))
    return path


def vary(
    name: str,
    repeat: int,
    display: Display,
    folders: Folders = FOLDERS,
    stacks: Sequence[str] = ("paper",),
    cluster: str | None = None,
) -> Path | None:
    """Make the runs of all sweeps of the paper `name`, and write their results to a page. Return
    the path of the page, or None if the user interrupted. A sweep is a series of runs over a
    setting that the paper does not state.

    Each sweep includes the value that the paper's main page uses; these runs are shared with
    `reproduce`. Raise `RequestError` for an unknown paper, or for a paper without sweeps.
    """
    paper, folder = _paper(name), folders.runs / name
    if name not in SWEEPS:
        raise RequestError(f"reproduce {name} --sensitivity: choose from {', '.join(SWEEPS)}")
    steps = [
        (stack, sweep, point, case)
        for stack in stacks
        for sweep in SWEEPS[name]
        for point in sweep.points
        for case in sweep.cases(paper, point)
    ]
    requests = [
        _request(case, repeat, _point_folder(folder / stack, sweep, point), stack)
        for stack, sweep, point, case in steps
    ]
    unique = {each.out: each for each in requests}  # series share the runs with the page's values
    with _timed(folder / f"sensitivity_{WALL_TIME}") as seconds:
        runs = _made(list(unique.values()), display, cluster)
    if not runs:
        return None
    ended = dict(zip(unique, runs, strict=True))
    by_point: dict[tuple[str, str, str], dict[str, list[Numbers]]] = {}
    for (stack, sweep, point, case), request in zip(steps, requests, strict=True):
        numbers = by_point.setdefault((stack, sweep.name, point.label), {})
        measure = point.measure or paper.measure
        numbers[case.name] = [measure(case, run) for run in ended[request.out]]
    found = {
        stack: {
            sweep.name: [by_point[stack, sweep.name, point.label] for point in sweep.points]
            for sweep in SWEEPS[name]
        }
        for stack in stacks
    }
    path = folders.pages / f"{name}_sensitivity.md"
    if is_of_more(read_page(path), repeat, {}):
        path = folder / path.name
    for sweep in SWEEPS[name]:
        write_page(path.with_name(figure_name(paper, sweep)), sweep_figure(sweep, found))
    options = _options(repeat, SWEEP_REPEAT, stacks, ("paper",))
    origin = _origin(repeat, runs, seconds(), options)
    write_page(path, sweep_page(paper, SWEEPS[name], found, origin))
    return path


def _paper(name: str) -> Paper:
    if name not in PAPERS:
        raise RequestError(f"reproduce: paper {unknown(name, sorted(PAPERS))}")
    return PAPERS[name]


def _point_folder(folder: Path, sweep: Sweep, point: Point) -> Path:
    """Return the folder of the runs with one value of a sweep's setting. If the paper's main page
    uses this value, the folder is `folder`, which has the runs of that page."""
    return folder / "varied" / sweep.name / point.folder if point.settings else folder


@contextmanager
def _timed(file: Path) -> Iterator[Callable[[], float]]:
    """Add the wall time of the `with` block in s to the number in `file`. Yield a function that
    reads this number from the file. The number includes the time of earlier, interrupted
    commands."""

    def before() -> float:
        return float(read_page(file) or 0)

    began = time.monotonic()
    try:
        yield before
    finally:
        write_page(file, f"{before() + time.monotonic() - began:.1f}\n")


def _made(
    requests: Sequence[Request], display: Display, cluster: str | None
) -> list[list[FinishedRun]]:
    """Make the missing runs of all requests, which have the same number of repeats. Return the runs
    of each request, or nothing if the user interrupted. Raise `LabError` if a run failed."""
    planned, repeat = together(requests), requests[0].repeat
    if not jobs.are_made(planned, display, executor(cluster)):
        return []
    runs = [_finished(job) for job in planned]
    return [runs[n : n + repeat] for n in range(0, len(runs), repeat)]


def _finished(job: Job) -> FinishedRun:
    assert job.out is not None
    result = read_document(job.out, "result.json")
    if result["status"] != "complete":
        why = result.get("error") or result["status"]
        raise LabError(
            f"reproduce: run {job.out}: {why}. The page is unchanged, and the same command makes "
            "only such runs again"
        )
    return FinishedRun(result, job.out)


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
        out=runs / case.name,
        stack=stack,
    )


def _options(
    repeat: int,
    default: int,
    stacks: Sequence[str],
    default_stacks: Sequence[str],
    quick: bool = False,
) -> str:
    """Return the command line options that differ from the defaults, each with a leading space."""
    options = QUICK if quick else ""
    options += "" if repeat == default else f" --repeat {repeat}"
    if tuple(stacks) != tuple(default_stacks):
        options += "".join(f" --stack {stack}" for stack in stacks)
    return options


def _origin(
    repeat: int, runs: Sequence[Sequence[FinishedRun]], seconds: float, options: str
) -> Origin:
    folders = {run.folder for each in runs for run in each}
    commits = sorted(
        {str(read_document(folder, "manifest.json")["versions"]["commit"]) for folder in folders}
    )
    return Origin(
        repeat,
        len(folders),
        f"commit {', '.join(commits)}",
        seconds / 60,
        os.cpu_count() or 1,
        options,
    )
