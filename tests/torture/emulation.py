"""A campaign of emulations in a row inside the virtual machine, a quarter of them killed.

It runs only if it is named, because it takes the whole machine: `--only emulation --runs N`. The
virtual machine is booted once; `python -m torture.emulation SEED RUNS` is what runs inside, as root.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture.campaign import Campaign, Counts, Failed

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "lab"]
VICTIMS = {  # a word in the command line of the process to kill
    "hostapd": b"hostapd",
    "ovs-vswitchd": b"ovs-vswitchd",
    "POX": b"pox.py",
    "AP agent": b"programs.ap_agent",
    "host agent": b"programs.host_agent",
    "runner": b"lab\0run",
}
STARTED_WITHIN_S, ENDS_WITHIN_S = 300, 300
DONE = "TORTURE "  # begins the line of JSON that ends the output


class Emulation(Campaign):
    name = "emulation"
    what = (
        "runs in a row in the virtual machine, killing hostapd, Open vSwitch, POX, agents, runner"
    )
    hangs_after_s = 6 * 3600.0
    in_turn = False
    runs = 4

    def trial(self, rng: random.Random) -> Counts:
        inside = f"PYTHONPATH={ROOT}:{ROOT / 'tests'} {sys.executable} -m torture.emulation"
        command = f"{inside} {rng.getrandbits(32)} {self.runs}"
        argv = [*LAB, "vm", "--", "sh", "-c", f"cd {ROOT} && {command}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
        print(done.stdout[-4000:], file=sys.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith(DONE)]
        if not lines:
            raise Failed(f"status {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
        found = json.loads(lines[-1].removeprefix(DONE))
        if found["failures"]:
            raise Failed("; ".join(found["failures"]))
        return Counts(found["runs"], found["kills"])


def inside(seed: int, runs: int) -> None:
    """Make the runs and print what was found. This happens inside the virtual machine."""
    from emulation.native_clean import difference, state

    rng, kills, failures = random.Random(seed), 0, []
    folder = Path(tempfile.mkdtemp())
    before = None
    for number in range(runs + 1):  # the first one only settles the machine
        victim = rng.choice(list(VICTIMS)) if number % 4 == 2 else None
        problem = one_run(folder / str(number), victim, rng)
        kills += victim is not None
        subprocess.run([*LAB, "clean"], cwd=ROOT, check=False, capture_output=True)
        if victim == "ovs-vswitchd":  # as an administrator would
            argv = ["ovs-vswitchd", "--pidfile", "--detach", "--log-file"]
            subprocess.run(argv, check=False, capture_output=True)
        time.sleep(3)
        after = state()
        leftovers = difference(before, after) if before else []
        before = after
        what = f"run {number}" + (f", {victim} killed" if victim else "")
        print(f"{what}: {problem or 'as it should be'}; left: {leftovers or 'nothing'}", flush=True)
        if problem or leftovers:
            failures.append(f"{what}: {problem} {leftovers[:5]}")
    print(DONE + json.dumps({"runs": runs, "kills": kills, "failures": failures}), flush=True)


def one_run(out: Path, victim: str | None, rng: random.Random) -> str:
    """Make one run, and kill `victim` in it. Return what is wrong, an empty text if nothing is."""
    argv = [*LAB, "run", "testbed_wifi_lte", "--engine", "mininet", "--quiet", "--duration", "6"]
    argv += ["--strategy", "meter_throttling", "--set", "rate_scale=0.1", "--out", str(out)]
    process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if victim:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not (out / "samples.jsonl").exists() or not (out / "samples.jsonl").stat().st_size:
            if process.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        time.sleep(rng.uniform(0, 4))
        kill(VICTIMS[victim])
    try:
        _, errors = process.communicate(timeout=ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"no end within {ENDS_WITHIN_S} s"
    if "Traceback" in errors:
        return errors[-300:]
    result = json.loads((out / "result.json").read_text()) if (out / "result.json").exists() else {}
    if victim is None and (process.returncode or result.get("status") != "complete"):
        return f"status {process.returncode}: {errors[-300:]}"
    if victim not in (None, "runner") and not result:
        return "there is no result.json"
    return ""


def kill(word: bytes) -> None:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if word in (folder / "cmdline").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)
                    return
            except OSError:
                continue


ALL = (Emulation,)

if __name__ == "__main__":
    inside(int(sys.argv[1]), int(sys.argv[2]))
