"""Find out whether the process that writes a run folder still runs.

A process is identified by its id, its start time (because ids are reused) and the boot of its
kernel (because an id inside a virtual machine means nothing outside). If these are unknown, or
belong to another boot, the process counts as running as long as its folder was written recently.
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
    """Return the id that the kernel has chosen for this boot; None if the kernel gives none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since the boot.

    None if the process has ended, or if there is no /proc.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def alive(manifest: dict[str, Any], folder: Path) -> bool:
    """Return whether the process named in a manifest still writes its run folder."""
    pid = manifest.get("pid")
    if not isinstance(pid, int) or manifest.get("boot_id") != boot_id():
        return _fresh(folder)
    if manifest.get("pid_started") is not None:
        return bool(started(pid) == manifest["pid_started"])
    return exists(pid) and _fresh(folder)


def exists(pid: int) -> bool:
    """Return whether a process with this id exists."""
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
