"""`run`: every run is planned and checked before the first one starts."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from lab import engines
from lab.cli import batch, view
from lab.cli.batch import Job
from lab.errors import LabError, MachineLacks, RequestError
from lab.results import compare
from lab.run.pace import checked_speed
from lab.run.recorder import (
    REQUEST,
    TRACE,
    Follower,
    Recorder,
    give_away,
    new_folder,
    read_document,
    write_scenario,
)
from lab.run.runner import EXIT_INTERRUPTED, Outcome, Progress, conclude
from lab.run.runner import run as run_one
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides, build
from lab.scenario.schema import Scenario


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

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
    report: bool = False
    out: Path | None = None
    as_json: bool = False
    quiet: bool = False
    vm: bool = False
    wait: bool = False

    @property
    def silent(self) -> bool:
        """Whether people are shown nothing."""
        return self.quiet or self.as_json


def run(request: Request) -> int:
    """Do what was asked and return the exit code: that of the first run that did not end well."""
    asked = checked(request)
    outcomes = (
        _run_several(request, asked)
        if len(asked) > 1
        else [_run(request, not request.silent, asked[0])]
    )
    if not request.silent and outcomes:
        click.echo(_in_words(outcomes))
    if request.as_json:
        results = [outcome.result for outcome in outcomes]
        click.echo(json.dumps(results[0] if len(asked) == 1 else results, indent=1))
    code = next((outcome.exit_code for outcome in outcomes if outcome.exit_code), 0)
    return code or (EXIT_INTERRUPTED if len(outcomes) < len(asked) else 0)


def run_jobs(request: Request) -> list[Outcome]:
    """Every run that was asked for, in `request.out` under its strategy and seed; those that are there already are kept."""
    return _run_several(request, placed(request))


def placed(request: Request) -> list[Job]:
    """The runs that were asked for, each in `request.out` under its strategy and seed, also when there is one only."""
    return [replace(job, out=_place(request.out, job.scenario, True)) for job in checked(request)]


def run_requests(requests: Sequence[Request]) -> list[list[Outcome]]:
    """As `run_jobs` for several requests of an engine with a clock of its own, all side by side; the outcomes of each."""
    groups = [
        [replace(job, out=_place(each.out, job.scenario, True)) for job in checked(each)]
        for each in requests
    ]
    outcomes = {
        each.folder: each
        for each in _run_several(requests[0], [job for jobs in groups for job in jobs])
    }
    return [[outcomes[job.out] for job in jobs if job.out in outcomes] for jobs in groups]


def checked(request: Request) -> list[Job]:
    """The runs that were asked for, all admitted by the engine; or an error, and nothing was started."""
    options = _options(request)
    scenarios = plan(request)
    for each in scenarios:
        engines.admit(request.engine, each, options)
    several = len(scenarios) > 1
    if several and request.out is not None and (request.out / "scenario.yaml").exists():
        raise RequestError(
            f"--out {request.out}: that is the folder of one run. Choose another for these {len(scenarios)}"
        )
    return [
        Job(each, request.engine, options, _place(request.out, each, several), request.vm)
        for each in scenarios
    ]


def _place(out: Path | None, job: Scenario, several: bool) -> Path | None:
    return out / f"{job.strategy.name}-{job.seed}" if out is not None and several else out


def _run_several(request: Request, jobs: Sequence[Job]) -> list[Outcome]:
    """All of them, with a line for each that ends; a real-time engine runs them in turn, and shows each."""
    show = engines.entry(request.engine).real_time and not request.silent
    return batch.run_all(
        jobs, partial(_run, request, show), (lambda _: None) if request.quiet else _say
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


def _in_words(outcomes: Sequence[Outcome]) -> str:
    """One run in full, several side by side."""
    measured = [outcome for outcome in outcomes if outcome.result["duration_s"] > 0]
    if not measured:
        return f"nothing was measured. Run folder: {outcomes[0].folder}"
    if len(outcomes) == 1:
        return view.summary(measured[0].result, measured[0].folder)
    return compare.report([outcome.folder for outcome in measured], as_json=False)


def plan(request: Request) -> list[Scenario]:
    """Every strategy asked for, each with its repeats on seeds counted up from the first: the same seeds for all."""
    jobs = []
    for strategy in request.strategies or (None,):
        first = Overrides(strategy, request.cc, request.seed, request.duration_s, request.settings)
        jobs.append(scenario.load(request.scenario, first))
        seeds = range(jobs[-1].seed + 1, jobs[-1].seed + request.repeat)
        jobs += [
            scenario.load(
                request.scenario, replace(first, settings=(*request.settings, f"seed={n}"))
            )
            for n in seeds
        ]
    runs = [(job.strategy.name, job.seed) for job in jobs]
    if len(set(runs)) < len(runs):
        raise RequestError(
            "the same strategy with the same seed is asked for twice: leave out one --strategy"
        )
    return jobs


def _options(request: Request) -> engines.Options:
    entry = engines.entry(request.engine)
    if request.vm and not entry.real_time:
        raise RequestError(
            f"--vm: engine '{request.engine}' needs no virtual machine. Leave out --vm"
        )
    if request.speed is None:
        return engines.Options(1.0 if entry.real_time else 0.0, request.pcap, request.wait)
    try:
        return engines.Options(checked_speed(request.speed), request.pcap, request.wait)
    except RequestError as error:
        raise RequestError(f"--{error}") from error


def _run(request: Request, show: bool, job: Job) -> Outcome:
    live = view.Live(not show)
    asked = job.scenario
    if job.vm:
        outcome = _in_vm(request, job, live)
    else:
        engine = engines.create(job.engine, job.options)
        engine.ready(asked)
        outcome = run_one(
            asked,
            engine,
            Recorder(new_folder(asked, job.out), asked, job.engine, build(asked)),
            live,
        )
    live.done()
    if request.report:
        _write_report(asked, outcome)
    if outcome.error:
        click.echo(f"error: {outcome.error}", err=True)
    return outcome


def _write_report(asked: Scenario, outcome: Outcome) -> None:
    try:
        (outcome.folder / "report.md").write_text(
            view.report(asked, outcome.result, outcome.folder), encoding="utf-8"
        )
    except OSError as error:
        raise LabError(f"write {outcome.folder / 'report.md'}: {error.strerror}") from error


def _in_vm(request: Request, asked: Job, live: view.Live) -> Outcome:
    """Run inside the virtual machine and follow the shared folder meanwhile. Ctrl-C is passed on to the run inside."""
    vm, job = _virtual_machine(), asked.scenario
    vm.kernel.require(engines.congestion_controls(job))
    folder = new_folder(job, asked.out)
    live(Progress("starting the virtual machine", 0.0, job.duration_s))
    error = None
    try:
        inside = vm.GuestCommand(
            argv_inside(request, job, folder), folder, _follower(folder, job.duration_s, live)
        )
        code = vm.run_in_vm(inside, wait=request.wait)
    except MachineLacks:  # nothing was started, so nothing is left
        shutil.rmtree(folder)
        raise
    except LabError as problem:
        error, code = problem, problem.exit_code
    (folder / REQUEST).unlink(missing_ok=True)
    if (folder / "result.json").exists():
        give_away(folder)
        result = read_document(folder, "result.json")
        return Outcome(result, folder, code, str(error or result.get("error", "")))
    interrupted = code == EXIT_INTERRUPTED
    error = error or LabError(
        f"run '{job.name}' in the virtual machine: no result (status {code}). See {folder / 'vm'}"
    )
    recorder = Recorder(folder, job, request.engine, build(job))
    return conclude(job, recorder, None, None if interrupted else error, interrupted)


def argv_inside(request: Request, job: Scenario, folder: Path) -> list[str]:
    """Leave the complete scenario in the shared folder; return the command that runs it in there, into the same folder."""
    write_scenario(folder / REQUEST, job)
    argv = [
        sys.executable,
        "-m",
        "lab",
        "run",
        str(folder.resolve() / REQUEST),
        "--engine",
        request.engine,
    ]
    return [*argv, *(["--pcap"] if request.pcap else []), "--out", str(folder.resolve()), "--quiet"]


def _virtual_machine() -> Any:
    try:
        from lab.engines.mininet.vm import launch as vm
    except ImportError as error:
        raise MachineLacks(
            f"start the virtual machine: {error}. Try: ./run_lab.sh setup-emulation"
        ) from error
    return vm


def _follower(folder: Path, duration_s: float, live: view.Live) -> Callable[[], None]:
    """Shows what has been added to a run folder since the last call."""
    samples, log = Follower(folder / "samples.jsonl"), Follower(folder / "log.txt", str)

    def look() -> None:
        for line in (each for each in log.new() if not each.startswith(TRACE)):
            live(Progress(line.partition(" ")[2], 0.0, duration_s))
        for frame in samples.new()[-1:]:
            live(Progress("running", frame["t"], duration_s, frame, duration_s - frame["t"]))

    return look
