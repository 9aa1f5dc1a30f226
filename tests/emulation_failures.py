"""Emulation tests that fail because of the machine: a kernel panic in the VM, or too slow
processors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

# Exit statuses with which `./run_lab.sh test` runs the failed tests once more.
VM_PANICKED = 75
MACHINE_TOO_SLOW = 76  # the clocks in the VM are then slowed
BUSY = 0.2  # mean idle share of the processors; from here on they are not why a run was overloaded


def panicked_consoles(folder: Path) -> list[Path]:
    """Console logs under `folder` that end in a kernel panic.

    Without KVM, QEMU emulates the processors. Its faults can stop the guest's kernel during a run.
    """
    return [
        path
        for path in sorted(folder.rglob("console.txt"))
        if path.is_file() and "Kernel panic" in path.read_text(errors="replace")
    ]


def slow_runs(folder: Path) -> list[Path]:
    """Results under `folder` of runs that were overloaded because the processors were busy.

    A run that a test overloads by stopping a process is not among them.
    """
    return [path for path in sorted(folder.rglob("result.json")) if _was_busy(path)]


def _was_busy(path: Path) -> bool:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        idle = result["overload"]["idle_share_mean"]
        return bool(result["overloaded"]) and result["engine"] == "mininet" and idle < BUSY
    except (OSError, ValueError, TypeError, KeyError):
        return False


def note_failures(session: pytest.Session, exitstatus: int) -> None:
    """Print what the machine has caused, and set the exit status to `VM_PANICKED` or
    `MACHINE_TOO_SLOW`."""
    uses_machines = any(each.get_closest_marker("emulation") for each in session.items)
    if exitstatus != pytest.ExitCode.TESTS_FAILED or not uses_machines:
        return
    folder = session.config._tmp_path_factory.getbasetemp()
    if panicked := panicked_consoles(folder):
        print("\nthe kernel of a virtual machine panicked: " + ", ".join(map(str, panicked)))
        session.exitstatus = VM_PANICKED
    elif slow := slow_runs(folder):
        print("\nthis machine was too slow for these runs: " + ", ".join(map(str, slow)))
        session.exitstatus = MACHINE_TOO_SLOW
