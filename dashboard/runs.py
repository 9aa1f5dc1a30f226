"""Starts and stops runs as child processes of the dashboard."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

from pydantic import Field

from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from lab.batch import request as planning
from lab.errors import RequestError, show, unknown
from lab.isolation import python
from lab.results.documents import tolerant_document
from lab.results.store import UNFINISHED, Store
from lab.run.lanes import LANES
from lab.run.manifest import ROOT, STARTED_BY
from lab.run.recorder import new_folder
from lab.scenario import catalogue, code_paths, loading
from lab.scenario.schema import Scenario

REPORTS_WITHIN_S = 5.0  # a run that cannot start reports it within this time
RACE_WITHIN_S = 60.0  # the page of a race needs all of its lanes
ENDS_WITHIN_S = 10.0
POLL_S = 0.02
MOST_ERROR_BYTES = 65_536
MOST_SETTING_BYTES = 100_000  # an argument of a program has at most 131072
PAGE = "page"  # `started_by` in the manifest of a run that a page has started


class StartRequest(Body):
    """The body of POST /api/runs.

    A value that is left out is taken from the scenario file.
    """

    scenario: str = Field(description="a name from /api/scenarios")
    strategy: str | None = Field(None, description="a name from /api/strategies")
    params: dict[str, Any] = Field({}, description="parameters of the strategy")
    cc: str | None = Field(None, description="congestion control")
    set: dict[str, Any] = Field(
        {}, description='any key of the scenario by its path, such as {"topology.multipath": []}'
    )
    engine: str = Field("sim", description="sim or mininet")
    vm: bool = Field(False, description="run the emulation inside a virtual machine")
    seed: int | None = Field(None, ge=0, le=2**32 - 1)
    duration_s: float | None = Field(None, gt=0, le=86_400)
    speed: float | Literal["max"] | None = Field(
        None, description="simulated time over real time, or max; sim only"
    )


@dataclass
class Child:
    """A run that the server started: its process and its run folder. Or a batch: a process that
    makes `runs` runs at once; then `folder` has the id of the batch as its name, and is not there.

    `errors` is the file to which the process writes its standard error. When the process has ended,
    `text` has the content of this file, without the prefix `error: `.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    errors: IO[bytes]
    runs: int = 1
    waiter: threading.Thread = field(init=False)
    text: str = ""

    def error_text(self) -> str:
        """Wait until the process has ended, but at most `REPORTS_WITHIN_S`. Return its standard
        error.

        The prefix `error: ` is removed.
        """
        self.waiter.join(REPORTS_WITHIN_S)
        return self.text


