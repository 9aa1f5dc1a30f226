"""Find out whether the process that writes a run folder still exists.

The manifest identifies the process by three values: its process id, its start time (because ids are
reused) and the boot id of its kernel (because a process id inside a virtual machine means nothing
on the host). If the start time is unknown or the boot id is not that of this machine, the age of
the files decides: the process then counts as alive only if a file in its folder is less than 60 s
old.
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
    """Return the random id that the kernel chose when it booted; None if there is no /proc."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot.

    Return None if the process has ended, or if there is no /proc.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def alive(manifest: dict[str, Any], folder: Path) -> bool:
    """Return whether the process named in `manifest` still writes to the run folder `folder`.

    The module docstring says how this is decided.
    """
    pid = manifest.get("pid")
    if not isinstance(pid, int) or manifest.get("boot_id") != boot_id():
        return _fresh(folder)
    if manifest.get("pid_started") is not None:
        return bool(started(pid) == manifest["pid_started"])
    return exists(pid) and _fresh(folder)


def exists(pid: int) -> bool:
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
