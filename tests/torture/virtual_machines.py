"""VMs are killed at random moments: nothing may be left on this machine.

It runs only if it is named (`--only vm`), because it takes the whole machine. In each trial QEMU,
or the command that has started it, is killed while it boots, runs an emulation or ends.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from emulation.machine_state import processes

from lab.engines.mininet.machine import lock
from lab.engines.mininet.machine.processes import start_time
from lab.errors import LabError
from torture.campaign import Campaign, Counts, Failed

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "lab"]
LATEST_S = 30.0  # latest moment of the kill after the command holds the lock
ENDS_WITHIN_S, CLEANED_WITHIN_S = 60.0, 900.0
POLL_S = 0.2


class VirtualMachines(Campaign):
    name = "vm"
    what = "kill -9 of QEMU, or of the command that has started it, at random moments"
    hangs_after_s = 3600.0  # others use VMs, too
    in_turn = False

    def trial(self, rng: random.Random) -> Counts:
        out = self.folder / f"run-{rng.getrandbits(32)}"
        qemu_first, after_s = rng.random() < 0.5, rng.uniform(0, LATEST_S)
        log = out.with_suffix(".txt")
        argv = [*LAB, "run", "two_paths", "--engine", "mininet", "--vm", "--wait"]
        with log.open("w") as errors:
            command = subprocess.Popen(
                [*argv, "--duration", "5", "--quiet", "--out", str(out)], cwd=ROOT, stderr=errors
            )
        while command.poll() is None and not holds_lock(command.pid):
            time.sleep(POLL_S)
        time.sleep(after_s)
        machines = qemu_of(command.pid)
        killed = machines if qemu_first and machines else [command.pid]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        self.judge(command, out, log, killed)
        self.cleaned(machines, out)
        return Counts(1, 1)

    def judge(
        self, command: subprocess.Popen[bytes], out: Path, log: Path, killed: list[int]
    ) -> None:
        try:
            status = command.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            command.kill()
            raise Failed(f"no end within {ENDS_WITHIN_S:g} s after the kill of QEMU") from None
        if "Traceback" in log.read_text():
            raise Failed(log.read_text()[-300:])
        if command.pid in killed:
            return
        result = json.loads((out / "result.json").read_text())
        if (status == 0) != (result["status"] == "complete"):
            raise Failed(f"exit code {status}, but result.json says {result['status']}")

    def cleaned(self, machines: list[int], out: Path) -> None:
        """Clean up, and check that nothing is left. The start of the next VM cleans up, too."""
        deadline = time.monotonic() + CLEANED_WITHIN_S
        while True:
            done = subprocess.run(
                [*LAB, "clean"], cwd=ROOT, capture_output=True, text=True, check=False
            )
            running = [pid for pid in machines if start_time(pid) is not None]
            left = [str(each) for each in out.glob("vm/temporary")]
            if not running and not left:
                return
            if done.returncode != 3 or time.monotonic() > deadline:
                raise Failed(f"left: {running} {left}; clean: {done.stdout} {done.stderr}")
            time.sleep(1)


def holds_lock(pid: int) -> bool:
    try:
        holder = lock.holder()
    except LabError:
        return False
    return holder is not None and holder.pid == pid


def qemu_of(parent: int) -> list[int]:
    """PIDs of the QEMU processes among the descendants of a process."""
    family = {parent}
    for _ in range(3):
        family |= {pid for pid, _ in processes() if parent_of(pid) in family}
    return [pid for pid, argv in processes() if pid in family and b"qemu-system" in argv]


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


ALL = (VirtualMachines,)
