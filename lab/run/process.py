"""Find out whether the process that writes a run folder still exists, and send it signals.

The manifest identifies the process by three values: its process id, its start time (because ids are
reused) and the boot id of its kernel (because a process id inside a virtual machine means nothing
on the host). If the start time is unknown or the boot id is not that of this machine, the age of
the files decides: the process then counts as alive only if a file in its folder is less than 60 s
old. A manifest without a process id is damaged: such a run has no process.
"""

from __future__ import annotations

import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

PROC = Path("/proc")
Manifest = dict[str, Any]  # the content of manifest.json
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
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, or [] if the process has ended."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    fields = stat.rpartition(")")[2].split()
    return [] if fields[0] in "ZX" else fields


def alive(manifest: Manifest, folder: Path) -> bool:
    """Return whether the process named in `manifest` still writes to the run folder `folder`.

    The module docstring says how this is decided.
    """
    pid = manifest.get("pid")
    if not isinstance(pid, int):
        return False
    if manifest.get("boot_id") != boot_id():
        return _fresh(folder)
    if manifest.get("pid_started") is not None:
        return bool(started(pid) == manifest["pid_started"])
    return exists(pid) and _fresh(folder)


def is_suspended(manifest: Manifest) -> bool:
    """Return whether a signal, such as SIGSTOP or that of Ctrl-Z, has suspended the process named
    in `manifest`. It then makes no progress until it is continued."""
    return _is_here(manifest) and _stat(manifest["pid"])[:1] == ["T"]


def send(manifest: Manifest, number: signal.Signals) -> bool:
    """Send a signal to the process named in `manifest`. Return whether it was sent.

    Nothing is sent if the process has ended, even if another process has its id now, if it runs on
    another machine, or if it is this process. Raise `PermissionError` if the process belongs to
    another user.
    """
    if not hasattr(os, "pidfd_open") or manifest.get("pid") == os.getpid():
        return False
    if not _is_here(manifest):
        return False
    try:
        process = os.pidfd_open(manifest["pid"])
    except ProcessLookupError:
        return False
    try:
        if not _is_here(manifest):  # the id was given to another process before it was opened
            return False
        signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(process)
    return True


def _is_here(manifest: Manifest) -> bool:
    pid, began = manifest.get("pid"), manifest.get("pid_started")
    return (
        isinstance(pid, int)
        and began is not None
        and manifest.get("boot_id") == boot_id()
        and started(pid) == began
    )


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fresh(folder: Path) -> bool:
    """Return whether a file of a run was written less than `QUIET_S` ago.

    A time that lies further in the future is no sign of life: the clock was put back after that
    write.
    """
    times = []
    for name in WRITTEN:
        try:
            times.append((folder / name).stat().st_mtime)
        except OSError:
            continue
    return any(abs(time.time() - each) < QUIET_S for each in times)
