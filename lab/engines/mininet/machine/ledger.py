"""The ledger: a file that lists each resource a run makes, so that all can be removed later.

It has one JSON object per line. A resource is recorded before it is made, so it can be removed even
if the run is killed. Only listed resources are removed: at the end of a run, or later by `clean`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import open_vswitch, shell, upstreams
from lab.engines.mininet.machine.processes import running, start_time, stop
from lab.errors import CommandFailed, LabError

# Removing, with one function for each kind of resource.
#
# Each returns a text that names what it removed, or None if there was nothing to remove.


NET, RADIOS, SYSCTL = Path("/sys/class/net"), Path("/sys/class/ieee80211"), Path("/proc/sys")
NO_QDISC = ("No such file", "handle of zero", "Cannot find", "Invalid argument")  # errors of tc


def process(pid: int, started: int | None) -> str | None:
    """Kill the process with this PID and start time.

    If it was the last process in a network namespace, the kernel also removes the namespace.
    """
    return f"process {pid}" if stop(pid, started) else None


def namespace(path: str) -> str | None:
    """Unmount the network namespace of a host, after moving its radios to the caller's namespace.

    `path` is the file on which the namespace is mounted. The kernel would also return the radios,
    but only when it removes the namespace. Connections of killed programs can keep the namespace
    alive for a minute.
    """
    if path not in _mounted():
        Path(path).unlink(missing_ok=True)
        return None
    enter = ["nsenter", f"--net={path}"]
    for line in shell.run([*enter, "iw", "phy"], "list the radios of a host").splitlines():
        word, _, index = line.strip().partition(": ")
        if word == "wiphy index":
            argv = ["iw", f"phy#{index}", "set", "netns", str(os.getpid())]
            shell.run([*enter, *argv], "take a radio out of a host")
    done = mount(path)
    Path(path).unlink()
    return done


def daemon(program: str, word: str) -> str | None:
    """Kill every process of `program` that has `word` in one of its arguments.

    This is for daemons. They fork, so the ledger does not know their PIDs.
    """
    killed = [pid for pid in running(program, word) if stop(pid, start_time(pid))]
    return f"{program} {', '.join(map(str, killed))}" if killed else None


def bridges(names: list[str]) -> str | None:
    """Remove the named Open vSwitch bridges that exist, all by one command.

    With one command per bridge, a busy machine took ten seconds for each of twenty bridges. Raises
    `LabError` if the daemon ovs-vswitchd has ended: without the daemon, the kernel keeps the
    bridges.
    """
    if not open_vswitch.database_runs():
        return None
    listed = shell.run(["ovs-vsctl", "--timeout=60", "list-br"], "list the bridges").split()
    found = [name for name in names if name in listed]
    if not found:
        return None
    if not open_vswitch.daemon_runs():
        raise LabError(open_vswitch.ENDED)
    argv = [word for name in found for word in ("--", "--if-exists", "del-br", name)]
    open_vswitch.change(argv, f"remove the bridges {', '.join(found)}")
    return f"bridges {', '.join(found)}"


def interface(name: str) -> str | None:
    if not (NET / name).exists():
        return None
    try:
        shell.run(["ip", "link", "del", name], f"remove the interface {name}")
    except CommandFailed:
        if (NET / name).exists():  # else it ended with the namespace of its peer
            raise
    return f"interface {name}"


def radio(name: str) -> str | None:
    if not (RADIOS / name).exists():
        return None
    shell.run([str(upstreams.hwsim_mgmt()), "-x", name], f"remove the radio {name}")
    return f"radio {name}"


def radios(prefix: str) -> str | None:
    names = [each.name for each in sorted(RADIOS.glob(f"{prefix}*"))]
    for name in names:
        radio(name)
    return f"radios {', '.join(names)}" if names else None


def qdisc(device: str, handle: str = "root") -> str | None:
    if not (NET / device).exists():
        return None
    try:
        shell.run(
            ["tc", "qdisc", "del", "dev", device, handle], f"remove the {handle} qdisc of {device}"
        )
    except CommandFailed as problem:
        if any(words in problem.stderr for words in NO_QDISC):
            return None
        raise
    return f"{handle} qdisc of {device}"


def pin(path: str) -> str | None:
    """Delete a pinned eBPF program or map, or a folder with all pins in it."""
    return _delete(Path(path), "pin")


def mount(path: str) -> str | None:
    if path not in _mounted():
        return None
    shell.run(["umount", path], f"unmount {path}")
    return f"mount {path}"


def _mounted() -> set[str]:
    return {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}


def sysctl(name: str, value: str) -> str | None:
    """Set the sysctl `name` to `value`, the value that it had before the run."""
    setting = SYSCTL / name.replace(".", "/")
    if not setting.exists() or setting.read_text().split() == value.split():
        return None
    setting.write_text(value)
    return f"the change of {name}: {value} restored"


def file(path: str) -> str | None:
    return _delete(Path(path), "file")


def folder(path: str, only_if_empty: bool = False) -> str | None:
    """Delete a folder and its content. With `only_if_empty`, delete only an empty folder.

    `only_if_empty` is for folders that other programs use too.
    """
    if only_if_empty and any(Path(path).glob("*")):
        return None
    return _delete(Path(path), "folder")


def _delete(path: Path, kind: str) -> str | None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    else:
        return None
    return f"{kind} {path}"


UNDO: dict[str, Callable[..., str | None]] = {
    "process": process,
    "namespace": namespace,
    "daemon": daemon,
    "bridges": bridges,
    "interface": interface,
    "radio": radio,
    "radios": radios,
    "qdisc": qdisc,
    "pin": pin,
    "mount": mount,
    "sysctl": sysctl,
    "file": file,
    "folder": folder,
}


MACHINE = Path("/run/multipath-lab/ledger.jsonl")
TRIES, PAUSE_S = 3, 1.0  # for resources whose removal fails at first


def user_ledger() -> Path:
    """Return the path of this user's ledger, which lists what a VM needs on this host.

    The resources of an emulation are in another ledger, `MACHINE`. Root writes it on the machine
    where the emulation runs: this host, or the VM.
    """
    return upstreams.cache() / "vm" / "ledger.jsonl"


class Ledger:
    """Records and removes the resources that runs have made on this machine.

    Each entry has a kind (a key of `UNDO`) and arguments:

    - `process`: pid
    - `daemon`: program, word
    - `bridges`: names
    - `interface`, `radio`: name
    - `radios`: prefix of their names
    - `namespace`: path of the file on which the namespace is mounted
    - `qdisc`: device, handle ("root" or "clsact")
    - `pin`: path of a file or folder in a bpf file system
    - `mount`, `file`: path
    - `sysctl`: name, value
    - `folder`: path, only_if_empty
    """

    def __init__(self, path: Path = MACHINE) -> None:
        self.path = path

    def record(self, kind: str, **arguments: Any) -> None:
        """Append an entry. `kind` and `arguments` are those in the docstring of the class.

        Call this before the resource is made. A process is recorded just after its start, because
        its PID is not known earlier. The start time of a process is recorded with its PID, so that
        a later process with the same PID is not killed. Raises `KeyError` for an unknown kind.
        """
        if kind not in UNDO:
            raise KeyError(f"'{kind}' cannot be undone: choose from {', '.join(sorted(UNDO))}")
        if kind == "process":
            arguments.setdefault("started", start_time(arguments["pid"]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as lines:
            lines.write(json.dumps({"kind": kind, **arguments}) + "\n")

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries, oldest first; [] if there is no file.

        An incomplete last line is ignored: the run was killed while it wrote the line, before it
        made the resource. Any other line that is not JSON raises `LabError`.
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
        because commands time out on a busy machine. Entries of the kind `radios` come last, when
        the radios have left the hosts' network namespaces. The ledger file is deleted if nothing
        failed.
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
    """Write `text` into a new file that only its owner can read; record the file in the ledger."""
    ledger.record("file", path=str(path))
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
