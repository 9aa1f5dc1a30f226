"""Runs are started as child processes and reached through their folders only."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dashboard.errors import Problem
from lab.batch import request as running
from lab.errors import RequestError, unknown
from lab.results.store import Store
from lab.run.manifest import ROOT
from lab.run.recorder import new_folder
from lab.scenario import catalogue
from lab.scenario import loading as scenario

SAID_WITHIN_S = 5.0  # a run that cannot start says so within this time
ENDS_WITHIN_S = 10.0


class StartRequest(BaseModel):
    """What POST /api/runs takes; what is left out is as the scenario file says."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
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
    """A run that was started here."""

    process: subprocess.Popen[bytes]
    folder: Path
    said: IO[bytes]
    waiter: threading.Thread = field(init=False)
    text: str = ""

    def told(self) -> str:
        """What a child that has ended wrote to standard error, without the prefix for terminals."""
        self.waiter.join(SAID_WITHIN_S)
        return self.text


class Launcher:
    """Starts runs, and ends those it started."""

    def __init__(self, store: Store, command: Sequence[str], most: int) -> None:
        self._store, self._most = store, most
        self._command = list(command) or [sys.executable, "-m", "lab"]
        self._children: dict[str, Child] = {}
        self._mutex = threading.Lock()

    def start(self, asked: StartRequest) -> str:
        """Check everything, then start; the new run's id."""
        job = checked(asked)
        with self._mutex:
            going = [
                run_id for run_id, child in self._children.items() if child.process.poll() is None
            ]
            if len(going) >= self._most:
                raise Problem(
                    429,
                    f"start {asked.scenario}: {len(going)} runs started here go on already. Wait, or stop one",
                )
            folder = new_folder(job, runs=self._store.runs_folder)
            child = self._spawn(
                [*self._command, *arguments(asked), "--quiet", "--out", str(folder)], folder
            )
            self._children[folder.name] = child
        self._until_begun(child)
        return folder.name

    def stop_all(self) -> None:
        """Interrupt every run started here, and wait for their results."""
        for child in self._children.values():
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGINT)
        for child in self._children.values():
            try:
                child.process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                child.process.kill()
            child.waiter.join(1)

    def _spawn(self, argv: list[str], folder: Path) -> Child:
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever waits for the child
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        }
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=env,
            start_new_session=True,
        )
        child = Child(process, folder, said)
        child.waiter = threading.Thread(
            target=self._wait, args=(child,), name=f"wait for {folder.name}", daemon=True
        )
        child.waiter.start()
        return child

    def _wait(self, child: Child) -> None:
        """Collect the child; keep what it said if it left no result to say it in."""
        child.process.wait()
        with child.said as said:
            said.seek(0)
            child.text = said.read(65_536).decode(errors="replace").strip().removeprefix("error: ")
        if (
            child.text
            and (child.folder / "manifest.json").exists()
            and not (child.folder / "result.json").exists()
        ):
            with (child.folder / "log.txt").open("a", encoding="utf-8") as log:
                log.write(child.text + "\n")

    def _until_begun(self, child: Child) -> None:
        """Return when the run has begun, or takes its time; raise what it says if it cannot start."""
        ends = time.monotonic() + SAID_WITHIN_S
        while time.monotonic() < ends and not (child.folder / "manifest.json").exists():
            code = child.process.poll()
            if code is not None and not (child.folder / "manifest.json").exists():
                told = child.told() or f"the run ended at once with status {code} and said nothing"
                remove_unused(child.folder)
                raise Problem({2: 422, 3: 409}.get(code, 500), told)
            time.sleep(0.02)


def checked(asked: StartRequest) -> Any:
    """The scenario to run, admitted by its engine; or an error, and nothing was started."""
    if asked.scenario not in scenario.names():
        raise RequestError(f"scenario {unknown(asked.scenario, scenario.names())}")
    known = {row["name"]: row for row in catalogue.engine_rows()}
    emulation = known.get(asked.engine, {}).get("real_time", False)
    jobs = running.checked(_request(asked))
    if emulation and not asked.vm and os.geteuid() != 0:
        command = shlex.join(["sudo", "./run_lab.sh", *arguments(asked)])
        raise Problem(
            409,
            f"start engine '{asked.engine}': it needs root, which this server has not. Paste into a terminal: {command}  "
            "The run appears here by itself. Or choose the virtual machine, which needs no root",
            command=command,
        )
    return jobs[0].scenario


def arguments(asked: StartRequest) -> list[str]:
    """The same request as arguments of the command line."""
    argv = ["run", asked.scenario, "--engine", asked.engine]
    argv += ["--vm"] if asked.vm else []
    options = (
        ("strategy", asked.strategy),
        ("cc", asked.cc),
        ("seed", asked.seed),
        ("duration", asked.duration_s),
    )
    for name, value in (*options, ("speed", asked.speed)):
        argv += (
            []
            if value is None
            else [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
        )
    for setting in _settings(asked):
        argv += ["--set", setting]
    return argv


def remove_unused(folder: Path) -> None:
    """Remove the folder of a run that never began; one with anything in it stays."""
    try:
        folder.rmdir()
    except OSError:
        return


def _request(asked: StartRequest) -> running.Request:
    speed = None if asked.speed is None else str(asked.speed)
    strategies = (asked.strategy,) if asked.strategy else ()
    return running.Request(
        scenario=asked.scenario,
        engine=asked.engine,
        strategies=strategies,
        cc=asked.cc,
        seed=asked.seed,
        duration_s=asked.duration_s,
        speed=speed,
        settings=_settings(asked),
        vm=asked.vm,
    )


def _settings(asked: StartRequest) -> tuple[str, ...]:
    params = {f"strategy.params.{name}": value for name, value in asked.params.items()}
    return tuple(f"{key}={json.dumps(value)}" for key, value in (params | asked.set).items())
