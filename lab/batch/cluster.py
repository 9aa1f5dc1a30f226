"""Make the runs of a batch on a cluster of Dask. The machines need no common disk.

A task is a job, and its result is the run folder, both packed as bytes. A run is complete when its
folder on this machine is, whatever the scheduler says. So the same command continues a batch after
anything: a lost worker, a lost scheduler, or the end of this process.

https://distributed.dask.org
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import lab
from lab import extensions, installed, sudo
from lab.batch.job import Job
from lab.batch.jobs import Executor, kept, killed, signals_as_ctrl_c
from lab.batch.single import run_job
from lab.engines import registry
from lab.errors import LabError, MachineLacks, RequestError
from lab.run.outcome import Outcome
from lab.run.recorder import keep_inputs, new_folder
from lab.scenario import engine_table
from lab.scenario.loading import input_files

if TYPE_CHECKING:
    from distributed import Client, Future
else:
    Future = Any  # Dask is imported when it is needed

INSTALL = (
    installed.how_to_add("cluster")
    or ".venv/bin/python -m pip install --require-hashes -r locks/cluster.txt"
)
VM = {"vm": 1}  # the resource of workers that make emulations
CONNECTS_WITHIN_S = 10  # the scheduler, and then a worker
FOR_EACH_WORKER = 4  # tasks: one is made, the next ones are there when it ends
COUNT_EVERY_S = 5.0
MOST_BYTES = 1 << 30  # of a run folder
Workers = dict[str, dict[Any, Any]]  # by address, as the scheduler describes them
Build = tuple[str, str]  # the version, and the digest of the sources


class OtherBuild(LabError):
    """A worker has other sources than the process that gave it a task."""


@cache
def present_build() -> Build:
    return lab.__version__, installed.sources_sha256()


@dataclass(frozen=True)
class Cluster:
    """Makes runs on the workers of the scheduler at `address`. It is an `lab.batch.jobs.Executor`.

    Raise `MachineLacks` without Dask, and `RequestError` if there is no scheduler, if no worker can
    make the runs, or if a worker has other sources.
    """

    address: str

    def __call__(
        self, jobs: Sequence[Job], left: Sequence[int], run: Callable[[Job], Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        if not left:
            return
        with _connected(self.address) as client, signals_as_ctrl_c():
            emulates = any(engine_table.entry(jobs[n].engine).real_time for n in left)
            _check_workers(client, self.address, emulates)
            try:
                yield from _made(client, jobs, left)
            except KeyboardInterrupt:  # unfinished tasks end with the connection
                return
            except _Lost as lost:
                raise LabError(
                    f"--cluster {self.address}: the connection to the scheduler is lost. "
                    f"{lost.complete} runs of this command are complete and kept. Start the "
                    "scheduler and its workers again, and type the same command"
                ) from None


def executor(address: str | None) -> Executor | None:
    """Return what makes the runs of a batch at this address, or None for this machine."""
    return Cluster(address) if address else None


class _AtOnce:
    """How many tasks to give to a cluster at a time. It grows when workers join."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._count, self._until_s = FOR_EACH_WORKER, 0.0

    def now(self) -> int:
        if time.monotonic() >= self._until_s:
            with suppress(OSError):  # a lost connection shows in the tasks
                workers = len(self._client.scheduler_info(n_workers=-1)["workers"])
                self._count = FOR_EACH_WORKER * max(1, workers)
            self._until_s = time.monotonic() + COUNT_EVERY_S
        return self._count


class _Lost(Exception):
    def __init__(self, complete: int) -> None:
        super().__init__()
        self.complete = complete


