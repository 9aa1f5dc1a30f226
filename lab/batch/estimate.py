"""Estimate how long a batch takes and how much disk it needs, without making its runs.

Some of its simulations are tried for 1 and 3 s, in a temporary folder. Time and disk grow with the
duration of a run as they grew between these two. An emulation keeps real time, so nothing is tried.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.batch.job import Job
from lab.batch.jobs import kept, refuse_occupied, time_left
from lab.batch.single import run_job
from lab.errors import LabError
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario import engine_table

SHORT_S, LONG_S = 1.0, 3.0  # of simulated time
MOST_TRIED = 5  # runs of the batch
BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Estimate:
    """`left` of `runs` runs have to be made. `seconds` is their time on this machine, `at_once` of
    them side by side, and `disk_bytes` what their folders need; None if it was not tried."""

    runs: int
    left: int
    at_once: int
    seconds: float
    disk_bytes: int | None

    def text(self) -> str:
        exist = f"{self.runs - self.left} of them exist already, " if self.left < self.runs else ""
        side = f", {self.at_once} at once" if self.at_once > 1 else ""
        at_least = "at least " if self.disk_bytes is None else ""
        disk = "" if self.disk_bytes is None else f" and {self.disk_bytes / 1e6:.3g} MB of disk"
        return (
            f"{self.runs} runs, {exist}{self.left} to make{side}. Estimate for this machine: "
            f"{at_least}{time_left(self.seconds)}{disk}"
        )


def estimated(jobs: Sequence[Job], most_at_once: int | None = None) -> Estimate:
    """Return what the runs that a batch still lacks will take. Without `most_at_once`, as many are
    made side by side as there are processors.

    Raise `RequestError` if the batch would be refused, and `LabError` if a trial fails.
    """
    refuse_occupied(jobs)
    left = [n for n, job in enumerate(jobs) if not kept(job)]
    if any(engine_table.entry(jobs[n].engine).real_time for n in left):
        seconds = sum(jobs[n].scenario.duration_s for n in left)
        return Estimate(len(jobs), len(left), 1, seconds, None)
    at_once = max(1, min(len(left), most_at_once or os.cpu_count() or 1))
    chosen = [jobs[n] for n in left[:: -(-len(left) // MOST_TRIED)]] if left else []
    start_s = _trial(chosen[0], SHORT_S)[0] if chosen else 0.0  # each process loads the engine
    tried = [_whole_run(job) for job in chosen]
    each = len(left) / len(tried) if tried else 0.0
    seconds = start_s + each * sum(seconds for seconds, _ in tried) / at_once
    return Estimate(len(jobs), len(left), at_once, seconds, round(each * sum(n for _, n in tried)))


def _whole_run(job: Job) -> tuple[float, float]:
    """Return the time in s and the size in bytes that are expected of a run."""
    duration_s = job.scenario.duration_s
    at_least_s = duration_s / job.options.speed if job.options.speed else 0.0
    last = _trial(job, min(LONG_S, duration_s))
    if duration_s > LONG_S:
        first, more = _trial(job, SHORT_S), (duration_s - LONG_S) / (LONG_S - SHORT_S)
        seconds, size = (b + max(0.0, b - a) * more for a, b in zip(first, last, strict=True))
        last = (seconds, size)
    return max(last[0], at_least_s), last[1]


def _trial(job: Job, duration_s: float) -> tuple[float, float]:
    """Make a shorter run, and return its time in s and its size in bytes."""
    scenario = job.scenario.model_copy(update={"duration_s": duration_s})
    options = replace(job.options, speed=0.0)
    with tempfile.TemporaryDirectory(prefix="lab-dry-run-") as place:
        folder = Path(place) / "run"
        began = time.monotonic()
        outcome = run_job(replace(job, scenario=scenario, options=options, out=folder), _ignore)
        seconds = time.monotonic() - began
        if outcome.exit_code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        if outcome.error:
            raise LabError(f"--dry-run: a trial of {job.name} failed: {outcome.error}")
        return seconds, float(_size(folder))


def _ignore(_: object) -> None:
    """Show no progress."""


def _size(folder: Path) -> int:
    """What a folder needs on the disk, in bytes: half of a file's last block is empty, on average.

    Sizes in whole blocks would not show that a small file grows.
    """
    sizes = [each.lstat().st_size for each in (folder, *folder.rglob("*"))]
    return sum(size + BLOCK_BYTES // 2 for size in sizes if size)
