"""Remove what earlier runs have left on this machine: `./run_lab.sh clean`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from lab.engines.mininet.machine import ledger, lock
from lab.engines.mininet.machine.processes import start_time, stop
from lab.errors import LabError, MachineLacks


def main(force: bool = False) -> int:
    """Remove every resource that is listed in a ledger. With `force`, first end the current run.

    A ledger is a file that lists what runs have made on the machine. Returns 0 if everything is
    removed, and 4 if something could not be removed. Returns 3 if a run is still going on, or if
    root is needed.
    """
    refusal = _refusal(force)
    if refusal:
        print(f"clean: {refusal}", file=sys.stderr)
        return MachineLacks.exit_code
    removed: list[str] = []
    problems = [each for path in _ledgers() for each in ledger.Ledger(path).undo_all(removed)]
    for line in removed:
        print(f"removed {line}")
    for line in problems:
        print(f"clean: {line}", file=sys.stderr)
    if not removed and not problems:
        print("nothing to clean")
    return LabError.exit_code if problems else 0


def _refusal(force: bool) -> str:
    """Return the reason why cleaning is impossible; "" if it is possible.

    With `force`, this function ends the current run, which holds the emulation lock.
    """
    holder = lock.holder()
    if holder and not force:
        return (
            f"{holder} is still running. Stop it first, or end it and remove all it made: "
            "./run_lab.sh clean --force"
        )
    if holder and not _end(holder.pid):
        return (
            f"{holder} does not end, or belongs to another user. "
            "Try: sudo ./run_lab.sh clean --force"
        )
    if ledger.MACHINE.exists() and os.geteuid() != 0:
        return f"{ledger.MACHINE} lists what root made. Try: sudo ./run_lab.sh clean"
    return ""


def _ledgers() -> tuple[Path, ...]:
    """Return the paths of the ledgers: root's ledger and the user's own.

    The user's ledger is left out inside the VM, because it lists resources of the host.
    """
    in_vm = bool(os.environ.get("MULTIPATH_LAB_VM"))
    return (ledger.MACHINE,) if in_vm else (ledger.MACHINE, ledger.user_ledger())


def _end(pid: int, timeout_s: float = 20) -> bool:
    """End a run with SIGTERM. After `timeout_s` seconds, end it with SIGKILL.

    Returns False if the run is still running or belongs to another user.
    """
    if pid <= 0:
        return False
    started = start_time(pid)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    deadline = time.monotonic() + timeout_s
    while start_time(pid) == started and time.monotonic() < deadline:
        time.sleep(0.1)
    stop(pid, started)
    return start_time(pid) != started