def _made(
    client: Client, jobs: Sequence[Job], left: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """Give tasks to the cluster, a few at a time, and write each run that comes back. Yield
    (number, outcome) of each."""
    from distributed import CancelledError, KilledWorker, as_completed
    from distributed.comm import CommClosedError

    waiting, running = iter(left), dict[Future, int]()
    completed = as_completed([], loop=client.loop)

    at_once = _AtOnce(client)

    def give() -> None:
        for n in islice(waiting, max(0, at_once.now() - len(running))):
            future = _given(client, jobs[n])
            running[future] = n
            completed.add(future)

    give()
    for complete, future in enumerate(completed):
        n = running.pop(future)
        try:
            outcome = _written(jobs[n], future.result())
        except KilledWorker:
            outcome = killed(jobs[n])
        except ModuleNotFoundError as error:
            raise LabError(
                f"--cluster: a worker that joined later has no module '{error.name}': install the "
                "lab there, or set PYTHONPATH to a clone of it, and type the same command"
            ) from error
        except (CancelledError, CommClosedError):
            raise _Lost(complete) from None
        yield n, outcome
        future.release()
        give()


def _given(client: Client, job: Job) -> Future:
    emulates = engine_table.entry(job.engine).real_time
    packed = pickle.dumps(replace(job, out=Path(_name(job))))
    return client.submit(
        _task(),
        present_build(),
        pickle.dumps(extensions.registered()),
        packed,
        key=f"{job.scenario.name}-{os.urandom(8).hex()}",  # the scheduler keeps the part before "-"
        pure=False,
        **({"resources": VM} if emulates else {}),
    )


def _name(job: Job) -> str:
    if job.out is None:
        raise RequestError("--cluster: add --out DIR, a folder for the runs")
    return job.out.name


# In a worker


@cache
def _task() -> Callable[[Build, bytes, bytes], bytes]:
    """Return a function that calls `make` in a worker. The scheduler unpacks the function, but it
    need not have the lab."""

    def task(build: Build, files: bytes, packed: bytes) -> bytes:
        from lab.batch import cluster

        return cluster.make(build, files, packed)

    return task


def make(build: Build, files: bytes, packed: bytes) -> bytes:
    """Make one run, and return its folder, packed. This is called in a worker.

    `files` are the user's registered files, packed. They must be registered before the job is
    unpacked, because it may have objects of their classes.
    """
    if build != present_build():
        from distributed import get_worker

        name = f"worker {get_worker().name}"  # it joined after the others were checked
        raise OtherBuild(f"--cluster: {_difference(name, present_build(), build)}")
    extensions.only(pickle.loads(files))  # noqa: S301 - as the job
    job: Job = pickle.loads(packed)  # noqa: S301 - who can reach a scheduler can run anything
    registry.load_laws(job.engine)
    with tempfile.TemporaryDirectory(prefix="lab-cluster-") as place:
        folder = Path(place, _name(job))
        outcome = run_job(replace(job, out=folder), lambda _: None)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise LabError(
                f"run {job.name}: its folder has {size / 1e6:.0f} MB; a cluster returns at most "
                f"{MOST_BYTES / 1e6:.0f}: add --keep results, or make it on one machine"
            )
        return pickle.dumps((outcome.exit_code, outcome.error, outcome.result, _packed(folder)))


def _packed(folder: Path) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return into.getvalue()


# On this machine


def _written(job: Job, returned: bytes) -> Outcome:
    """Write the folder of a run, which appears at once, and return its outcome. Raise `LabError` if
    the worker has made another run than it was asked for."""
    code, error, result, packed = pickle.loads(returned)  # noqa: S301 - as in `make`
    folder = job.out
    assert folder is not None
    try:
        _unpacked(job, packed, folder)
    except OSError as problem:
        raise LabError(
            f"record the run in {folder}: {problem.strerror or problem}. The runs before it are "
            "kept: free space, or end other commands with this folder, and type the same command"
        ) from problem
    if not code and not result["overloaded"] and kept(job) is None:
        raise LabError(
            f"--cluster: {folder} is not the run that was asked for: on the worker, a file that "
            "your own code reads is missing or is another one"
        )
    return Outcome(result, folder, code, error)


def _unpacked(job: Job, packed: bytes, folder: Path) -> None:
    """Write the folder of a run beside its place, and then move it there."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    new_folder(job.scenario, part)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for name in archive.namelist():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise LabError(f"--cluster: a worker returned a file called {name}")
        archive.extractall(part)
    keep_inputs(part, input_files(job.scenario, job.engine))  # they were not on the worker
    sudo.give_away(part)
    part.rename(folder)


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        from distributed import Client
    except ImportError:
        raise MachineLacks(
            f"--cluster needs Dask, which is not installed. Type: {INSTALL}"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are said here
    try:
        client = Client(address, timeout=CONNECTS_WITHIN_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise RequestError(
            f"--cluster {address}: no scheduler answers there ({error}). Start one, for example "
            "with: dask scheduler"
        ) from None
    with client:
        yield client


def _check_workers(client: Client, address: str, emulates: bool) -> None:
    """Raise `RequestError` if one of the workers cannot make the runs."""
    workers = _workers(client, emulates)
    if workers is None:
        what = " with the resource vm=1, which emulations need" if emulates else ""
        raise RequestError(
            f"--cluster {address}: it has no worker{what}. Start one: see docs/cluster.md"
        )
    if several := [each["name"] for each in workers.values() if each["nthreads"] > 1]:
        raise RequestError(
            f"--cluster {address}: worker {several[0]} has several threads, and a thread can make "
            "no run beside another. Start workers with --nthreads 1"
        )
    for where, found in client.run(_build_of_worker(), on_error="return").items():
        if found != present_build():
            name = f"worker {workers.get(where, {}).get('name', where)}"
            raise RequestError(f"--cluster {address}: {_difference(name, found, present_build())}")


def _workers(client: Client, emulates: bool) -> Workers | None:
    """Return the workers as the scheduler describes them, once one can make the runs; None if none
    comes within `CONNECTS_WITHIN_S`."""
    until_s = time.monotonic() + CONNECTS_WITHIN_S
    while time.monotonic() < until_s:
        workers: Workers = client.scheduler_info(n_workers=-1)["workers"]
        if any(each["resources"].get("vm") or not emulates for each in workers.values()):
            return workers
        time.sleep(0.2)
    return None


def _build_of_worker() -> Callable[[], Build | None]:
    """Return a function that also a worker without the lab can receive."""

    def build() -> Build | None:
        try:
            from lab.batch import cluster
        except ImportError:
            return None
        return cluster.present_build()

    return build


def _difference(who: str, theirs: object, ours: Build) -> str:
    if not isinstance(theirs, tuple):
        return f"{who} has no lab: install it there, or set PYTHONPATH to a clone of it"
    what = "version" if theirs[0] != ours[0] else "sources of version"
    return (
        f"{who} has {what} {theirs[0]} ({theirs[1][:12]}), and this is {ours[0]} ({ours[1][:12]}): "
        "install the same on both"
    )
