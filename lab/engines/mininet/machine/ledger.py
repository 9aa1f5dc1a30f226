"""The ledger: a file that lists each resource a run makes, so that all can be removed later.

It has one JSON object per line. A resource is recorded before it is made, so it can be removed even
if the run is killed. The same removal runs at the normal end of a run and in the clean-up after a
kill, and removes only what the ledger lists.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.processes import start_time
from lab.engines.mininet.machine.undo import UNDO
from lab.errors import LabError

MACHINE = Path("/run/multipath-lab/ledger.jsonl")
TRIES, PAUSE_S = 3, 1.0  # for resources whose removal fails at first


def user_ledger() -> Path:
    """Return the path of this user's ledger, which lists what a VM needs on this host.

    The resources of an emulation are in another ledger, `MACHINE`, which root writes: on this host,
    or inside the VM if the emulation runs there.
    """
    return upstreams.cache() / "vm" / "ledger.jsonl"


class Ledger:
    """Records and removes the resources that runs have made on this machine.

    Each entry has a kind (a key of `undo.UNDO`) and arguments:

    process pid | daemon program, word | bridges names | interface name | radio name
    radios prefix | namespace path (file on which it is mounted)
    qdisc device, handle ("root" or "clsact") | pin path (file or folder in a bpf file system)
    mount path | sysctl name, value | file path | folder path, only_if_empty
    """

    def __init__(self, path: Path = MACHINE) -> None:
        self.path = path

    def record(self, kind: str, **arguments: Any) -> None:
        """Append an entry; `kind` and `arguments` are those in the class docstring.

        To be called before the resource is made; for a process just after its start, because its
        PID is not known earlier. The start time of a process is recorded with its PID, so that a
        later process with the same PID is not killed. Raises `KeyError` for an unknown kind.
        """
        if kind not in UNDO:
            raise KeyError(f"'{kind}' cannot be undone: choose from {', '.join(sorted(UNDO))}")
        if kind == "process":
            arguments.setdefault("started", start_time(arguments["pid"]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as lines:
            lines.write(json.dumps({"kind": kind, **arguments}) + "\n")

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries, oldest first; none if there is no file.

        An incomplete last line, left by a killed run, is skipped: its resource was not made yet.
        Any other line that is not JSON raises `LabError`.
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
        """Remove the resource of every entry, newest first, and return the error messages.

        A line for each removed resource is appended to `report`. Failed removals are tried again,
        because commands time out on a busy machine. The kind `radios` comes last: by then the
        radios have left the hosts' network namespaces. If nothing failed, the ledger file is
        deleted.
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
            if self.path == MACHINE:
                with contextlib.suppress(OSError):  # another run has just begun to use it
                    self.path.parent.rmdir()
        return problems

    def _undo_once(self, removed: list[str]) -> list[str]:
        problems = []
        newest_first = self.entries()[::-1]
        for entry in sorted(newest_first, key=lambda each: each["kind"] == "radios"):
            arguments = {key: value for key, value in entry.items() if key != "kind"}
            try:
                done = UNDO[entry["kind"]](**arguments)
            except (LabError, OSError) as problem:
                name = next(iter(arguments.values()))
                problems.append(f"remove {entry['kind']} {name}: {problem}")
            else:
                removed += [done] if done else []
        return problems


def write_secret(path: Path, text: str, ledger: Ledger) -> None:
    """Write `text` into a new file that only its owner can read, and record it in the ledger."""
    ledger.record("file", path=str(path))
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
