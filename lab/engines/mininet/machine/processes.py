"""Find processes in /proc and kill them.

A process is identified by its PID and its start time, because the kernel reuses PIDs.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def start_time(pid: int) -> int | None:
    """Return the start of a process [clock ticks since boot]; None if it has ended.

    A zombie counts as ended.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the name before the bracket may contain anything; fields[0] is the state
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def stop(pid: int, started: int | None, timeout_s: float = 3) -> bool:
    """Kill a process with SIGKILL, and wait at most `timeout_s` seconds until it has ended.

    `started` is its start time. If the process has ended, or if another process now has its PID,
    this does nothing and returns False.
    """
    if started is None or start_time(pid) != started:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    deadline = time.monotonic() + timeout_s
    while start_time(pid) == started and time.monotonic() < deadline:
        time.sleep(0.01)
    return True


def running(program: str, word: str) -> list[int]:
    """Return the PIDs of the processes of `program` with `word` in one of their arguments."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, *arguments = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if Path(os.fsdecode(name)).name == program and any(
                word.encode() in each for each in arguments
            ):
                found.append(int(folder.name))
    return sorted(found)
