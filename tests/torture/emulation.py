"""Emulations in a row inside one VM.

It runs only if it is named, because it takes the whole machine: `--only emulation --runs N`. Each
trial is one short run. In four of ten, one program of the run is killed at a random moment. After
each run, the VM must be as before. `--record FILE` appends one line of JSON per trial, and a later
campaign with the same seed and FILE goes on after the last one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torture.campaign import Campaign, Counts, Failed, Impossible
from torture.in_the_vm import RUNNER, WORDS, Job

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "data" / "torture"  # folders of runs in which something was wrong
KILLED = 0.4  # share of the runs with a victim; some victims end before they are killed
DURATION_S = 3
SMALL = (  # one user at one WiFi access point and one LTE base station
    "testbed_wifi_lte",
    *("--set", "topology.users=[{id: ue1, near: wifi, wifi_mbps: 42, lte_mbps: 46}]"),
    *("--set", "topology.multipath=[ue1]", "--set", "traffic=[{user: ue1, kind: bulk}]"),
)
WIRED = (
    *[("two_paths",)] * 3,
    ("two_paths", "--strategy", "loss_aware"),
    ("three_paths",),
)
WITH_CELLS = (
    *[(*SMALL, "--strategy", strategy) for strategy in ("none", "meter_throttling")],
    ("testbed_wifi_lte", "--strategy", "meter_throttling"),
    ("moving_users", "--set", "topology.users=3"),
)
NEED_CELLS = ("hostapd", "AP agent")
WIRED_SHARE = 0.7
# The victim is killed at most this long after its start. Open vSwitch and the runner are there
# from the start of the run.
LONGEST_WAIT_S = {RUNNER: 11.0, "ovs-vswitchd": 11.0}
WAIT_S = 5.0
BOOT = """
import ctypes, signal, sys
from pathlib import Path
from lab.engines.mininet import in_vm
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the campaign ends, however it ends
folder = sys.argv[1]
argv = [sys.executable, "-m", "torture.in_the_vm", folder]
sys.exit(in_vm.run_in_vm(in_vm.GuestCommand(argv, Path(folder)), wait=True))
"""
POLL_S = 0.3
SPECIAL = shutil.ignore_patterns("temporary", "*.sock", "ram")


def draw(rng: random.Random, number: int) -> Job:
    victim = rng.choice([*WORDS, RUNNER]) if rng.random() < KILLED else ""
    wired = victim not in NEED_CELLS and rng.random() < WIRED_SHARE
    scenario = rng.choice(WIRED if wired else WITH_CELLS)
    argv = [*scenario, "--duration", str(DURATION_S), "--seed", str(rng.randrange(1000))]
    after_s = round(rng.uniform(0, LONGEST_WAIT_S.get(victim, WAIT_S)), 1) if victim else 0.0
    return Job(number, argv, victim, after_s)


class Emulation(Campaign):
    name = "emulation"
    what = (
        "runs in a row in the virtual machine, killing hostapd, Open vSwitch, POX, agents, runner"
    )
    hangs_after_s = 900.0
    in_turn = False
    record: Path | None = None
    machines = 0  # started so far

    def prepare(self) -> None:
        """Start the VM, and wait until it waits for the first run."""
        self.machines += 1
        self.job, self.shared = 0, self.folder / f"vm-{self.machines}"
        self.shared.mkdir()
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        self.console = self.folder / "console.txt"
        with self.console.open("w") as console:
            self.vm = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(self.shared)],
                cwd=ROOT,
                env=environment,
                stdout=console,
                stderr=console,
            )
        try:
            self.wait_for("ready")
        except Failed as problem:
            raise Impossible(str(problem)) from problem

    def wait_for(self, name: str) -> Path:
        """Wait until the VM has written a file, and return its path."""
        file = self.shared / name
        while not file.exists():
            if self.vm.poll() is not None:
                errors = self.shared / "vm" / "errors.txt"
                inside = errors.read_text() if errors.exists() else ""
                text = f"the VM ended: {(inside + self.console.read_text())[-600:]}"
                print(text, file=sys.stderr, flush=True)
                self.keep(self.shared / "vm")
                raise Failed(text[-250:])
            time.sleep(POLL_S)
        return file

    def trial(self, rng: random.Random) -> Counts:
        """Make one run. If the VM has ended in the trial before, start another."""
        if self.vm.poll() is not None:
            self.prepare()
        self.job += 1
        job = draw(rng, self.job)
        draft = self.shared / "draft-of-job"
        draft.write_text(json.dumps(asdict(job)))
        draft.rename(self.shared / f"{self.job}.json")
        answer = json.loads(self.wait_for(f"{self.job}.answer.json").read_text())
        self.write(job, answer)
        what = f"{' '.join(job.argv)}"
        if job.victim:
            what += f", {job.victim} killed {job.after_s} s after its start"
        wrong = "; ".join(filter(None, (answer["problem"], *answer["left"][:5])))
        print(f"{what}: {wrong or 'as it should be'}", file=sys.stderr, flush=True)
        if wrong:
            self.keep(self.shared / str(self.job))
            raise Failed(f"{what}: {wrong}")
        return Counts(1, int(answer["killed"]))

    def write(self, job: Job, answer: dict[str, Any]) -> None:
        """Append what happened to the record."""
        if self.record:
            line = {"seed": self.seed, **asdict(job), **answer, "number": self.number}
            with self.record.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def keep(self, folder: Path) -> None:
        """Copy a folder that shows what was wrong to KEPT."""
        if folder.exists():
            name = f"{time.strftime('%H%M%S')}-{self.seed}-{self.number}"
            shutil.copytree(folder, KEPT / name, dirs_exist_ok=True, ignore=SPECIAL)

    def recorded(self, seed: int) -> int:
        """Number of the next trial of a seed, according to the record."""
        if not self.record or not self.record.exists():
            return 0
        lines = map(json.loads, self.record.read_text().splitlines())
        return max((line["number"] + 1 for line in lines if line["seed"] == seed), default=0)

    def finish(self) -> None:
        (self.shared / "over").touch()
        try:
            self.vm.wait(60)
        except subprocess.TimeoutExpired:
            self.vm.terminate()
            self.vm.wait(60)


ALL = (Emulation,)
