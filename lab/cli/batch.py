"""Several runs as one piece of work: what is there already is kept, the rest runs side by side or, in real time, in turn.

1) a run in its folder that is complete, of the same experiment and did not overload the machine is kept
2) one that did not get so far gives way
3) engines without a clock of their own use all processors; a real-time engine has the machine to itself
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
from typing import Any

from lab import engines
from lab.errors import LabError
from lab.run.recorder import read_document
from lab.run.runner import EXIT_INTERRUPTED, Outcome
from lab.scenario.loading import experiment
from lab.scenario.schema import Scenario

TELL_EVERY_S = 0.5
Say = Callable[[str], None]
_stopped: Event  # of a worker's process


@dataclass(frozen=True)
class Job:
    """One run: its scenario, how the engine is used, and its folder (None: a new one named after the start)."""

    scenario: Scenario
    engine: str
    options: engines.Options
    out: Path | None = None
    vm: bool = False

    @property
    def name(self) -> str:
        return f"{self.scenario.strategy.name}, seed {self.scenario.seed}"


def run_all(jobs: Sequence[Job], one: Callable[[Job], Outcome], say: Say) -> list[Outcome]:
    """The outcomes in the order of the jobs; after an interruption those that there are."""
    found = {n: outcome for n, job in enumerate(jobs) if (outcome := kept(job))}
    if found:
        say(f"{len(found)} of {len(jobs)} runs are there already")
    left = {n: job for n, job in enumerate(jobs) if n not in found}
    for job in left.values():
        _give_way(job)
    alone = any(engines.entry(job.engine).real_time for job in left.values())
    began = time.monotonic()
    for done, (n, outcome) in enumerate((_in_turn if alone else _side_by_side)(left, one), 1):
        found[n] = outcome
        eta_s = (time.monotonic() - began) / done * (len(left) - done)
        status = f"run {len(found)} of {len(jobs)}: {jobs[n].name}: {outcome.result['status']}"
        say(f"{status}, {eta_s:.0f} s left" if done < len(left) else status)
    return [found[n] for n in sorted(found)]


def kept(job: Job) -> Outcome | None:
    """The outcome of an earlier run that can stand for this job."""
    if job.out is None:
        return None
    try:
        result = read_document(job.out, "result.json")
        same = read_document(job.out, "manifest.json")["experiment"] == experiment(
            job.scenario, job.engine
        )
    except (LabError, OSError, KeyError):
        return None
    return (
        Outcome(result, job.out)
        if same and result["status"] == "complete" and not result["overloaded"]
        else None
    )


def _give_way(job: Job) -> None:
    """Remove an unfinished or overloaded run of this very experiment; anything else stays, and is refused later."""
    if job.out is None or not (job.out / "manifest.json").is_file():
        return
    if read_document(job.out, "manifest.json").get("experiment") == experiment(
        job.scenario, job.engine
    ):
        shutil.rmtree(job.out)


def _in_turn(
    jobs: Mapping[int, Job], one: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    for n, job in jobs.items():
        outcome = one(job)
        yield n, outcome
        if outcome.exit_code == EXIT_INTERRUPTED:
            return


def _side_by_side(
    jobs: Mapping[int, Job], one: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    if not jobs:
        return
    stopped = multiprocessing.Event()
    waiting: dict[Future[Outcome | None], int] = {}
    workers = min(len(jobs), os.cpu_count() or 1)
    with (
        ProcessPoolExecutor(workers, initializer=_deaf, initargs=(stopped,)) as pool,
        _signals_as_ctrl_c(),
    ):
        try:
            for n, job in jobs.items():
                waiting[pool.submit(_unless_stopped, one, job)] = n
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
    """No run begins any more; those that go on are told to end until they have."""
    stopped.set()
    while wait(waiting, timeout=0).not_done:
        for child in multiprocessing.active_children():
            child.terminate()
        wait(waiting, timeout=TELL_EVERY_S)


def _ended(waiting: Mapping[Future[Outcome | None], int]) -> Iterator[tuple[int, Outcome]]:
    """Runs as they end, without those that never began."""
    for future in as_completed(waiting):
        try:
            outcome = future.result()
        except BrokenProcessPool as error:
            raise LabError(
                "several runs: one was killed. The same command again makes those that are missing"
            ) from error
        if outcome is not None:
            yield waiting[future], outcome


def _deaf(stopped: Event) -> None:
    """A worker hears signals only while a run goes on, which then ends in good order."""
    global _stopped
    _stopped = stopped
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _unless_stopped(one: Callable[[Job], Outcome], job: Job) -> Outcome | None:
    return None if _stopped.is_set() else one(job)


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """SIGTERM too; and SIGINT also where a shell in the background ignores it."""

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
