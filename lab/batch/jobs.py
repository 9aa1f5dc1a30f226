"""Run several jobs, and keep the runs that exist already. A job is one run to make.

1) An existing run is kept if its folder has a complete result with the same settings and of the
   present schema, the machine was not overloaded during the run, and nobody changed the run by
   hand.
2) Any other existing run with the same settings is removed and repeated. A folder without a
   complete manifest is a run that never began.
3) Simulations run in parallel on all processors; emulations run one after the other.
4) A run whose process is killed, for example because the memory is full, is repeated alone after
   all others. If it is killed again, it has failed.
5) An emulation that failed or overloaded the machine is repeated after all others, because another
   program may have kept the machine busy. It is made at most `TRIES` times; with `--dilation auto`,
   until the clocks of the VM are slow enough (`lab.batch.slower_clocks`).
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Protocol

from lab import extensions
from lab.batch import other_settings, slower_clocks
from lab.batch.job import Job
from lab.batch.slower_clocks import Expected, Slowed
from lab.errors import LabError, RequestError
from lab.extensions import Extension
from lab.run import process
from lab.run.outcome import EXIT_INTERRUPTED, Outcome, conclude, is_whole
from lab.run.reading import RESULTS, changed, has_results_only, read_document
from lab.run.recorder import Recorder, never_began, new_folder, remove_run
from lab.run.result import SCHEMA
from lab.scenario import engine_table
from lab.scenario.loading import experiment
from lab.vm_environment import asked_dilation

SIGNAL_EVERY_S = 0.5
KILLED_AFTER_S = 60.0
ENDS_WITHIN_S = 3.0  # a worker of a command that was killed
SAY_EACH = 100  # with more runs, progress is shown every `SAY_EVERY_S` seconds
SAY_EVERY_S = 5.0
TRIES = 3  # of an emulation that fails or overloads the machine
PR_SET_PDEATHSIG = 1  # of prctl(2)
_stopped: Event  # set in each worker process


class Display(Protocol):
    """Runs a job for `run_all` and shows the progress to the user.

    An instance must be picklable, because simulations run in worker processes.
    """

    def run(self, job: Job) -> Outcome:
        """Run one job with `lab.batch.single.run_job`, and show its progress."""

    def say(self, text: str) -> None:
        """Show one line of text to the user."""


class Executor(Protocol):
    """Makes the runs of a batch: in processes of this machine, or elsewhere."""

    def __call__(
        self, jobs: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Call `run` with each job whose number is in `left`. Yield (number, outcome) of each when
        it ends, in any order; its run folder is then complete at the job's place. After an
        interruption, jobs that never began are left out."""


def run_all(jobs: Sequence[Job], display: Display) -> list[Outcome]:
    """Run all jobs as `run_each` does. Return the outcomes in the order of the jobs."""
    found = dict(run_each(jobs, display))
    return [found[n] for n in sorted(found)]


def are_made(
    jobs: Sequence[Job],
    display: Display,
    executor: Executor | None = None,
    tries: int = TRIES,
    expected: Expected | None = None,
) -> bool:
    """Run all jobs as `run_each` does. Return False if the user interrupted."""
    codes = [outcome.exit_code for _, outcome in run_each(jobs, display, executor, tries, expected)]
    return len(codes) == len(jobs) and EXIT_INTERRUPTED not in codes


