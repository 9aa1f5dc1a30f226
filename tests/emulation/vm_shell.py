"""One VM for many runs, which it takes from a queue one after the other."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from emulation.vm_run import ROOT, WITHIN_S, Run, run_argv

WARM = ROOT / "vm" / "warm.sh"
QUEUE = """
n=1
until [ -e "$1/over" ]; do
    if [ -e "$1/$n.sh" ]; then
        bash "$1/$n.sh" >"$1/$n.txt" 2>&1 </dev/null
        : >"$1/$n.done"
        n=$((n + 1))
    else
        sleep 0.3
    fi
done
"""
BOOT = """
from pathlib import Path
from lab.engines.mininet import in_vm
in_vm.run_in_vm(in_vm.GuestCommand({argv!r}, Path({folder!r})), wait=True)
"""


class Queued(Run):
    """A run in a VM that was booted before."""

    def __init__(self, folder: Path, vm: VmShell, number: int) -> None:
        self._vm, self._done = vm, vm.folder / f"{number}.done"
        super().__init__(folder, vm.folder / f"{number}.txt")

    def over(self) -> bool:
        return self._done.exists() or self._vm.process.poll() is not None

    def kill(self) -> None:
        """End the run, and wait until it has cleaned up."""
        if not self.over():
            self.wait_for("inbox", lambda: (self.folder / "inbox").is_dir())
            self.stop()
            self.finish()


class VmShell:
    def __init__(self, folder: Path) -> None:
        self.folder, self._count = folder, 0
        self._latest: Queued | None = None
        script = folder / "queue.sh"
        script.write_text(QUEUE)
        self.console = folder / "vm.txt"
        code = BOOT.format(argv=["sh", str(script), str(folder)], folder=str(folder))
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], cwd=ROOT, stdout=console, stderr=console
            )

    def run(self, scenario: str, *arguments: str) -> Queued:
        """Start `run SCENARIO --engine mininet` with more arguments.

        A run that a failed test left is ended first.
        """
        if self._latest is not None:
            self._latest.kill()
        self._count += 1
        folder = self.folder / f"run{self._count}"
        argv = run_argv(scenario, folder, *arguments)
        command, output = shlex.join(argv), str(self.folder / f"{self._count}.txt")
        warm = shlex.join(["warm", f"run{self._count}", str(ROOT), output, output])
        self._put(
            f"[ -d /run/warm ] || exec {command}\n. {shlex.quote(str(WARM))}\n{warm} {command}"
        )
        self._latest = Queued(folder, self, self._count)
        return self._latest

    def command(self, text: str, within_s: float = WITHIN_S) -> str:
        """Output of shell commands in the project's folder.

        A run that a test left is ended first.
        """
        if self._latest is not None:
            self._latest.kill()
        self._count += 1
        self._put(text)
        done, deadline = self.folder / f"{self._count}.done", time.monotonic() + within_s
        while not done.exists():
            assert self.process.poll() is None, self.console.read_text()[-3000:]
            assert time.monotonic() < deadline, done.with_suffix(".txt").read_text()[-3000:]
            time.sleep(0.2)
        return done.with_suffix(".txt").read_text()

    def _put(self, text: str) -> None:
        draft = self.folder / "draft"
        draft.write_text(f"cd {shlex.quote(str(ROOT))}\n{text}\n")
        draft.rename(self.folder / f"{self._count}.sh")

    def close(self, within_s: float = 60) -> None:
        (self.folder / "over").touch()
        deadline = time.monotonic() + within_s
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


Finished = tuple[Queued, dict[str, Any]]
Case = tuple[str, ...]


def at_one_scale(
    vm: VmShell, scenario: str, cases: Sequence[Case], rate_scales: Iterable[float]
) -> dict[Case, Finished]:
    """Run all cases at the first of `rate_scales` at which none overloads this machine.

    An overloaded run proves nothing. Each is tried twice before all are repeated at the next scale.
    """
    for rate_scale in rate_scales:
        done: dict[Case, Finished] = {}
        for case in cases:
            finished = _not_overloaded(vm, scenario, case, rate_scale)
            if finished is None:
                break
            done[case] = finished
        else:
            print(f"rate_scale {rate_scale}")
            return done
    raise AssertionError(f"this machine is overloaded even at rate_scale={rate_scale}")


def _not_overloaded(vm: VmShell, scenario: str, case: Case, rate_scale: float) -> Finished | None:
    for _ in range(2):
        run = vm.run(scenario, *case, "--set", f"rate_scale={rate_scale}")
        if not run.overloads():
            return run, run.finish()
        run.kill()
    return None
