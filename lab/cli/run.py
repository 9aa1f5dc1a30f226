"""`run`: every run is planned and checked before the first one starts; then one after another."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from lab import engines, inbox, scenario
from lab.cli import view
from lab.errors import LabError, MachineLacks, RequestError
from lab.recorder import Follower, Recorder, new_folder, read_document
from lab.runner import EXIT_INTERRUPTED, Outcome, Progress
from lab.runner import run as run_one
from lab.scenario import Overrides, build
from lab.scenario_schema import Scenario


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


@dataclass(frozen=True)
class Job:
    """One run: the checked scenario, and what was overridden to get it."""

    scenario: Scenario
    overrides: Overrides


def run(request: Request) -> int:
    """Do what was asked and return the exit code: that of the first run that did not end well."""
    options = _options(request)
    jobs = plan(request)
    for job in jobs:
        engines.admit(request.engine, job.scenario, options)
    outcomes: list[Outcome] = []
    for n, job in enumerate(jobs, 1):
        if len(jobs) > 1 and not request.quiet:
            click.echo(f"run {n} of {len(jobs)}: {job.scenario.strategy.name}, seed {job.scenario.seed}", err=True)
        out = (
            request.out
            if request.out is None or len(jobs) == 1
            else request.out / f"{job.scenario.strategy.name}-{job.scenario.seed}"
        )
        outcomes.append(_run(request, job, options, out))
        if outcomes[-1].exit_code == EXIT_INTERRUPTED:
            break
    if request.as_json:
        results = [outcome.result for outcome in outcomes]
        click.echo(json.dumps(results[0] if len(jobs) == 1 else results, indent=1))
    return next((outcome.exit_code for outcome in outcomes if outcome.exit_code), 0)


def plan(request: Request) -> list[Job]:
    """Every strategy asked for, each with its repeats on seeds counted up from the first: the same seeds for all."""
    jobs = []
    for strategy in request.strategies or (None,):
        first = Overrides(strategy, request.cc, request.seed, request.duration_s, request.settings)
        start = scenario.load(request.scenario, first).seed
        for n in range(request.repeat):
            overrides = replace(first, seed=start + n) if request.repeat > 1 else first
            jobs.append(Job(scenario.load(request.scenario, overrides), overrides))
    seeds = [(job.scenario.strategy.name, job.scenario.seed) for job in jobs]
    if len(set(seeds)) < len(seeds):
        raise RequestError("the same strategy with the same seed is asked for twice: leave out one --strategy, or --set seed")
    return jobs


def _options(request: Request) -> engines.Options:
    entry = engines.entry(request.engine)
    if request.vm and not entry.real_time:
        raise RequestError(f"--vm: engine '{request.engine}' needs no virtual machine. Leave out --vm")
    if request.speed is None:
        return engines.Options(1.0 if entry.real_time else 0.0, request.pcap)
    try:
        speed = 0.0 if request.speed == "max" else float(request.speed)
    except ValueError:
        speed = -1.0
    if not 0 <= speed <= 1000 or (speed == 0 and request.speed != "max"):
        raise RequestError(f"--speed {request.speed}: write max, 1 or 10 (times real time)")
    return engines.Options(speed, request.pcap)


def _run(request: Request, job: Job, options: engines.Options, out: Path | None) -> Outcome:
    live = view.Live(request.quiet or request.as_json)
    if request.vm:
        outcome = _in_vm(request, job, new_folder(job.scenario, out), live)
    else:
        engine = engines.create(request.engine, options)
        engine.ready()
        folder = new_folder(job.scenario, out)
        outcome = run_one(job.scenario, engine, Recorder(folder, job.scenario, request.engine, build(job.scenario)), live)
    live.done()
    if request.report:
        _write_report(job.scenario, outcome)
    if not request.as_json and not request.quiet and outcome.result:
        click.echo(view.summary(outcome.result, outcome.folder))
    if outcome.error:
        click.echo(f"error: {outcome.error}", err=True)
    return outcome


def _write_report(asked: Scenario, outcome: Outcome) -> None:
    try:
        (outcome.folder / "report.md").write_text(view.report(asked, outcome.result, outcome.folder), encoding="utf-8")
    except OSError as error:
        raise LabError(f"write {outcome.folder / 'report.md'}: {error.strerror}") from error


def argv_inside(request: Request, job: Job, folder: Path) -> list[str]:
    """The command that does this one job inside the virtual machine, into `folder`."""
    asked = job.overrides
    argv = [sys.executable, "-m", "lab", "run", str(scenario.find(request.scenario).resolve()), "--engine", request.engine]
    argv += ["--strategy", asked.strategy] if asked.strategy else []
    argv += ["--cc", asked.cc] if asked.cc else []
    argv += ["--seed", str(asked.seed)] if asked.seed is not None else []
    argv += ["--duration", str(asked.duration_s)] if asked.duration_s is not None else []
    for setting in asked.settings:
        argv += ["--set", setting]
    argv += ["--pcap"] if request.pcap else []
    return [*argv, "--out", str(folder.resolve()), "--quiet"]


def _in_vm(request: Request, job: Job, folder: Path, live: view.Live) -> Outcome:
    """Run inside the virtual machine and follow the shared folder meanwhile."""
    try:
        from lab.engines.mininet import vm
    except ImportError as error:
        raise MachineLacks(f"start the virtual machine: {error}. Try: ./run_lab.sh doctor") from error
    samples, log = Follower(folder / "samples.jsonl"), Follower(folder / "log.txt", str)
    duration = job.scenario.duration_s
    live(Progress("starting the virtual machine", 0.0, duration))

    def on_poll() -> None:
        for line in log.new():
            live(Progress(line.partition(" ")[2], 0.0, duration))
        for frame in samples.new()[-1:]:
            live(Progress("running", frame["t"], duration, frame, duration - frame["t"]))

    with _ctrl_c_stops(folder):
        code = vm.run_in_vm(argv_inside(request, job, folder), folder, on_poll)
    if not (folder / "result.json").exists():
        return Outcome(
            {}, folder, code or 4, f"run in the virtual machine: it ended without a result (status {code}). See {folder}"
        )
    result: dict[str, Any] = read_document(folder, "result.json")
    return Outcome(result, folder, code, str(result.get("error", "")))


@contextmanager
def _ctrl_c_stops(folder: Path) -> Iterator[None]:
    """The first Ctrl-C asks the run inside to end and keep what it has; the second ends everything."""

    def ask(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not (folder / "inbox").is_dir():
            raise KeyboardInterrupt
        inbox.send(folder, {"control": "stop"})

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
