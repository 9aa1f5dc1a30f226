"""Processes are killed at random moments: nothing that was finished may be lost.

Most of the killed processes are forks of this one, so that a kill costs milliseconds and not a
start of Python. `programs` kills the real programs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from fake_engine import FakeEngine, Slow

from lab.results.store import Store
from lab.run.reading import read_document, readable_events, readable_samples
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.loading import Overrides
from torture.campaign import Campaign, Counts, Failed
from torture.http import KEY, app_with_runs, finished_run

ROOT = Path(__file__).resolve().parents[2]


def copy_of_this_process(work: Callable[[], None]) -> int:
    """Fork a process that does `work`; return its PID."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # idle threads do not matter here
        child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        work()
    finally:
        os._exit(0)


def kill_later(child: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class Runners(Campaign):
    name = "runners"
    what = "kill -9 of a process that writes a run"

    def prepare(self) -> None:
        self.runs = self.folder / "runs"
        settings = ("duration_s=30", "sample_interval_s=0.1")
        self.scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
        finished_run(self.runs / "finished")
        self.number = 0

    def trial(self, rng: random.Random) -> Counts:
        self.number += 1
        folder = self.runs / f"killed-{self.number}"
        engine = Slow() if rng.random() < 0.5 else FakeEngine()

        def work() -> None:
            folder.mkdir()
            run(self.scenario, engine, Recorder(folder, self.scenario, "fake"))

        kill_later(copy_of_this_process(work), rng.uniform(0, 0.15))
        store = Store(self.runs)
        store.refresh()
        if store.recovered:
            raise Failed(store.recovered)
        found = {doc["id"]: doc for doc in store.all()}
        if found.get("finished", {}).get("status") != "complete":
            raise Failed("the finished run is lost")
        if (folder / "result.json").exists():
            read_document(folder, "result.json")
            if found[folder.name]["status"] != "complete":
                raise Failed(f"a complete run is {found[folder.name]['status']}")
        elif folder.exists() and (folder / "manifest.json").exists():
            read_document(folder, "manifest.json")
            if found[folder.name]["status"] != "cut":
                raise Failed(f"a killed run is {found[folder.name]['status']}")
        for name, lines in (
            ("samples.jsonl", list(readable_samples(folder))),
            ("events.jsonl", list(readable_events(folder))),
        ):
            text = (folder / name).read_bytes() if (folder / name).exists() else b""
            if len(lines) != text.count(b"\n"):
                raise Failed(f"{name}: {text.count(10)} lines, {len(lines)} readable")
        shutil.rmtree(folder, ignore_errors=True)
        return Counts(1, 1)


class Stores(Campaign):
    name = "stores"
    what = "kill -9 of the web process while it changes, indexes and deletes runs"

    def prepare(self) -> None:
        app_with_runs(self.folder)

    def trial(self, rng: random.Random) -> Counts:
        runs, spare = self.folder / "runs", self.folder / "runs" / "spare"
        if not spare.exists():
            shutil.copytree(runs / "two", spare)
        headers, problem = {"Authorization": f"Bearer {KEY}"}, self.folder / "problem"

        def work() -> None:
            client = app_with_runs(self.folder).test_client()
            for n in range(10_000):
                made = client.patch("/api/runs/one", json={"note": str(n)}, headers=headers)
                listed = client.get("/api/runs", headers=headers)
                if (made.status_code, listed.status_code) != (200, 200):
                    problem.write_text(f"{made.text} {listed.text}")
                if n == 5:
                    client.delete("/api/runs/spare", headers=headers)
                if n % 3 == 0:
                    Store(runs).reindex()

        kill_later(copy_of_this_process(work), rng.uniform(0, 0.25))
        if problem.exists():
            raise Failed(problem.read_text())
        store = Store(runs)
        store.refresh()
        if store.recovered:
            raise Failed(store.recovered)
        statuses = {doc["id"]: doc["status"] for doc in store.all()}
        if statuses.pop("spare", "complete") != "complete":
            raise Failed("a run is half deleted")
        if statuses != {"one": "complete", "two": "complete"}:
            raise Failed(f"finished runs are lost: {statuses}")
        json.loads((runs / "one" / "note.json").read_text()) if (
            runs / "one" / "note.json"
        ).exists() else 0
        return Counts(1, 1)


class Programs(Campaign):
    name = "programs"
    what = "kill -9 of the real simulator and dashboard"
    hangs_after_s = 60.0

    def trial(self, rng: random.Random) -> Counts:
        data = self.folder / "data"
        out = data / "runs" / f"run-{rng.getrandbits(32)}"
        argv = [sys.executable, "-m", "lab", "run", "two_paths", "--duration", "20", "--quiet"]
        argv += ["--speed", "10", "--out", str(out)]
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
        log = self.folder / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(argv, env=environment, stderr=errors, cwd=ROOT)
        until = time.monotonic() + 20
        while not (out / "samples.jsonl").exists() and time.monotonic() < until:
            if process.poll() is not None:
                raise Failed(f"the run ended: {log.read_text()[-300:]}")
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 1.5))
        process.kill()
        process.wait()
        store = Store(data / "runs")
        store.refresh()
        status = store.get(out.name)["status"]
        if status not in ("cut", "complete"):
            raise Failed(f"a killed run is {status}")
        if "Traceback" in log.read_text():
            raise Failed(log.read_text()[-300:])
        return Counts(1, 1)


ALL = (Runners, Stores, Programs)
