"""Record every resource before it is made, so that it can be removed after any end of the run.

The ledger has one JSON object per line. A normal close and the clean-up after a kill are the same
`undo_all`, in reverse order. Nothing is removed that is not listed. A process is listed with its
start time, so that another process with a reused number is never mistaken for it. The file is
deleted when everything in it has been undone.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.processes import start_time
from lab.engines.mininet.machine.undo import UNDO, undo_radios
from lab.errors import LabError

MACHINE = Path("/run/multipath-lab/ledger.jsonl")
TRIES, PAUSE_S = 3, 1.0  # for what cannot be removed at once


def user_ledger() -> Path:
    """Return the ledger of a user who starts the VM; `MACHINE` is that of native runs, by root."""
    return upstreams.cache() / "vm" / "ledger.jsonl"


class Ledger:
    """Hold what exists because of a run.

    `kind` is one of the keys of `undo.UNDO`. Its arguments are:

    process pid | daemon program, word | bridge name | interface name | radio name
    radios prefix, count | qdisc device, handle ("root" or "clsact")
    pin path (file or folder in a bpf file system) | mount path | sysctl name, value
    file path | folder path
    """

    def __init__(self, path: Path = MACHINE) -> None:
        self.path = path

    def record(self, kind: str, **arguments: Any) -> None:
        """Record a resource before it is made; a process right after, when its number is known."""
        if kind not in UNDO and kind != "radios":
            raise KeyError(
                f"'{kind}' cannot be undone: choose from {', '.join(sorted([*UNDO, 'radios']))}"
            )
        if kind == "process":
            arguments.setdefault("started", start_time(arguments["pid"]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as lines:
            lines.write(json.dumps({"kind": kind, **arguments}) + "\n")

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries, oldest first.

        If a kill cut the last line short, the line is skipped: its resource was not made yet.
        """
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
                        f"read {self.path}: line {number} is no JSON. Read it, then delete it: "
                        f"sudo rm {self.path}"
                    ) from None
        return found

    def undo_all(self, report: list[str] | None = None) -> list[str]:
        """Undo all entries, newest first, and return the problems.

        `report` collects what was removed. Failed entries are retried, because commands time out on
        a busy machine. Radios come last: those of hosts return only after the hosts have ended. A
        second call finds nothing.
        """
        removed = report if report is not None else []
        problems = self._undo_once(removed)
        for _ in range(TRIES - 1):
            if not problems:
                break
            time.sleep(PAUSE_S)
            problems = self._undo_once(removed)
        if not problems:
            self.path.unlink(missing_ok=True)
        return problems

    def _undo_once(self, removed: list[str]) -> list[str]:
        problems = []
        entries = self.entries()[::-1]
        steps = [(UNDO[each["kind"]], each) for each in entries if each["kind"] != "radios"]
        steps += [(undo_radios, each) for each in entries if each["kind"] == "radios"]
        for undo, entry in steps:
            arguments = {key: value for key, value in entry.items() if key != "kind"}
            try:
                done = undo(**arguments)
            except (LabError, OSError) as problem:
                name = next(iter(arguments.values()))
                problems.append(f"remove {entry['kind']} {name}: {problem}")
            else:
                removed += [done] if done else []
        return problems
