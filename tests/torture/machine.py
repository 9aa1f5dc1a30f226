"""Campaigns on a machine that lacks something: disk, descriptors, memory, or a steady clock."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fake_engine import FakeEngine

from lab.results.store import Store
from lab.run.recorder import Recorder, new_folder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.loading import Overrides
from torture.campaign import Campaign, Counts, Failed, Impossible
from torture.http import KEY, app_with_runs, judge
from torture.kills import ROOT, copy_of_this_process

GETS = ("/api/runs", "/api/runs/one", "/runs", "/runs/one", "/api/runs/one/charts", "/healthz")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def in_a_copy(work: Callable[[], str]) -> str:
    """Do `work` in a fork of this process; return its text, or what went wrong."""
    reading, writing = os.pipe()

    def report() -> None:
        try:
            text = work()
        except BaseException as error:  # noqa: BLE001 - every exception is a finding
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode(errors="replace")[:4000])

    child = copy_of_this_process(report)
    os.close(writing)
    with open(reading, "rb") as file:
        text = file.read().decode()
    os.waitpid(child, 0)
    return text


class Disk(Campaign):
    name = "disk"
    what = "a disk that gets full, or is read-only"
    hangs_after_s = 20.0

    def prepare(self) -> None:
        if os.geteuid() != 0:
            raise Impossible("it needs root, to mount small disks")
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.mounted = False

    def trial(self, rng: random.Random) -> Counts:
        self.mount(f"size={rng.randrange(400, 900)}k")
        full = rng.random() < 0.7
        try:
            settings = ("duration_s=500", f"sample_interval_s={rng.choice((0.1, 0.5))}")
            scenario = loading.load("testbed_wifi_lte", Overrides(settings=settings))
            app = app_with_runs(self.disk)
            if full:
                self.fill(scenario)
            else:
                self.command("mount", "-o", "remount,ro", str(self.disk))
            client, headers = app.test_client(), {"Authorization": f"Bearer {KEY}"}
            for address in GETS:
                began = time.monotonic()
                answer = client.get(address, headers=headers)
                judge(answer.status_code, began, f"GET {address}")
                if answer.status_code != 200:
                    raise Failed(f"GET {address}: {answer.status_code} {answer.text[:200]}")
            answer = client.patch("/api/runs/one", json={"note": "x" * 3000}, headers=headers)
            if answer.status_code not in (200, 503):
                raise Failed(f"PATCH: {answer.status_code} {answer.text[:200]}")
        finally:
            self.finish()
        return Counts(len(GETS) + 2)

    def fill(self, scenario: object) -> None:
        folder = new_folder(scenario, runs=self.disk / "runs")
        outcome = run(scenario, FakeEngine(), Recorder(folder, scenario, "fake"))
        if outcome.exit_code not in (0, 4):
            raise Failed(f"exit code {outcome.exit_code}: {outcome.error}")
        result = json.loads((folder / "result.json").read_text())
        if (result["status"] == "complete") != (outcome.exit_code == 0):
            raise Failed(f"result.json says {result['status']}, exit code {outcome.exit_code}")

    def mount(self, options: str) -> None:
        self.command("mount", "-t", "tmpfs", "-o", options, "none", str(self.disk))
        self.mounted = True

    def command(self, *argv: str) -> None:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Impossible(done.stderr.strip())

    def finish(self) -> None:
        if getattr(self, "mounted", False):
            self.command("umount", "-l", str(self.disk))
            self.mounted = False


class Resources(Campaign):
    name = "resources"
    what = "too few file descriptors, or too little memory"
    hangs_after_s = 30.0

    def prepare(self) -> None:
        app_with_runs(self.folder)

    def trial(self, rng: random.Random) -> Counts:
        few = rng.random() < 0.6
        limit = rng.randrange(8, 24) if few else rng.randrange(1, 40) << 20

        def work() -> str:
            client = app_with_runs(self.folder).test_client()
            headers = {"Authorization": f"Bearer {KEY}"}
            for address in GETS:  # so that templates are loaded
                client.get(address, headers=headers)
            if few:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            else:
                size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
                resource.setrlimit(resource.RLIMIT_AS, (size + limit, size + limit))
            for address in GETS:
                status = client.get(address, headers=headers).status_code
                if status >= 500 and status != 503:
                    return f"GET {address}: {status}"
            return ""

        if problem := in_a_copy(work):
            raise Failed(f"{'descriptors' if few else 'memory'} {limit}: {problem}")
        store = Store(self.folder / "runs")
        store.refresh()
        statuses = {doc["id"]: doc["status"] for doc in store.all()}
        damaged = [path.name for path in self.folder.iterdir() if "damaged" in path.name]
        if damaged or statuses != {"one": "complete", "two": "complete"}:
            raise Failed(f"with {limit}: {damaged} {statuses}")
        return Counts(len(GETS))


class Clock(Campaign):
    name = "clock"
    what = "jumps of the clock during a run (needs libfaketime)"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        if not Path(FAKETIME).exists():
            raise Impossible("it needs libfaketime: sudo apt install faketime")

    def trial(self, rng: random.Random) -> Counts:
        out, stamp = self.folder / f"run-{rng.getrandbits(32)}", self.folder / "stamp"
        stamp.write_text("+0")
        environment = os.environ | {
            "LD_PRELOAD": FAKETIME,
            "FAKETIME_TIMESTAMP_FILE": str(stamp),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONPATH": str(ROOT),
        }
        argv = [sys.executable, "-m", "lab", "run", "two_paths", "--duration", "15"]
        process = subprocess.Popen(
            [*argv, "--quiet", "--set", "sample_interval_s=0.5", "--out", str(out)],
            env=environment,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        while process.poll() is None:
            time.sleep(rng.uniform(0.1, 0.5))
            stamp.write_text(f"{rng.randrange(-90_000, 90_000):+d}")
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        process.stderr.close()
        if process.returncode or "Traceback" in errors:
            raise Failed(f"status {process.returncode}: {errors[-300:]}")
        times = [json.loads(line)["t"] for line in (out / "samples.jsonl").read_text().splitlines()]
        if times != sorted(times) or len(times) != 30:
            raise Failed(f"samples at {times[:20]} ...")
        return Counts(1)


ALL = (Disk, Resources, Clock)
