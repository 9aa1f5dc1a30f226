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

from lab import inbox
from lab.recorder import read_events, read_samples

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = "testbed_wifi_lte"


class VmRun:
    """`run SCENARIO --engine mininet --vm` with more arguments, in `folder`."""

    def __init__(self, folder: Path, *arguments: str, scenario: str = SCENARIO) -> None:
        self.folder, self.started = folder, time.monotonic()
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
            *arguments,
        ]
        self.console = folder.with_suffix(".console.txt")
        with self.console.open("w") as console:
            self.process = subprocess.Popen(argv, cwd=ROOT, stdout=console, stderr=console)

    def wait_for(self, what: str, holds: Callable[[], Any], timeout_s: float) -> Any:
        """What `holds` returns once it is true."""
        deadline = time.monotonic() + timeout_s
        while not (value := holds()):
            assert self.process.poll() is None, f"the run ended while waiting for {what}: {self.console.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"no {what} in {timeout_s} s: {self.console.read_text()[-1000:]}"
            time.sleep(0.1)
        return value

    def finish(self, timeout_s: float = 300) -> dict[str, Any]:
        """The result, once the run has ended."""
        self.process.wait(timeout_s)
        assert (self.folder / "result.json").exists(), self.console.read_text()[-3000:]
        return json.loads((self.folder / "result.json").read_text())

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def samples(self) -> list[dict[str, Any]]:
        return read_samples(self.folder) if (self.folder / "samples.jsonl").exists() else []

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.folder) if event["kind"] == kind]

    def now(self) -> float:
        """Time of the run: that of its latest sample."""
        return self.samples()[-1]["t"]

    def until(self, t: float) -> None:
        """Wait until the run has got to `t`."""
        self.wait_for(f"sample at {t} s", lambda: self.samples() and self.now() >= t, 150 + t)

    def flip(self, target: str, value: Any) -> None:
        inbox.send(self.folder, {"target": target, "value": value})

    def execute(self, host: str, command: str) -> str:
        """Run a shell command inside a host of the running emulation."""
        argv = [sys.executable, "-m", "lab", "exec", str(self.folder), host, "--", "sh", "-c", command]
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False).stdout

    def meter_kbps(self, ap: str) -> int | None:
        """The rate of meter 1 as Open vSwitch shows it."""
        shown = re.search(r"rate=(\d+)", self.execute("machine", f"ovs-ofctl -O OpenFlow13 dump-meters {ap}"))
        return int(shown.group(1)) if shown else None

    def decisions(self) -> list[dict[str, Any]]:
        """What POX wrote, by POX itself."""
        text = (self.folder / "pox" / "decisions.jsonl").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def mean(
    samples: list[dict[str, Any]], pick: Callable[[dict[str, Any]], float | None], start: float = 0, end: float = 1e9
) -> float:
    """The mean of a number of the samples with start < t <= end; where it is missing it does not count."""
    values = [value for each in samples if start < each["t"] <= end and (value := pick(each)) is not None]
    assert values, f"nothing was sampled between {start} and {end} s"
    return sum(values) / len(values)