def run_each(
    jobs: Sequence[Job],
    display: Display,
    executor: Executor | None = None,
    tries: int = TRIES,
    expected: Expected | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Run all jobs that have no valid run yet. Yield (number, outcome) of each job.

    Jobs and outcomes are not kept, so a long batch needs no more memory than a short one. If a job
    has a valid run already, its outcome is that of the existing run, and it comes first. After an
    interruption, jobs that were not run are left out. Raise `RequestError`, and start nothing, if
    the folder of a job has other files, or if another process is making its run. Without an
    `executor`, the processes of this machine make the runs. `tries` replaces `TRIES`. With
    `--dilation auto`, runs begin with the factor that is `expected` to suffice.
    """
    refuse_occupied(jobs)
    left = []
    for n, job in enumerate(jobs):
        if outcome := kept(job):
            yield n, outcome
        else:
            _remove_unusable(job)
            left.append(n)
    if len(left) < len(jobs):
        display.say(f"{len(jobs) - len(left)} of {len(jobs)} runs exist already")
    yield from _tried(jobs, left, display, executor or locally, tries, expected)


def _tried(
    jobs: Sequence[Job],
    left: Sequence[int],
    display: Display,
    executor: Executor,
    tries: int,
    expected: Expected | None,
) -> Iterator[tuple[int, Outcome]]:
    """Run the jobs whose numbers are in `left`, and repeat emulations at most `tries` times. Yield
    the last outcome of each."""
    in_vm = bool(left) and jobs[left[0]].vm
    is_slowed = in_vm and tries > 1 and asked_dilation() is None
    slowed = Slowed(jobs, expected) if is_slowed else None
    if slowed:
        jobs, tries = slowed, max(tries, slower_clocks.TRIES)
    while left:
        tries -= 1
        shown, ended, again = _Shown(display, len(jobs), len(left)), 0, dict[int, Outcome]()
        interrupted = False
        for n, outcome in executor(jobs, left, display.run):
            shown.ended(jobs[n], outcome)
            ended += 1
            interrupted |= outcome.exit_code == EXIT_INTERRUPTED
            if slowed:
                slowed.note(n, outcome)
            if tries > 0 and _is_repeated(jobs[n], outcome):
                again[n] = outcome
            else:
                yield n, outcome
        if interrupted or ended < len(left):
            yield from again.items()
            return
        if again:
            how = ", where it helps with slower clocks" if slowed else ""
            display.say(f"runs that failed or overloaded the machine are repeated{how}")
        for n, outcome in again.items():
            if jobs[n].out is None:
                remove_run(outcome.folder)
            _remove_unusable(jobs[n])
        left = tuple(again)


def _is_repeated(job: Job, outcome: Outcome) -> bool:
    ended = outcome.exit_code != EXIT_INTERRUPTED
    return ended and engine_table.entry(job.engine).real_time and not is_whole(outcome.result)


def locally(
    jobs: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    """Make simulations side by side, and emulations in turn. It is an `Executor`."""
    alone = any(engine_table.entry(jobs[n].engine).real_time for n in left)
    return (_in_turn if alone else side_by_side)(jobs, left, run)


class _Shown:
    """Shows how far a batch has come: one line for each run or, with many runs, one every few
    seconds."""

    def __init__(self, display: Display, total: int, left: int) -> None:
        self._display, self._total, self._left = display, total, left
        self._began = self._said = time.monotonic()
        self._done = 0

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Show that the run of `job` has ended."""
        self._done += 1
        now, is_last = time.monotonic(), self._done == self._left
        often = self._left <= SAY_EACH or now - self._said >= SAY_EVERY_S
        if not (often or is_last or outcome.exit_code):
            return
        self._said = now
        left_s = (now - self._began) / self._done * (self._left - self._done)
        found = self._total - self._left + self._done
        status = f"run {found} of {self._total}: {_title(job)}: {_status(outcome)}"
        self._display.say(status if is_last else f"{status}, {time_left(left_s)} left")


def time_left(seconds: float) -> str:
    """Format a time as `45 s`, `12 min` or `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def refuse_occupied(jobs: Sequence[Job]) -> None:
    """Raise `RequestError` if a job cannot run because of what is in its folder.

    That is a run with other settings, files of somebody else, or a run that another process is
    making now.
    """
    others, making = list[Job](), None
    for job in jobs:
        if is_occupied(job):
            others.append(job)
        elif making is None and job.out is not None and (pid := _maker(job.out)):
            making = pid, job.out
    if others:
        more = f", and {len(others) - 1} more" if len(others) > 1 else ""
        raise RequestError(
            f"--out: {others[0].out} is there already and not empty{more}: "
            f"{other_settings.in_words(others[0])}. Choose another folder"
        )
    if making:
        raise RequestError(
            f"--out: process {making[0]} is making the run in {making[1]} now. Wait until it has "
            "ended"
        )


def is_occupied(job: Job) -> bool:
    """Return whether the folder of a job has a run with other settings, or other files."""
    if job.out is None or not job.out.exists():
        return False
    if not job.out.is_dir():
        return True
    if never_began(job.out, is_ours=True):
        return False
    return not (job.out / "manifest.json").is_file() or not _is_of(job, job.out)


def _maker(folder: Path) -> int | None:
    """Return the id of the process on this machine that is making a run in `folder`, or None.

    A process that ends within `ENDS_WITHIN_S` does not count: it belonged to a command that was
    killed.
    """
    if not (folder / "manifest.json").is_file() or (folder / "result.json").exists():
        return None
    if never_began(folder, is_ours=True):
        return None
    manifest = read_document(folder, "manifest.json")
    is_here = manifest.get("boot_id") == process.boot_id() and manifest.get("pid") != os.getpid()
    ends = time.monotonic() + ENDS_WITHIN_S
    while is_here and process.alive(manifest, folder):
        if time.monotonic() > ends:
            return int(manifest["pid"])
        time.sleep(0.05)
    return None


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
    enough = job.keep == RESULTS or not has_results_only(result)
    valid = same and same_schema and enough and is_whole(result) and not result.get("flips")
    return Outcome(result, job.out) if valid else None


def _remove_unusable(job: Job) -> None:
    """Remove what `kept` refused from the folder of a job: a run that never began, or one with the
    job's settings that is unfinished, overloaded or changed by hand.

    A folder with any other content stays as it is (`refuse_occupied`).
    """
    if job.out is not None and job.out.is_dir() and not is_occupied(job):
        remove_run(job.out)


def _is_of(job: Job, folder: Path) -> bool:
    manifest = read_document(folder, "manifest.json")
    return manifest.get("experiment") == experiment(job.scenario, job.engine)


def _in_turn(
    jobs: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome]
) -> Iterator[tuple[int, Outcome]]:
    for n in left:
        outcome = run(jobs[n])
        yield n, outcome
        if outcome.exit_code == EXIT_INTERRUPTED:
            return


def side_by_side(
    jobs: Sequence[Job],
    left: Sequence[int],
    run: Callable[[Job], Outcome],
    at_once: int | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs in `at_once` processes, or in one for each processor. Yield (number, outcome) of
    each when it ends."""
    at_once = at_once or os.cpu_count() or 1
    waiting, alone = dict.fromkeys(left), list[int]()
    while waiting:
        try:
            for n, outcome in _pooled(jobs, tuple(waiting), run, at_once):
                waiting.pop(n)
                yield n, outcome
            break
        except _Killed as several:
            alone += several.running
            for n in several.running:
                waiting.pop(n)
    for n in alone if not waiting else ():  # some are left after an interruption
        job = jobs[n]
        if existing := kept(job):  # it ended at the same moment
            yield n, existing
            continue
        _remove_unusable(job)
        try:
            yield from _pooled(jobs, (n,), run, 1)
        except _Killed:
            yield n, killed(job)


class _Killed(Exception):
    """A worker process was killed. `running` are the numbers of the jobs that were running."""

    def __init__(self, running: Collection[int]) -> None:
        super().__init__()
        self.running = tuple(running)


def killed(job: Job) -> Outcome:
    """Record that a run has failed: its process was killed each time."""
    folder = job.out or new_folder(job.scenario)
    folder.mkdir(exist_ok=True)
    error = LabError(
        f"run {_title(job)}: its process was killed, also when it ran alone. If the memory was "
        "full, choose a smaller network, or a machine with more memory"
    )
    return conclude(job.scenario, Recorder(folder, job.scenario, job.engine), None, error, False)


def _pooled(
    jobs: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome], at_once: int
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs in worker processes, and yield (number, outcome) of each job when it ends.

    No worker waits for work that it was given, so that it is known which jobs were running when one
    is killed. Raise `_Killed` then. After a signal, jobs that never began are left out.
    """
    stopped = multiprocessing.Event()
    running: dict[Future[Outcome | None], int] = {}
    waiting = iter(left)
    workers = min(len(left), at_once)
    with (
        ProcessPoolExecutor(
            workers, initializer=_begin, initargs=(stopped, extensions.registered())
        ) as pool,
        signals_as_ctrl_c(),
    ):
        try:
            while True:
                for n in islice(waiting, workers - len(running)):
                    running[pool.submit(_unless_stopped, run, jobs[n])] = n
                if not running:
                    return
                yield from _ended(running)
        except BrokenProcessPool:
            raise _Killed(running.values()) from None
        except KeyboardInterrupt:
            _stop(stopped, running)
            with suppress(BrokenProcessPool):  # some were killed: the next command repeats them
                while running:
                    yield from _ended(running)
        finally:
            _stop(stopped, running)


def _stop(stopped: Event, running: Collection[Future[Outcome | None]]) -> None:
    """Start no more jobs, and wait until all running jobs have ended.

    Meanwhile, SIGTERM is sent to the worker processes every `SIGNAL_EVERY_S` seconds. A suspended
    process is continued, because it acts only then. A process that is still there after
    `KILLED_AFTER_S` is killed.
    """
    stopped.set()
    kill_at_s = time.monotonic() + KILLED_AFTER_S
    while wait(running, timeout=0).not_done:
        for child in multiprocessing.active_children():
            if time.monotonic() > kill_at_s:
                child.kill()
            elif child.pid is not None:
                child.terminate()
                with suppress(ProcessLookupError):  # it has ended
                    os.kill(child.pid, signal.SIGCONT)
        wait(running, timeout=SIGNAL_EVERY_S)


def _ended(running: dict[Future[Outcome | None], int]) -> Iterator[tuple[int, Outcome]]:
    """Wait until a job has ended. Remove the ended ones from `running`, and yield their numbers
    with their outcomes. Jobs that never began are left out."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        outcome = future.result()
        n = running.pop(future)
        if outcome is not None:
            yield n, outcome


def _begin(stopped: Event, files: Sequence[Extension]) -> None:
    """Prepare a worker process: register the user's files, and ignore signals between two runs.

    During a run, `lab.run.runner` handles the signals.
    """
    global _stopped
    _end_with_parent()
    extensions.restore(files)
    _stopped = stopped
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _end_with_parent() -> None:
    """End this worker process when its parent is killed; otherwise it would go on writing."""
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and not parent.is_alive():  # it was killed before
        os._exit(1)


def _unless_stopped(run: Callable[[Job], Outcome], job: Job) -> Outcome | None:
    return None if _stopped.is_set() else run(job)


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
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