class Launcher:
    """Starts runs as child processes, and stops them. `start` and `begin` refuse a run if `most`
    runs are in progress.

    `command` starts the lab; if it is empty, `python -m lab` is used. `extension_folders` have the
    user's own strategies and so on; runs get them through `--with`.
    """

    def __init__(
        self,
        store: Store,
        command: Sequence[str],
        most: int,
        extension_folders: Iterable[str] = (),
    ) -> None:
        self._store, self._most = store, most
        self._command = list(command) or python("-m", "lab")
        self._with = [word for folder in extension_folders for word in ("--with", folder)]
        self._children: dict[str, Child] = {}
        self._mutex = threading.RLock()
        self._ends = False
        self._estimating: subprocess.Popen[bytes] | None = None

    def start(self, request: StartRequest) -> str:
        """Check the request, start the run and return its id.

        Raise an error and start nothing if the request is refused or too many runs are in progress.
        """
        return self.begin(checked(request), arguments(request))

    def begin(self, scenario: Scenario, argv: Sequence[str]) -> str:
        """Start a run, wait until it has begun, and return its id.

        `argv` are the arguments of the lab, without the run folder. Raise a `Problem` if too many
        runs are in progress or the run cannot start.
        """
        with self._mutex:
            self._refuse_too_many(scenario.name, 1)
            folder = new_folder(scenario, runs=self._store.runs_folder)
            child = self.launch([*argv, "--quiet", "--out", str(folder)], folder)
        self._wait_for_start(child)
        return folder.name

    def begin_race(self, lanes: Sequence[tuple[Scenario, Sequence[str]]]) -> list[str]:
        """Start runs that stay together in simulated time, wait until all have begun, and return
        their ids.

        A lane is a scenario and the arguments of the lab. If one cannot start, none goes on. Raise
        a `Problem` if too many runs are in progress or a run cannot start.
        """
        with self._mutex:
            self._refuse_too_many(lanes[0][0].name, len(lanes))
            folders = [new_folder(each, runs=self._store.runs_folder) for each, _ in lanes]
            names = {LANES: ",".join(each.name for each in folders)}
            children = [
                self.launch([*argv, "--quiet", "--out", str(folder)], folder, names)
                for (_, argv), folder in zip(lanes, folders, strict=True)
            ]
        try:
            for child in children:
                self._wait_for_start(child, RACE_WITHIN_S)
        except Problem:
            for child in children:
                if child.process.poll() is None:
                    interrupt(child.process)
            raise
        return [each.name for each in folders]

    def begin_batch(self, batch_id: str, argv: Sequence[str], at_once: int) -> Child:
        """Start the process of a batch, which makes at most `at_once` runs side by side. Return at
        once.

        Raise a `Problem` if too many runs are in progress for even one more.
        """
        with self._mutex:
            self._end_estimate()
            self._refuse_too_many(batch_id, 1)
            at_once = min(at_once, self._most - self._running())
            words = [*argv, "--at-once", str(at_once)]
            child = self.launch(words, self._store.runs_folder / batch_id)
            child.runs = at_once
        return child

    def estimate(self, argv: Sequence[str]) -> str:
        """Run the lab with `argv`, and return its standard output. It ends an estimate that is
        still going on.

        Raise a `Problem` with the error text if it fails.
        """
        with self._mutex:
            self._end_estimate()
            if self._ends:
                raise Problem(503, "estimate: the dashboard is ending")
            process = self._estimating = subprocess.Popen(
                self.command(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        output, errors = process.communicate()
        if process is not self._estimating:
            raise Problem(409, "estimate: something newer took its place")
        if process.returncode:
            text = errors[:MOST_ERROR_BYTES].decode(errors="replace").strip()
            status = {2: 422, 3: 409}.get(process.returncode, 503)
            raise Problem(status, text.removeprefix("error: ") or "estimate: it failed")
        return output.decode()

    def _end_estimate(self) -> None:
        if self._estimating and self._estimating.poll() is None:
            interrupt(self._estimating)
        self._estimating = None

    def launch(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Child:
        """Start the lab with `argv`, which makes a run in `folder`. Return at once.

        The number of runs in progress is not checked. Raise a `Problem` after `stop_all`.
        """
        with self._mutex:
            if self._ends:
                text = "start a run: the dashboard is ending. Start the dashboard again"
                raise Problem(503, text)
            child = self._spawn(self.command(argv), folder, environment)
            self._children[folder.name] = child
        return child

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that starts the lab with the arguments `argv`."""
        return [*self._command, *argv, *self._with]

    def stop_all(self) -> None:
        """Stop every run that this launcher started, wait until all have ended, and start no more.

        A run that has not ended within `ENDS_WITHIN_S` is killed.
        """
        with self._mutex:
            self._ends = True
            self._end_estimate()
            children = list(self._children.values())
        for child in children:
            if child.process.poll() is None:
                interrupt(child.process)
        for child in children:
            try:
                child.process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                child.process.kill()
            child.waiter.join(1)

    def _running(self) -> int:
        """Return how many runs of the page are in progress. Those that an earlier server started
        count, too, also if their process is suspended."""
        self._store.refresh()
        mine = [each for each in self._children.values() if each.process.poll() is None]
        batches = {each.folder.name for each in mine}
        unknown = [
            doc["id"]
            for doc in self._store.all()
            if doc["status"] in UNFINISHED
            and doc["id"] not in self._children
            and batch_of(doc["id"])[0] not in batches
        ]
        manifests = (
            tolerant_document(self._store.runs_folder / run_id / "manifest.json")
            for run_id in unknown
        )
        earlier = [each for each in manifests if each and each.get("started_by") == PAGE]
        return len(earlier) + sum(each.runs for each in mine)

    def _refuse_too_many(self, name: str, wanted: int) -> None:
        running = self._running()
        if running + wanted > self._most:
            more = "" if wanted == 1 else f", and a race of {wanted} makes more than {self._most}"
            text = f"start {name}: {running} runs are running already{more}. Wait, or "
            raise Problem(429, text + "stop one")

    def _spawn(self, argv: list[str], folder: Path, environment: Mapping[str, str]) -> Child:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - `_wait` closes it
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT), STARTED_BY: PAGE, **environment},
            start_new_session=True,
        )
        child = Child(process, folder, errors)
        child.waiter = threading.Thread(
            target=self._wait, args=(child,), name=f"wait for {folder.name}", daemon=True
        )
        child.waiter.start()
        return child

    def _wait(self, child: Child) -> None:
        """Wait until the process has ended, and store its standard error.

        If the run began but has no result, also append the error to log.txt in the run folder.
        """
        child.process.wait()
        with child.errors as errors:
            errors.seek(0)
            text = errors.read(MOST_ERROR_BYTES).decode(errors="replace")
        child.text = text.strip().removeprefix("error: ")
        began = (child.folder / "manifest.json").exists()
        if child.text and began and not (child.folder / "result.json").exists():
            with (child.folder / "log.txt").open("a", encoding="utf-8") as log:
                log.write(child.text + "\n")

    def _wait_for_start(self, child: Child, within_s: float = REPORTS_WITHIN_S) -> None:
        """Wait until the run has begun, but at most `within_s`.

        If the process ends before that, raise its error text as a `Problem`.
        """
        ends = time.monotonic() + within_s
        manifest = child.folder / "manifest.json"
        while time.monotonic() < ends and not manifest.exists():
            code = child.process.poll()
            if code is not None and not manifest.exists():
                text = child.error_text() or f"the run ended with status {code} and no message"
                remove_unused(child.folder)
                raise Problem({2: 422, 3: 409}.get(code, 503), text)
            time.sleep(POLL_S)


def checked(request: StartRequest) -> Scenario:
    """Check the request, and return the scenario to run.

    Raise an error if the engine cannot run the scenario, if this server lacks root rights that the
    engine needs, or if the request contains the path of a code file.
    """
    refuse_code(request)
    _refuse_long(request)
    jobs = planning.checked(as_batch(request))
    refuse_without_root(request.engine, request.vm, arguments(request))
    return jobs[0].scenario


def refuse_without_root(engine: str, vm: bool, argv: Sequence[str]) -> None:
    """Raise a `Problem` with status 409 if `engine` needs root rights that this server lacks.

    The error contains the command to type instead. It is made from `argv`, the arguments of the
    lab.
    """
    real_time = {row["name"]: row["real_time"] for row in catalogue.engine_rows()}
    if real_time.get(engine) and not vm and os.geteuid() != 0:
        command = shlex.join(["sudo", "./run_lab.sh", *argv])
        raise Problem(
            409,
            f"start engine '{engine}': it needs root, and this server has no root rights. "
            f"Paste into a terminal: {command}  The run then appears here. "
            "Or choose the virtual machine, which needs no root",
            command=command,
        )


def arguments(request: StartRequest) -> list[str]:
    """Return the command-line arguments of the lab that start the requested run."""
    argv = ["run", request.scenario, "--engine", request.engine]
    argv += ["--vm"] if request.vm else []
    options = {
        "strategy": request.strategy,
        "cc": request.cc,
        "seed": request.seed,
        "duration": request.duration_s,
        "speed": request.speed,
    }
    for name, value in options.items():
        if value is not None:
            argv += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for setting in settings(request):
        argv += ["--set", setting]
    return argv


def run_name(batch_id: str, n: int) -> str:
    return f"{batch_id}.{n + 1:04d}"


def batch_of(run_id: str) -> tuple[str, int]:
    """Return the batch of a run and its place there, from 0, by the name of its folder. Another
    name leads to ("", -1)."""
    batch_id, dot, number = run_id.rpartition(".")
    if not dot or not (number.isascii() and number.isdecimal()):
        return "", -1
    return batch_id, int(number[:9]) - 1


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Send SIGINT to a run, and continue it if it is suspended, because it acts only then."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)


def remove_unused(folder: Path) -> None:
    """Remove the folder of a run that never began. Do nothing if the folder is not empty."""
    try:
        folder.rmdir()
    except OSError:
        return


def refuse_code(request: StartRequest) -> None:
    """Raise an error if the request or its scenario file contains the path of a code file."""
    doing = "start the run"
    names = {"scenario": request.scenario, "strategy": request.strategy, "cc": request.cc}
    code_paths.refuse_code_paths(names | {"params": request.params, "set": request.set}, doing)
    if request.scenario not in loading.names():
        raise RequestError(f"scenario {unknown(request.scenario, loading.names())}")
    loading.refuse_code_of_others(request.scenario, f"{doing}: scenario '{request.scenario}'")


def _refuse_long(request: StartRequest) -> None:
    for each in settings(request):
        if (size := len(each.encode())) > MOST_SETTING_BYTES:
            raise RequestError(
                f"start the run: {show(each.partition('=')[0])} has {size} bytes: at most "
                f"{MOST_SETTING_BYTES} are possible. Write a scenario file, and run it with "
                "./run_lab.sh run FILE"
            )


def as_batch(request: StartRequest) -> planning.Request:
    """Return the request in the form that `lab.batch` takes."""
    return planning.Request(
        scenario=request.scenario,
        engine=request.engine,
        strategies=(request.strategy,) if request.strategy else (),
        cc=request.cc,
        seed=request.seed,
        duration_s=request.duration_s,
        speed=None if request.speed is None else str(request.speed),
        settings=settings(request),
        vm=request.vm,
    )


def settings(request: StartRequest) -> tuple[str, ...]:
    """Return what the request changes in its scenario file, as arguments of `--set`."""
    params = {f"strategy.params.{name}": value for name, value in request.params.items()}
    return tuple(f"{key}={json.dumps(value)}" for key, value in (params | request.set).items())
