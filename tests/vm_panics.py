"""Tell failures that a kernel panic of an emulated virtual machine has caused."""

from __future__ import annotations

from pathlib import Path

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
