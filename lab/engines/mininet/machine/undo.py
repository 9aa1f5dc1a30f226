"""How each kind of resource is removed. Each function says what it removed, or nothing if it was gone already."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.processes import running, start_time, stop
from lab.errors import CommandFailed

NET, RADIOS, SYSCTL = Path("/sys/class/net"), Path("/sys/class/ieee80211"), Path("/proc/sys")
MANY = 1000
HOMECOMING_S = (
    5.0  # a namespace is dismantled in the background; its radios return at the end of that
)


def process(pid: int, started: int | None) -> str | None:
    """Kill a process of ours; a namespace goes with the last process inside."""
    return f"process {pid}" if stop(pid, started) else None


def daemon(program: str, word: str) -> str | None:
    """Kill what put itself into the background, known by a word among its arguments."""
    killed = [pid for pid in running(program, word) if stop(pid, start_time(pid))]
    return f"{program} {', '.join(map(str, killed))}" if killed else None


def bridges(names: list[str]) -> str | None:
    """All at once: of twenty, each by itself took a busy machine ten seconds."""
    if not _ovs_runs():
        return None
    listed = shell.run(["ovs-vsctl", "--timeout=60", "list-br"], "list the bridges").split()
    found = [name for name in names if name in listed]
    if not found:
        return None
    argv = [word for name in found for word in ("--", "--if-exists", "del-br", name)]
    shell.run(["ovs-vsctl", "--timeout=60", *argv], f"remove the bridges {', '.join(found)}")
    return f"bridges {', '.join(found)}"


def interface(name: str) -> str | None:
    if not (NET / name).exists():
        return None
    try:
        shell.run(["ip", "link", "del", name], f"remove the interface {name}")
    except CommandFailed:
        if (NET / name).exists():  # its peer's namespace may have taken it along meanwhile
            raise
    return f"interface {name}"


def radio(name: str) -> str | None:
    if not (RADIOS / name).exists():
        return None
    shell.run([str(upstreams.hwsim_mgmt()), "-x", name], f"remove the radio {name}")
    return f"radio {name}"


def undo_radios(prefix: str, count: int = MANY) -> str | None:
    """Remove all radios whose names start so: `count`, or fewer if the run was ended before it had made them.

    A radio of a dismantled namespace comes back to the machine, in a while that only the kernel knows: this ends when all
    have come, or none for `HOMECOMING_S`.
    """
    names: list[str] = []
    quiet_since = time.monotonic()
    while RADIOS.exists() and len(names) < count and time.monotonic() - quiet_since < HOMECOMING_S:
        for found in sorted(RADIOS.glob(f"{prefix}*")):
            radio(found.name)
            names.append(found.name)
            quiet_since = time.monotonic()
        time.sleep(0.05)
    return f"radios {', '.join(names)}" if names else None


def qdisc(device: str, handle: str = "root") -> str | None:
    if not (NET / device).exists():
        return None
    try:
        shell.run(
            ["tc", "qdisc", "del", "dev", device, handle], f"remove the {handle} qdisc of {device}"
        )
    except CommandFailed as problem:
        if any(
            words in problem.stderr
            for words in (
                "No such file",
                "handle of zero",
                "Cannot find",
                "Invalid argument",
                "Cannot find device",
            )
        ):
            return None
        raise
    return f"{handle} qdisc of {device}"


def pin(path: str) -> str | None:
    """Unpin a file, or all in a folder and the folder."""
    return _delete(Path(path), "pin")


def mount(path: str) -> str | None:
    if path not in {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}:
        return None
    shell.run(["umount", path], f"unmount {path}")
    return f"mount {path}"


def sysctl(name: str, value: str) -> str | None:
    """Set a setting back to what it was."""
    setting = SYSCTL / name.replace(".", "/")
    if not setting.exists() or setting.read_text().split() == value.split():
        return None
    setting.write_text(value)
    return f"the change of {name}: back to {value}"


def file(path: str) -> str | None:
    return _delete(Path(path), "file")


def folder(path: str) -> str | None:
    return _delete(Path(path), "folder")


def _delete(path: Path, kind: str) -> str | None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    else:
        return None
    return f"{kind} {path}"


def _ovs_runs() -> bool:
    """Whether anybody answers: a socket may outlive its database."""
    with socket.socket(socket.AF_UNIX) as database:
        return database.connect_ex("/var/run/openvswitch/db.sock") == 0


UNDO: dict[str, Callable[..., str | None]] = {
    "process": process,
    "daemon": daemon,
    "bridges": bridges,
    "interface": interface,
    "radio": radio,
    "qdisc": qdisc,
    "pin": pin,
    "mount": mount,
    "sysctl": sysctl,
    "file": file,
    "folder": folder,
}
