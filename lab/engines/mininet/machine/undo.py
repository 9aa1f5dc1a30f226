"""Remove the resources that a ledger lists, with one function for each kind of resource.

Each function returns a text that names what it removed, or None if there was nothing to remove.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.engines.mininet.machine import open_vswitch, shell, upstreams
from lab.engines.mininet.machine.processes import running, start_time, stop
from lab.errors import CommandFailed, LabError

NET, RADIOS, SYSCTL = Path("/sys/class/net"), Path("/sys/class/ieee80211"), Path("/proc/sys")
NO_QDISC = ("No such file", "handle of zero", "Cannot find", "Invalid argument")  # errors of tc


def process(pid: int, started: int | None) -> str | None:
    """Kill the process with this PID and start time.

    This also ends the network namespace of a host without radios: the kernel removes a namespace
    after its last process has ended.
    """
    return f"process {pid}" if stop(pid, started) else None


def namespace(path: str) -> str | None:
    """Unmount the network namespace of a host, after moving its radios to the caller's namespace.

    `path` is the file on which the namespace is mounted. The kernel, too, returns the radios when
    it removes a namespace; but connections of killed programs can keep one alive for a minute.
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

    For daemons, which fork: the ledger does not know their PIDs.
    """
    killed = [pid for pid in running(program, word) if stop(pid, start_time(pid))]
    return f"{program} {', '.join(map(str, killed))}" if killed else None


def bridges(names: list[str]) -> str | None:
    """Remove those of the named Open vSwitch bridges that exist, all by one command.

    With one command per bridge, a busy machine took ten seconds for each of twenty bridges. Raises
    `LabError` if ovs-vswitchd has ended: without it the kernel keeps the bridges.
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
    """Set the sysctl `name` back to `value`, which it had before the run."""
    setting = SYSCTL / name.replace(".", "/")
    if not setting.exists() or setting.read_text().split() == value.split():
        return None
    setting.write_text(value)
    return f"the change of {name}: {value} restored"


def file(path: str) -> str | None:
    return _delete(Path(path), "file")


def folder(path: str, only_if_empty: bool = False) -> str | None:
    """Delete a folder and its content; with `only_if_empty`, only an empty one.

    The latter is for folders that other programs use too.
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
