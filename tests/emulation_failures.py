"""Tell failures of emulation tests that the machine has caused: a panic, or too little speed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

# exit statuses: `./run_lab.sh test` then runs the failed tests once more
VM_PANICKED = 75
MACHINE_TOO_SLOW = 76  # with slower clocks in the VM
BUSY = 0.2  # the idle share of the processors in a whole run; at or above, another cause overloads


def panicked_consoles(folder: Path) -> list[Path]:
    """Return the files with kernel logs of virtual machines under `folder` that end in a panic.

    Without KVM, QEMU emulates the processors. Its faults can stop the guest's kernel during a run.
    """
    return [
        path
        for path in sorted(folder.rglob("console.txt"))
        if path.is_file() and "Kernel panic" in path.read_text(errors="replace")
    ]


def slow_runs(folder: Path) -> list[Path]:
    """Return the results of runs under `folder` that were overloaded by processors busy all along.

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
    """Name kernel panics and busy runs if tests of the emulation failed.

    Let the session end with `VM_PANICKED` or `MACHINE_TOO_SLOW`.
    """
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
