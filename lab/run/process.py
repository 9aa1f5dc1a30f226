"""Is the process that writes a run folder still there?

A process is named by its id, by when it was started (ids are used again) and by the boot it belongs to (a run in a virtual
machine has an id that means nothing outside). What is not known is judged by how fresh the folder is.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

PROC = Path("/proc")
QUIET_S = 60.0  # a folder of another machine in which nothing was written for so long is not being written
WRITTEN = ("samples.jsonl", "events.jsonl", "log.txt", "manifest.json")


@cache
def boot_id() -> str | None:
    """Names this boot of this kernel; None where there is no such thing."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """When a process was started, in clock ticks since the boot; None if it is gone, or where there is no /proc."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def alive(manifest: dict[str, Any], folder: Path) -> bool:
    """Whether the process that a manifest names still writes its folder."""
    pid = manifest.get("pid")
    if not isinstance(pid, int) or manifest.get("boot_id") != boot_id():
        return _fresh(folder)
    if manifest.get("pid_started") is not None:
        return bool(started(pid) == manifest["pid_started"])
    return exists(pid) and _fresh(folder)


def exists(pid: int) -> bool:
    """Whether there is a process with this id."""
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
