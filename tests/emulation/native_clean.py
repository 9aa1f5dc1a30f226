"""Check that runs leave nothing behind, as root on a machine that runs the emulation natively.

`python native_clean.py` kills a run at several moments, cleans up, and compares the machine with
its earlier state: interfaces, bridges, radios, qdiscs, namespaces, processes, mounts, settings,
files. Then it makes REPEATS short runs in a row (default 2). It prints a PASS line per check and
ends with 1 at the first FAIL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from emulation.machine_state import State, difference, leftovers, processes, state

from lab.engines.mininet.kernel.cell_maps import PINS

PROJECT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "lab"]
SCENARIO = ["testbed_wifi_lte", "--engine", "mininet", "--strategy", "meter_throttling"]
RUN = [*LAB, "run", *SCENARIO, "--quiet"]
START_S, CLEAN_S = 400, 20


def of_a_run(word: bytes) -> list[int]:
    return sorted(pid for pid, command in processes() if word in command)


class Run:
    def __init__(self, folder: Path, duration_s: float) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*RUN, "--duration", str(duration_s), "--out", str(folder)], cwd=PROJECT
        )

    def until(self, file: str, lines: int) -> None:
        """Wait until a file of the run has this many lines."""
        deadline = time.monotonic() + START_S
        while (
            not (self.folder / file).exists()
            or (self.folder / file).read_text().count("\n") < lines
        ):
            if self.process.poll() is not None or time.monotonic() > deadline:
                fail(
                    f"the run wrote {lines} lines into {file}",
                    f"status {self.process.poll()}; see {self.folder}/log.txt",
                )
            time.sleep(0.2)

    def until_event(self, text: str, within_s: float = 60) -> None:
        """Wait until an event of the run contains `text`."""
        deadline = time.monotonic() + within_s
        while text not in (self.folder / "events.jsonl").read_text():
            if time.monotonic() > deadline:
                fail(f"an event says '{text}'", f"see {self.folder}/events.jsonl")
            time.sleep(0.2)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def fail(check: str, why: str) -> None:
    print(f"FAIL {check}: {why}", flush=True)
    sys.exit(1)


def passed(check: str, holds: bool, why: str = "") -> None:
    if not holds:
        fail(check, why)
    print(f"PASS {check}", flush=True)


def untouched(check: str, before: State) -> None:
    left = leftovers(before)
    passed(check, not left, "; ".join(left[:20]))


def clean() -> None:
    """Clean up twice; the second time, with nothing to do, shows how long Python takes to start."""
    took_s = []
    for _ in range(2):
        began = time.monotonic()
        done = subprocess.run(
            [*LAB, "clean"], cwd=PROJECT, capture_output=True, text=True, check=False
        )
        took_s.append(time.monotonic() - began)
        passed("clean ends with 0", done.returncode == 0, done.stderr)
    what = f"clean waits for nothing: {took_s[0]:.1f} s, {took_s[1]:.1f} s with nothing to do"
    passed(what, took_s[0] - took_s[1] < CLEAN_S)


def killed_runner(before: State, runs: Path) -> None:
    run = Run(runs / "killed", 60)
    run.until("samples.jsonl", 6)
    run.kill()
    left = difference(before, state())
    passed(
        "a killed runner leaves a network",
        any("wifi1" in each for each in left),
        "there was nothing to clean",
    )
    clean()
    untouched("runner killed, clean: nothing is left", before)


def killed_parts(before: State, runs: Path) -> None:
    run = Run(runs / "parts", 60)
    run.until("samples.jsonl", 6)
    first = of_a_run(b"pox.py")[0]
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (now := of_a_run(b"pox.py")) in ([], [first]) and time.monotonic() < deadline:
        time.sleep(0.2)
    passed("a killed POX is restarted", bool(now) and now != [first])
    for word in (b"hostapd", b"mininet:ue1"):
        victims = of_a_run(word)
        passed(f"{word.decode()} is running", bool(victims))
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
    run.until_event("wifi1 has ended (hostapd)")
    passed("hostapd's end is an event", True)
    run.kill()
    clean()
    untouched("POX, hostapd, a host's shell and the runner killed, clean: nothing is left", before)


def killed_while_building(before: State, runs: Path) -> None:
    run = Run(runs / "building", 60)
    run.until("commands.sh", 12)
    run.kill()
    following = Run(runs / "following", 3)
    passed(
        "killed while it builds: the next run starts without clean",
        following.process.wait(START_S) == 0,
        f"see {following.folder}",
    )
    untouched("nothing of both runs is left", before)


def replayed(before: State, runs: Path) -> None:
    """Run commands.sh of the round `parts` again. Its network stays, so this is the last round."""
    script = (
        f"trap 'echo \"FAILED $BASH_COMMAND\"' ERR; . {runs}/parts/commands.sh; "
        "mnexec -a ${pid[ue1]} ip -brief address; mnexec -a ${pid[ue2]} ip mptcp endpoint; "
        "sleep 5; mnexec -a ${pid[ue1]} iw dev ue1-wlan0 link; "
        f"bpftool -j map dump pinned {PINS}/wifi1/stations"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAILED")]
    print(*failed[:20], done.stderr[-2000:], sep="\n")
    passed("commands.sh builds the network once more", not failed)
    there = difference(before, state())
    passed("its hosts have addresses", any("ue1-wlan0" in each for each in lines), done.stdout)
    passed("its stations are associated", "SSID: lab-wifi1" in done.stdout, done.stdout)
    stations = json.loads(lines[-1])
    passed("its WiFi cell has three stations with airtimes", len(stations) == 3, lines[-1])
    passed("its switches are there", any(each == "bridges: +wifi1" for each in there), str(there))


def stopped(before: State, runs: Path) -> None:
    run = Run(runs / "stopped", 60)
    run.until("samples.jsonl", 2)
    refused = subprocess.run(
        [*LAB, "clean"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    passed(
        "clean refuses while a run is running",
        refused.returncode == 3,
        refused.stdout + refused.stderr,
    )
    forced = subprocess.run(
        [*LAB, "clean", "--force"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    passed("clean --force ends the run", forced.returncode == 0, forced.stderr)
    passed("the run is marked interrupted", run.process.wait(30) == 130)
    untouched("nothing is left", before)


def in_a_row(before: State, runs: Path, repeats: int) -> None:
    for number in range(1, repeats + 1):
        run = Run(runs / f"row-{number}", 3)
        code = run.process.wait(START_S)
        passed(
            f"run {number} of {repeats} ends with 0",
            code == 0,
            f"status {code}, see {run.folder}/log.txt",
        )
        result = json.loads((run.folder / "result.json").read_text())
        passed(
            f"run {number} of {repeats} is Multipath TCP",
            bool(result["mptcp"]["verified"]),
            str(result["mptcp"]),
        )
        events = [
            json.loads(line) for line in (run.folder / "events.jsonl").read_text().splitlines()
        ]
        undone = [
            event["text"] for event in events if str(event.get("text", "")).startswith("undo:")
        ]
        passed(f"run {number} of {repeats} removes everything", not undone, "; ".join(undone))
        untouched(f"run {number} of {repeats} leaves nothing", before)


ROUNDS = {
    "runner": killed_runner,
    "parts": killed_parts,
    "building": killed_while_building,
    "stopped": stopped,
    "replay": replayed,
}


def main(wanted: list[str]) -> None:
    """Run all rounds, or those named; the name `row` means the runs in a row."""
    subprocess.run(["modprobe", "mac80211_hwsim", "radios=0"], check=True)
    before = state()
    passed(
        "the machine is clean at the start",
        not before["bridges"] and not before["processes"],
        str(before["processes"]),
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted or ["row", *ROUNDS]:
            began = time.monotonic()
            if name == "row":
                in_a_row(before, Path(folder), int(os.environ.get("REPEATS", "2")))
            else:
                ROUNDS[name](before, Path(folder))
            print(f"     {name}: {time.monotonic() - began:.0f} s", flush=True)
    print("PASS all", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
