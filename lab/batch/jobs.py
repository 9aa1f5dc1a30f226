"""Run several jobs, and keep the runs that exist already. A job is one run to make.

1) An existing run is kept if its folder has a complete result with the same settings and of the
   present schema, the machine was not overloaded during the run, and nobody changed the run by
   hand.
2) Any other existing run with the same settings is removed and repeated.
3) Simulations run in parallel on all processors; emulations run one after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Protocol

from lab import extensions
from lab.errors import LabError
from lab.extensions import Extension
from lab.run.engine import Options
from lab.run.outcome import EXIT_INTERRUPTED, Outcome, Progress, is_whole
from lab.run.reading import changed, read_document
from lab.run.result import SCHEMA
from lab.scenario import engine_table
from lab.scenario.loading import experiment
from lab.scenario.schema import Scenario

SIGNAL_EVERY_S = 0.5
KILLED_AFTER_S = 60.0
OnProgress = Callable[[Progress], None]
_stopped: Event  # set in each worker process


@dataclass(frozen=True)
class Job:
    """One run to make.

    `out` is the run folder. If it is None, a new folder is made, named after the time at which the
    run starts. If `vm` is True, the emulation runs inside the virtual machine.
    """

    scenario: Scenario
    engine: str
    options: Options
    out: Path | None = None
    vm: bool = False

    @property
    def name(self) -> str:
        """The strategy and the seed, such as `none, seed 1`."""
        return f"{self.scenario.strategy.name}, seed {self.scenario.seed}"


class Display(Protocol):
    """Runs a job for `run_all` and shows the progress to the user.

    An instance must be picklable, because simulations run in worker processes.
    """

    def run(self, job: Job) -> Outcome:
        """Run one job with `lab.batch.single.run_job`, and show its progress."""

    def say(self, text: str) -> None:
        """Show one line of text to the user."""


def run_all(jobs: Sequence[Job], display: Display) -> list[Outcome]:
    """Run all jobs that have no valid run yet. Return the outcomes of all jobs, in their order.

    If a job has a valid run already, its outcome is that of the existing run. After an
    interruption, jobs that were not run are left out.
    """
    found = {n: outcome for n, job in enumerate(jobs) if (outcome := kept(job))}
    if found:
        display.say(f"{len(found)} of {len(jobs)} runs exist already")
    left = {n: job for n, job in enumerate(jobs) if n not in found}
    for job in left.values():
        _remove_unusable(job)
    alone = any(engine_table.entry(job.engine).real_time for job in left.values())
    began = time.monotonic()
    run = _in_turn if alone else _side_by_side
    for done, (n, outcome) in enumerate(run(left, display.run), 1):
        found[n] = outcome
        eta_s = (time.monotonic() - began) / done * (len(left) - done)
        status = f"run {len(found)} of {len(jobs)}: {_title(jobs[n])}: {_status(outcome)}"
        display.say(f"{status}, {time_left(eta_s)} left" if done < len(left) else status)
    return [found[n] for n in sorted(found)]


def time_left(seconds: float) -> str:
    """Format a time as `45 s`, `12 min` or `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def is_occupied(job: Job) -> bool:
    """Return whether the job cannot run because its folder has a run with other settings."""
    if job.out is None or not (job.out / "manifest.json").is_file():
        return False
    return not _is_of(job, job.out)


def _title(job: Job) -> str:
    return f"{job.scenario.name}, {job.name}"


def _status(outcome: Outcome) -> str:
    overloaded = ", the machine was overloaded" if outcome.result["overloaded"] else ""
    return f"{outcome.result['status']}{overloaded}"


def kept(job: Job) -> Outcome | None:
    """Return the outcome of the existing run in the job's folder, if it need not be repeated.

    Return None if there is no such run, or if it must be repeated.
    """
    if job.out is None:
        return None
    try:
        result = read_document(job.out, "result.json")
        same = _is_of(job, job.out) and not changed(job.out, result)
    except (LabError, OSError, KeyError):
        return None
    same_schema = result.get("schema") == SCHEMA
    valid = same and same_schema and is_whole(result) and not result.get("flips")
    return Outcome(result, job.out) if valid else None


def _remove_unusable(job: Job) -> None:
    """Remove the job's run folder if it has a run that `kept` refused, with the job's settings.

    Such a run may be unfinished, overloaded or changed by hand. A folder with any other content
    stays as it is; the job then fails, because a run overwrites no files.
    """
    if job.out is None or not (job.out / "manifest.json").is_file():
        return
    if _is_of(job, job.out):
        shutil.rmtree(job.out)


def _is_of(job: Job, folder: Path) -> bool:
    manifest = read_document(folder, "manifest.json")
    return manifest.get("experiment") == experiment(job.scenario, job.engine)


def _in_turn(
    jobs: Mapping[int, Job], run: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    for n, job in jobs.items():
        outcome = run(job)
        yield n, outcome
        if outcome.exit_code == EXIT_INTERRUPTED:
            return


def _side_by_side(
    jobs: Mapping[int, Job], run: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    if not jobs:
        return
    stopped = multiprocessing.Event()
    waiting: dict[Future[Outcome | None], int] = {}
    workers = min(len(jobs), os.cpu_count() or 1)
    with (
        ProcessPoolExecutor(
            workers, initializer=_begin, initargs=(stopped, extensions.registered())
        ) as pool,
        _signals_as_ctrl_c(),
    ):
        try:
            for n, job in jobs.items():
                waiting[pool.submit(_unless_stopped, run, job)] = n
            yield from _ended(waiting)
        except KeyboardInterrupt:
            _stop(stopped, waiting)
            yield from (
                (n, outcome)
                for n, outcome in _ended(waiting)
                if outcome.exit_code == EXIT_INTERRUPTED
            )
        finally:
            _stop(stopped, waiting)


def _stop(stopped: Event, waiting: Collection[Future[Outcome | None]]) -> None:
    """Start no more jobs, and wait until all running jobs have ended.

    Meanwhile, SIGTERM is sent to the worker processes every `SIGNAL_EVERY_S` seconds. A suspended
    process is continued, because it acts only then. A process that is still there after
    `KILLED_AFTER_S` is killed.
    """
    stopped.set()
    kill_at_s = time.monotonic() + KILLED_AFTER_S
    while wait(waiting, timeout=0).not_done:
        for child in multiprocessing.active_children():
            if time.monotonic() > kill_at_s:
                child.kill()
            elif child.pid is not None:
                child.terminate()
                os.kill(child.pid, signal.SIGCONT)
        wait(waiting, timeout=SIGNAL_EVERY_S)


def _ended(waiting: Mapping[Future[Outcome | None], int]) -> Iterator[tuple[int, Outcome]]:
    """Yield (number, outcome) of each job when it ends. Jobs that never began are left out."""
    for future in as_completed(waiting):
        try:
            outcome = future.result()
        except BrokenProcessPool as error:
            raise LabError(
                "several runs: one was killed. Repeat the command: it makes the missing runs"
            ) from error
        if outcome is not None:
            yield waiting[future], outcome


def _begin(stopped: Event, files: Sequence[Extension]) -> None:
    """Prepare a worker process: register the user's files, and ignore signals between two runs.

    During a run, `lab.run.runner` handles the signals.
    """
    global _stopped
    extensions.restore(files)
    _stopped = stopped
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _unless_stopped(run: Callable[[Job], Outcome], job: Job) -> Outcome | None:
    return None if _stopped.is_set() else run(job)


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM and SIGINT inside the `with` block.

    SIGINT needs a handler because a shell starts background commands with SIGINT ignored.
    """

    def handle(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = {
            number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
        }
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
