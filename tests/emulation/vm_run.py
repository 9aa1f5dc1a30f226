"""A run in the VM, seen from outside: started on the command line, followed through its folder."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.run import inbox
from lab.run.reading import read_events, read_samples

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = "testbed_wifi_lte"
WITHIN_S = 900  # any machine is faster; a test of speed is bench's affair
POX, RUNNER = "python[^ ]* pox.py", "python[^ ]* -m lab run"


class Run:
    """A run seen through its folder; `console` is what it prints."""

    def __init__(self, folder: Path, console: Path) -> None:
        self.folder, self.console, self.started = folder, console, time.monotonic()

    def over(self) -> bool:
        """Whether it has ended, well or not."""
        raise NotImplementedError

    def wait_for(self, what: str, holds: Callable[[], Any]) -> Any:
        """What `holds` returns once it is true."""
        deadline = time.monotonic() + WITHIN_S
        while not (value := holds()):
            assert not self.over(), f"the run ended while waiting for {what}: {self.said()}"
            assert time.monotonic() < deadline, f"no {what} in {WITHIN_S} s: {self.said()}"
            time.sleep(0.1)
        return value

    def said(self) -> str:
        """The end of what it printed."""
        return self.console.read_text()[-3000:] if self.console.exists() else ""

    def finish(self) -> dict[str, Any]:
        """The result, once the run has ended."""
        deadline = time.monotonic() + WITHIN_S
        while not self.over():
            assert time.monotonic() < deadline, f"no end in {WITHIN_S} s: {self.said()}"
            time.sleep(0.1)
        assert (self.folder / "result.json").exists(), self.said()
        return json.loads((self.folder / "result.json").read_text())

    def overloads(self) -> bool:
        """Whether it is too much for this machine: known at its end, or as soon as it says so."""
        deadline = time.monotonic() + WITHIN_S
        while not self.over():
            if (self.folder / "events.jsonl").exists() and any(
                event.get("overloaded") for event in self.events("warning")
            ):
                return True
            assert time.monotonic() < deadline, f"no end in {WITHIN_S} s: {self.said()}"
            time.sleep(0.5)
        return bool(self.finish()["overloaded"])

    def samples(self) -> list[dict[str, Any]]:
        return read_samples(self.folder) if (self.folder / "samples.jsonl").exists() else []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.folder) if event["kind"] == kind]

    def now(self) -> float:
        """Time of the run: that of its latest sample."""
        return self.samples()[-1]["t"]

    def until(self, t: float) -> None:
        """Wait until the run has got to `t`."""
        self.wait_for(f"sample at {t} s", lambda: self.samples() and self.now() >= t)

    def flip(self, target: str, value: Any) -> None:
        inbox.send(self.folder, {"target": target, "value": value})

    def stop(self) -> None:
        """Ask it to end now."""
        inbox.send(self.folder, {"control": "stop"})

    def execute(self, host: str, command: str) -> str:
        """Run a shell command inside a host of the running emulation."""
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
        """The rate of meter 1 as Open vSwitch shows it."""
        shown = re.search(
            r"rate=(\d+)", self.execute("machine", f"ovs-ofctl -O OpenFlow13 dump-meters {ap}")
        )
        return int(shown.group(1)) if shown else None

    def decisions(self) -> list[dict[str, Any]]:
        """What POX wrote, by POX itself."""
        text = (self.folder / "pox" / "decisions.jsonl").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def told_without_the_runner(self) -> tuple[int, int]:
        """Let the runner stand still for twelve seconds: samples written and lines said by POX in seven of them."""
        self.execute("machine", stopped(RUNNER, 12, after=5))
        time.sleep(7)
        sampled, told = len(self.samples()), len(self.decisions())
        time.sleep(7)
        return len(self.samples()) - sampled, len(self.decisions()) - told


class VmRun(Run):
    """`run SCENARIO --engine mininet --vm` with more arguments, in `folder`: a VM of its own."""

    def __init__(self, folder: Path, *arguments: str, scenario: str = SCENARIO) -> None:
        argv = [
            sys.executable,
            "-m",
            "lab",
            "run",
            scenario,
            "--engine",
            "mininet",
            "--vm",
            "--wait",
            "--out",
            str(folder),
        ]
        super().__init__(folder, folder.with_suffix(".console.txt"))
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                [*argv, *arguments], cwd=ROOT, stdout=console, stderr=console
            )

    def over(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        if not self.over():
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def signalled(pattern: str, name: str) -> str:
    """A shell command that sends a process a signal."""
    return f"kill -{name} $(pgrep -f '^[^ ]*{pattern}' | head -1)"


def stopped(pattern: str, seconds: int, after: int = 0) -> str:
    """A shell command that stops a process for so long, `after` seconds from now: even the one that would run the next command."""
    return f"P=$(pgrep -f '^[^ ]*{pattern}' | head -1); (sleep {after}; kill -STOP $P; sleep {seconds}; kill -CONT $P) >/dev/null 2>&1 &"


def mean(
    samples: list[dict[str, Any]],
    pick: Callable[[dict[str, Any]], float | None],
    start: float = 0,
    end: float = 1e9,
) -> float:
    """The mean of a number of the samples with start < t <= end; where it is missing it does not count."""
    values = [
        value for each in samples if start < each["t"] <= end and (value := pick(each)) is not None
    ]
    assert values, f"nothing was sampled between {start} and {end} s"
    return sum(values) / len(values)
