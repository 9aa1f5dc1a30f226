"""Processes by number and start time, read from /proc."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def start_time(pid: int) -> int | None:
    """When a process started [clock ticks since boot]; None if there is none, or only its remains.

    Number and start time together name a process for good; the number alone is given to another one later.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[
        2
    ].split()  # the name in front may hold anything; fields[0] is the state
    return None if fields[0] in "ZX" else int(fields[19])


def stop(pid: int, started: int | None, patience_s: float = 3) -> bool:
    """Kill this very process and wait until it is gone; was it there?"""
    if started is None or start_time(pid) != started:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    deadline = time.monotonic() + patience_s
    while start_time(pid) == started and time.monotonic() < deadline:
        time.sleep(0.01)
    return True


def running(program: str, word: str) -> list[int]:
    """The processes of this program that have a word in one of their arguments."""
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
