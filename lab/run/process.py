"""Find out whether the process that writes a run folder still exists.

A process is identified by its id, its start time (ids are reused) and the boot it belongs to (the
id of a process in a virtual machine means nothing outside). Where these are unknown, a folder
that was written lately counts as being written.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

PROC = Path("/proc")
QUIET_S = 60.0  # without a write for so long, the process on another machine has ended
WRITTEN = ("samples.jsonl", "events.jsonl", "log.txt", "manifest.json")


@cache
def boot_id() -> str | None:
    """Return the id of this boot of the kernel; None where it has none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the boot.

    None if it has ended, or without /proc.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def alive(manifest: dict[str, Any], folder: Path) -> bool:
    """Tell whether the process that a manifest names still writes its folder."""
    pid = manifest.get("pid")
    if not isinstance(pid, int) or manifest.get("boot_id") != boot_id():
        return _fresh(folder)
    if manifest.get("pid_started") is not None:
        return bool(started(pid) == manifest["pid_started"])
    return exists(pid) and _fresh(folder)


def exists(pid: int) -> bool:
    """Tell whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fresh(folder: Path) -> bool:
    times = []
    for name in WRITTEN:
        try:
            times.append((folder / name).stat().st_mtime)
        except OSError:
            continue
    return bool(times) and time.time() - max(times) < QUIET_S
