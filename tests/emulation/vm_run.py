"""Start a run in the VM by the command line, and follow it through its folder."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab.run import inbox
from lab.run.reading import read_events, read_samples
from vm import dilation

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = "testbed_wifi_lte"
WITHIN_S = 900  # s; long enough for any machine, as `bench` measures speed
POX, RUNNER = "python[^ ]* pox.py", "python[^ ]* -m lab run"


class Run:
    """A run that is followed through its folder; `console` is the file of its output."""

    def __init__(self, folder: Path, console: Path) -> None:
        self.folder, self.console, self.started = folder, console, time.monotonic()

    def over(self) -> bool:
        """True if it has ended, well or not."""
        raise NotImplementedError

    def wait_for(self, what: str, holds: Callable[[], Any]) -> Any:
        """First true result of `holds`; fails if the run ends before."""
        deadline = time.monotonic() + WITHIN_S
        while not (value := holds()):
            assert not self.over(), (
                f"the run ended while waiting for {what}: {self.end_of_output()}"
            )
            assert time.monotonic() < deadline, f"no {what} in {WITHIN_S} s: {self.end_of_output()}"
            time.sleep(0.1)
        return value

    def end_of_output(self) -> str:
        return self.console.read_text()[-3000:] if self.console.exists() else ""

    def finish(self) -> dict[str, Any]:
        """Wait until the run has ended, and return its result."""
        deadline = time.monotonic() + WITHIN_S
        while not self.over():
            assert time.monotonic() < deadline, f"no end in {WITHIN_S} s: {self.end_of_output()}"
            time.sleep(0.1)
        assert (self.folder / "result.json").exists(), self.end_of_output()
        return json.loads((self.folder / "result.json").read_text())

    def overloads(self) -> bool:
        """Wait until the run reports an overload or ends; true if it was overloaded."""
        deadline = time.monotonic() + WITHIN_S
        while not self.over():
            if (self.folder / "events.jsonl").exists() and any(
                event.get("overloaded") for event in self.events("warning")
            ):
                return True
            assert time.monotonic() < deadline, f"no end in {WITHIN_S} s: {self.end_of_output()}"
            time.sleep(0.5)
        return bool(self.finish()["overloaded"])

    def samples(self) -> list[dict[str, Any]]:
        return read_samples(self.folder) if (self.folder / "samples.jsonl").exists() else []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.folder) if event["kind"] == kind]

    def now(self) -> float:
        """Time of the latest sample."""
        return self.samples()[-1]["t"]

    def until(self, t: float) -> None:
        """Wait for a sample of time `t` or later."""
        self.wait_for(f"sample at {t} s", lambda: self.samples() and self.now() >= t)

    def flip(self, target: str, value: Any) -> None:
        inbox.send(self.folder, {"target": target, "value": value})

    def stop(self) -> None:
        inbox.send(self.folder, {"control": "stop"})

    def execute(self, host: str, command: str) -> str:
        argv = [
            sys.executable,
            "-m",
            "lab",
            "exec",
            str(self.folder),
            host,
            "--",
            "sh",
            "-c",
            command,
        ]
        return subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False
        ).stdout

    def meter_kbps(self, ap: str) -> int | None:
        """Rate of meter 1 on the wire, as Open vSwitch shows it."""
        shown = re.search(
            r"rate=(\d+)", self.execute("machine", f"ovs-ofctl -O OpenFlow13 dump-meters {ap}")
        )
        return int(shown.group(1)) if shown else None

    def decisions(self) -> list[dict[str, Any]]:
        """All complete lines of POX's decisions.jsonl."""
        text = (self.folder / "pox" / "decisions.jsonl").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def written_without_the_runner(self) -> tuple[int, int]:
        """Stop the runner for 12 s; return how many samples and lines of POX came in 7 of them."""
        self.execute("machine", stopped(RUNNER, 12, after=5))
        time.sleep(7 * dilation.factor())
        sampled, decided = len(self.samples()), len(self.decisions())
        time.sleep(7 * dilation.factor())
        return len(self.samples()) - sampled, len(self.decisions()) - decided


def run_argv(scenario: str, folder: Path, *arguments: str) -> list[str]:
    options = ["--engine", "mininet", "--out", str(folder), *arguments]
    return [sys.executable, "-m", "lab", "run", scenario, *options]


class VmRun(Run):
    """`run SCENARIO --engine mininet --vm`, in a VM of its own."""

    def __init__(self, folder: Path, *arguments: str, scenario: str = SCENARIO) -> None:
        argv = run_argv(scenario, folder, "--vm", "--wait", *arguments)
        super().__init__(folder, folder.with_suffix(".console.txt"))
        with self.console.open("w") as console:
            self.process = subprocess.Popen(argv, cwd=ROOT, stdout=console, stderr=console)

    def over(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        if not self.over():
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def signalled(pattern: str, name: str) -> str:
    """Shell command that sends a signal to the first process that matches."""
    return f"kill -{name} $(pgrep -f '^[^ ]*{pattern}' | head -1)"


def stopped(pattern: str, seconds: int, after: int = 0) -> str:
    """Shell command that stops a process for some seconds, `after` seconds from now.

    It works even for the process that would run the next command.
    """
    signals = f"sleep {after}; kill -STOP $P; sleep {seconds}; kill -CONT $P"
    return f"P=$(pgrep -f '^[^ ]*{pattern}' | head -1); ({signals}) >/dev/null 2>&1 &"


def mean(
    samples: list[dict[str, Any]],
    pick: Callable[[dict[str, Any]], float | None],
    start: float = 0,
    end: float = 1e9,
) -> float:
    """Mean of a figure over the time between `start` and `end`; None is left out.

    A sample stands for the time since the sample before it.
    """
    pairs = pairwise([{"t": 0.0}, *samples])
    weighted = [
        (value, each["t"] - before["t"])
        for before, each in pairs
        if start < each["t"] <= end and (value := pick(each)) is not None
    ]
    assert weighted, f"nothing was sampled between {start} and {end} s"
    return sum(value * s for value, s in weighted) / sum(s for _, s in weighted)
