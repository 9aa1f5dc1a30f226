"""Tell failures that a kernel panic of an emulated virtual machine has caused."""

from __future__ import annotations

from pathlib import Path

import pytest

VM_PANICKED = 75  # exit status: `./run_lab.sh test` then runs the failed tests once more


def panicked_consoles(folder: Path) -> list[Path]:
    """Return the files with kernel logs of virtual machines under `folder` that end in a panic.

    Without KVM, QEMU emulates the processors. Its faults can stop the guest's kernel during a run.
    """
    return [
        path
        for path in sorted(folder.rglob("console.txt"))
        if path.is_file() and "Kernel panic" in path.read_text(errors="replace")
    ]


def note_panics(session: pytest.Session, exitstatus: int) -> None:
    """Name the kernel panics of virtual machines if tests of the emulation failed, and let the
    session end with `VM_PANICKED`."""
    uses_machines = any(each.get_closest_marker("emulation") for each in session.items)
    if exitstatus != pytest.ExitCode.TESTS_FAILED or not uses_machines:
        return
    panicked = panicked_consoles(session.config._tmp_path_factory.getbasetemp())
    if panicked:
        print("\nthe kernel of a virtual machine panicked: " + ", ".join(map(str, panicked)))
        session.exitstatus = VM_PANICKED
