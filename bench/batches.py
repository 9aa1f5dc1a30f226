"""Measure how many short runs a batch makes per second, here and on a cluster of two workers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from lab.batch import jobs
from lab.batch.cluster import Cluster
from lab.batch.job import Job
from lab.batch.jobs import Executor
from lab.batch.request import Request, checked
from lab.batch.single import run_job
from lab.engines.sim import compiler
from lab.errors import LabError
from lab.run.manifest import ROOT
from lab.run.outcome import Outcome
from lab.run.reading import RESULTS

RUNS, WARM_UP = 240, 40  # the first ones load and compile
STARTS_WITHIN_S = 60


class Quiet:
    def run(self, job: Job) -> Outcome:
        return run_job(job, lambda _: None)

    def say(self, text: str) -> None:
        pass


def runs_per_s() -> tuple[float, float, float, float]:
    """Return the runs per second of wall time with one process, with two, and on a cluster of two
    workers on this machine; and the share of the second that the third lacks."""
    compiler.wait()
    one, two = (_rate(partial(jobs.side_by_side, at_once=n)) for n in (1, 2))
    with _two_workers() as address:
        cluster = _rate(Cluster(address))
    return one, two, cluster, 1 - cluster / two


def _rate(executor: Executor) -> float:
    with tempfile.TemporaryDirectory() as made:
        asked = Request("two_paths", "sim", repeat=RUNS, duration_s=1, keep=RESULTS, out=Path(made))
        ended_s = [time.perf_counter() for _ in _made(checked(asked), executor)]
    return (RUNS - WARM_UP) / (ended_s[-1] - ended_s[WARM_UP - 1])


def _made(asked: Sequence[Job], executor: Executor) -> Iterator[Outcome]:
    for _, outcome in jobs.run_each(asked, Quiet(), executor):
        if outcome.error:
            raise LabError(f"bench: {outcome.error}")
        yield outcome


@contextmanager
def _two_workers() -> Iterator[str]:
    """Start a scheduler and two workers. Yield the address of the scheduler."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "scheduler.json")
        started = [_dask("scheduler", "--port", "0", "--scheduler-file", str(file))]
        try:
            _until_there(file)
            address = str(json.loads(file.read_text())["address"])
            own = ("--nthreads", "1", "--local-directory", made)
            started += [_dask("worker", address, *own) for _ in range(2)]
            subprocess.run(
                [sys.executable, "-c", WAIT, address], check=True, timeout=STARTS_WITHIN_S
            )
            yield address
        finally:
            for each in reversed(started):
                each.terminate()
                each.wait()


WAIT = "import sys; from distributed import Client; Client(sys.argv[1]).wait_for_workers(2)"


def _dask(part: str, *arguments: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments]
    return subprocess.Popen(
        [*argv, "--host", "127.0.0.1", "--no-dashboard"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _until_there(file: Path) -> None:
    ends_s = time.monotonic() + STARTS_WITHIN_S
    while not (file.exists() and file.stat().st_size):
        if time.monotonic() > ends_s:
            raise LabError("bench: no Dask scheduler started. It needs locks/cluster.txt")
        time.sleep(0.05)
