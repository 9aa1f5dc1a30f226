"""Leave nothing behind: every resource is written down before it is made, and undone from what was written.

One JSON object per line. A normal close and the clean-up after a kill are the same `undo_all`, in reverse order. Only
what is listed is ever touched. A process is listed with its start time, so that another one with a recycled number is
never taken for it. The list is deleted when all of it is undone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import lock, upstreams
from lab.engines.mininet.machine.processes import start_time, stop
from lab.engines.mininet.machine.undo import UNDO, undo_radios
from lab.errors import LabError, MachineLacks

MACHINE = Path("/run/multipath-lab/ledger.jsonl")
TRIES, PAUSE_S = 3, 1.0  # of what cannot be removed at once


def own() -> Path:
    """The list of a user who starts the VM; what is native belongs to root and is listed in `MACHINE`."""
    return upstreams.cache() / "vm" / "ledger.jsonl"


class Ledger:
    """What exists because of a run. `kind` is one of the keys of `undo.UNDO`, `what` are its arguments.

    process pid | daemon program, word | bridge name | interface name | radio name | radios prefix, count
    qdisc device, handle ("root" or "clsact") | pin path (file or folder in a bpf file system) | mount path
    sysctl name, value | file path | folder path
    """

    def __init__(self, path: Path = MACHINE) -> None:
        self.path = path

    def record(self, kind: str, **what: Any) -> None:
        """Write down a resource before it is made (a process: right after, its number is not known before)."""
        if kind not in UNDO and kind != "radios":
            raise KeyError(
                f"'{kind}' cannot be undone: choose from {', '.join(sorted([*UNDO, 'radios']))}"
            )
        if kind == "process":
            what.setdefault("started", start_time(what["pid"]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as lines:
            lines.write(json.dumps({"kind": kind, **what}) + "\n")

    def entries(self) -> list[dict[str, Any]]:
        """What is listed, oldest first. A last line cut short by a kill names nothing that was made."""
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return []
        found = []
        for number, line in enumerate(lines, 1):
            try:
                found.append(json.loads(line))
            except ValueError:
                if number < len(lines):
                    raise LabError(
                        f"read {self.path}: line {number} is no JSON. Look at it, then delete it: sudo rm {self.path}"
                    ) from None
        return found

    def undo_all(self, report: list[str] | None = None) -> list[str]:
        """Undo everything, newest first; the problems met. `report` collects what was removed.

        What fails is tried again, because a busy machine lets commands time out. Radios come last: those inside hosts come
        home only once the hosts are gone. A second call finds nothing.
        """
        removed = report if report is not None else []
        problems = self._undone(removed)
        for _ in range(TRIES - 1):
            if not problems:
                break
            time.sleep(PAUSE_S)
            problems = self._undone(removed)
        if not problems:
            self.path.unlink(missing_ok=True)
        return problems

    def _undone(self, removed: list[str]) -> list[str]:
        """Every entry tried once; the problems met."""
        problems = []
        entries = self.entries()[::-1]
        steps = [(UNDO[each["kind"]], each) for each in entries if each["kind"] != "radios"]
        steps += [(undo_radios, each) for each in entries if each["kind"] == "radios"]
        for undo, entry in steps:
            what = {key: value for key, value in entry.items() if key != "kind"}
            try:
                done = undo(**what)
            except (LabError, OSError) as problem:
                problems.append(f"remove {entry['kind']} {next(iter(what.values()))}: {problem}")
            else:
                removed += [done] if done else []
        return problems


def clean(force: bool = False) -> int:
    """`./run_lab.sh clean`: remove what runs left behind. 0 done; 3 a run lives and `force` was not given, or root is needed; 4 something stayed."""
    living = lock.holder()
    if living and not force:
        print(
            f"clean: {living} is still running. Stop it first, or with all it made: ./run_lab.sh clean --force",
            file=sys.stderr,
        )
        return MachineLacks.exit_code
    if living and not _end(living.pid):
        print(
            f"clean: {living} does not end, or is another user's. Try: sudo ./run_lab.sh clean --force",
            file=sys.stderr,
        )
        return MachineLacks.exit_code
    removed: list[str] = []
    problems: list[str] = []
    if MACHINE.exists() and os.geteuid() != 0:
        print(
            f"clean: {MACHINE} lists what root made. Try: sudo ./run_lab.sh clean", file=sys.stderr
        )
        return MachineLacks.exit_code
    for path in _lists():
        problems += Ledger(path).undo_all(removed)
    for line in removed:
        print(f"removed {line}")
    for line in problems:
        print(f"clean: {line}", file=sys.stderr)
    if not removed and not problems:
        print("nothing to clean")
    return LabError.exit_code if problems else 0


def _lists() -> tuple[Path, ...]:
    """What this machine has lists of. Inside the VM the user's own one is of the machine around it: hands off."""
    return (MACHINE,) if os.environ.get("MULTIPATH_LAB_VM") else (MACHINE, own())


def _end(pid: int, patience_s: float = 20) -> bool:
    """End a run: ask it to stop, wait while it tidies up after itself, then kill it."""
    if pid <= 0:
        return False
    started = start_time(pid)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    deadline = time.monotonic() + patience_s
    while start_time(pid) == started and time.monotonic() < deadline:
        time.sleep(0.1)
    stop(pid, started)
    return start_time(pid) != started
