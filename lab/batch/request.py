"""Plan runs: turn a request into jobs, and check that the engine can run each of them.

A job is one run to make. No run is started here. The command line, the dashboard and the evaluation
use these functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from controller.strategy_names import folder_name
from lab.batch import grid
from lab.batch.grid import Point
from lab.batch.job import Job
from lab.batch.plan import Group, MakeJob, Plan
from lab.engines import registry
from lab.errors import RequestError
from lab.run.engine import Options
from lab.run.pace import checked_speed
from lab.run.reading import ALL
from lab.scenario import engine_table
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario


@dataclass(frozen=True)
class Request:
    """A request for runs of one scenario: `repeat` runs of each strategy, with consecutive seeds.

    If a field is None or an empty tuple, the value in the scenario file is used.
    `may_run_code` is passed on to `lab.scenario.loading.load`.
    """

    scenario: str
    engine: str
    strategies: tuple[str, ...] = ()
    cc: str | None = None
    seed: int | None = None
    repeat: int = 1
    duration_s: float | None = None
    speed: str | None = None
    settings: tuple[str, ...] = ()
    pcap: bool = False
    out: Path | None = None
    vm: bool = False
    wait: bool = False
    stack: str | None = None
    may_run_code: bool = False
    vary: tuple[str, ...] = ()  # such as `topology.users=10,20`: every combination is run
    points: tuple[Point, ...] = ()  # or these settings, each in a folder of its own
    keep: str = ALL
    shard: str | None = None  # `I/N`: only the I-th of N parts of the runs
    is_point: bool = False  # of a grid, whose settings begin its errors


def checked(request: Request) -> Sequence[Job]:
    """Return one job for each run of a request. Each setting is checked, and each job is made when
    it is asked for.

    `request.out` is the run folder if there is only one job. Otherwise each job gets a folder
    inside `request.out`. Raise `LabError` if the engine cannot run one of the jobs.
    """
    if request.vary or request.points:
        return part(_grid(request), request.shard)
    jobs = part(placed(request), request.shard)
    if len(jobs) == 1 and request.shard is None:
        return [replace(jobs[0], out=request.out)]
    if request.out is not None and (request.out / "scenario.yaml").exists():
        raise RequestError(
            f"--out {request.out}: that is the folder of one run. "
            f"Choose another for these {len(jobs)}"
        )
    return jobs


def _grid(request: Request) -> Plan:
    """Return one job for each run at each point of a grid, in the folder of the point."""
    if request.out is None:
        raise RequestError("--vary: add --out DIR, a folder for all runs of the grid")
    groups: list[Group] = []
    for point in request.points or grid.points(request.vary):
        out = request.out / grid.folder_name(point) if point else request.out
        settings = (*request.settings, *point)
        at = replace(request, vary=(), points=(), settings=settings, out=out, is_point=bool(point))
        try:
            groups += _admitted(at)
        except RequestError as error:
            raise RequestError(f"{' '.join(point)}: {error}" if point else str(error)) from error
    return Plan(groups, _made(request))


def together(requests: Sequence[Request]) -> Plan:
    """Return the jobs of several requests, placed as by `placed`, one request after the other.

    The requests have the same engine, options and number of repeats.
    """
    groups = [group for request in requests for group in _admitted(request)]
    return Plan(groups, _made(requests[0]))


def part(jobs: Plan, shard: str | None) -> Plan:
    """Return the jobs of one part, such as "3/10". Neighbours are in different parts, because they
    take a similar time."""
    if shard is None:
        return jobs
    number, slash, count = shard.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise RequestError(f"--shard {shard}: write I/N, such as 3/10 for the third of ten parts")
    if not (mine := jobs[int(number) - 1 :: int(count)]):
        raise RequestError(f"--shard {shard}: there are only {len(jobs)} runs: choose a smaller N")
    return mine


def placed(request: Request) -> Plan:
    """Return one job for each run of a request, each with a folder inside `request.out`.

    Even a single job gets such a folder, whereas `checked` would place its run in `request.out`
    itself. Raise `LabError` if the engine cannot run one of the jobs.
    """
    return together([request])


def scenarios_of(request: Request) -> list[Scenario]:
    """Return the scenario of each run of a request, ordered by strategy and then by seed.

    All strategies get the same seeds. Raise `RequestError` if a strategy is requested twice.
    """
    return [each for group in _groups(request) for each in group.scenarios()]


def _groups(request: Request) -> Iterator[Group]:
    """Yield the runs of each strategy. Their first and last seeds are loaded and checked."""
    seen: set[str] = set()
    for strategy in request.strategies or (None,):
        overrides = Overrides(
            strategy,
            request.cc,
            request.seed,
            request.duration_s,
            request.settings,
            registry.is_slow(request.engine, request.vm),
            request.stack,
            request.may_run_code and not request.is_point,
        )
        first = last = _loaded(request, overrides)
        if request.repeat > 1:
            seed = f"seed={first.seed + request.repeat - 1}"
            last = _loaded(request, replace(overrides, settings=(*request.settings, seed)))
        if first.strategy.name in seen:
            raise RequestError(
                "the same strategy with the same seed is requested twice: leave out one --strategy"
            )
        seen.add(first.strategy.name)
        yield Group.of(first, last, request.out)


def _loaded(request: Request, overrides: Overrides) -> Scenario:
    return scenario.load(request.scenario, overrides, may_run_code=request.may_run_code)


def _admitted(request: Request) -> list[Group]:
    options = _options(request)
    groups = list(_groups(request))
    for group in groups:
        registry.admit(request.engine, next(group.scenarios()), options)
    return groups


def _made(request: Request) -> MakeJob:
    options = _options(request)

    def job(scenario: Scenario, out: Path | None) -> Job:
        made = Job(scenario, request.engine, options, vm=request.vm, keep=request.keep)
        return _in_own_folder(made, out)

    return job


def _in_own_folder(job: Job, out: Path | None) -> Job:
    folder = f"{folder_name(job.scenario.strategy.name)}-{job.scenario.seed}"
    return job if out is None else replace(job, out=out / folder)


def _options(request: Request) -> Options:
    entry = engine_table.entry(request.engine)
    if request.vm and not entry.real_time:
        raise RequestError(
            f"--vm: engine '{request.engine}' needs no virtual machine. Leave out --vm"
        )
    if request.pcap and not entry.real_time:
        raise RequestError(
            f"--pcap: engine '{request.engine}' has no packets that could be captured. "
            "Use --engine mininet, or leave out --pcap"
        )
    if request.speed is None:
        return Options(1.0 if entry.real_time else 0.0, request.pcap, request.wait)
    try:
        return Options(checked_speed(request.speed), request.pcap, request.wait)
    except RequestError as error:
        raise RequestError(f"--{error}") from error
