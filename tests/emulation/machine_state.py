"""Everything that a run could leave on a machine, and the comparison of two such states.

`python -m emulation.machine_state` leaves one thing of each kind, as root, and checks that the
comparison finds each of them, and finds nothing after they are removed. It prints a PASS line per
kind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lab.engines.mininet.machine import lock

SETTINGS = r"^(fs[.]file-max|kernel[.]pty[.]max|net[.](mptcp|core|ipv4)[.])"
OURS = (b"pox.py", b"hostapd", b"traffic.py", b"ap_agent", b"mininet:", b"lab\0run", b"wmediumd")
RADIOS = Path("/sys/devices/virtual/mac80211_hwsim")  # also those inside namespaces
PINNED, STATE = Path("/sys/fs/bpf"), Path("/run/multipath-lab")
OF_THE_VM = ("/run/warm/requests", "/run/changes")  # of a restored VM
SETTLE_S = 15  # the kernel removes some things in the background
State = dict[str, set[str]]


def output(*argv: str) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def processes() -> Iterator[tuple[int, bytes]]:
    """PID and command line of all processes except this one and the kernel's threads."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if command:
                yield int(folder.name), command


def state(everything: bool = False) -> State:
    """Everything that a run could leave on a machine, by kind.

    With `everything`, these are all processes, all kinds of namespaces and all files in /run, /tmp
    and /dev/shm, which is too much for a machine that others use, too. In a VM that was booted,
    /tmp shows the files of the host; then only Mininet's files in it count.
    """
    kinds = [] if everything else ["--type", "net"]
    own_tmp = ["/tmp"] if os.environ.get("MULTIPATH_LAB_VM") and of_type("tmpfs", "/tmp") else []
    more = ("/run", "/dev/shm", *own_tmp) if everything else ()
    folders = [PINNED, STATE, *map(Path, more)]
    files = (*mininet_files("/tmp"), *mininet_files("/var/run"))
    return {
        "bridges": set(output("ovs-vsctl", "--timeout=30", "list-br")),
        "controllers": set(
            output("ovs-vsctl", "--timeout=30", "--bare", "--columns=target", "list", "controller")
        ),
        "interfaces": names(Path("/sys/class/net")),
        "radios": {each for each in names(RADIOS) if each.startswith("hwsim")},
        "qdiscs": {" ".join(line.split()[:5]) for line in output("tc", "qdisc", "show")},
        "namespaces": set(
            map(str.strip, output("lsns", "--noheadings", *kinds, "--output", "NS,TYPE"))
        ),
        "processes": counted(command for _, command in processes() if everything or ours(command)),
        "mounts": {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()},
        "settings": {
            line for line in output("sysctl", "-a", "--pattern", SETTINGS) if steady(line)
        },
        "programs": set(bpf_objects("prog")) | set(bpf_objects("map")),
        "files": {str(each) for each in (*inside(folders), *files)},
    }


def of_type(kind: str, path: str) -> bool:
    return output("stat", "--file-system", "--format=%T", path) == [kind]


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def ours(command: bytes) -> bool:
    return any(word in command for word in OURS)


def counted(commands: Iterable[bytes]) -> set[str]:
    """A text for each process, without its PID."""
    return {
        f"{command[:80]!r} {number}"
        for command, count in Counter(commands).items()
        for number in range(1, count + 1)
    }


def mininet_files(folder: str) -> Iterator[Path]:
    """Files with a word that begins with mn; random names may have mn inside a word."""
    for file in Path(folder).iterdir():
        if re.search(r"(?<![A-Za-z0-9])mn", file.name):
            yield file


def inside(folders: Iterable[Path]) -> Iterator[Path]:
    """Files and folders in `folders`, except those of the VM itself.

    File systems mounted inside them are left out, as they may have the host's files.
    """
    for folder in folders:
        for path, folders_in_it, files in os.walk(folder):
            if path != str(folder) and (os.path.ismount(path) or path in OF_THE_VM):
                folders_in_it.clear()
                continue
            for each in (*folders_in_it, *files):
                file = Path(path, each)
                if file != lock.LOCK and not each.startswith("ovs-vswitchd."):  # followed by a PID
                    yield file


def bpf_objects(kind: str) -> Iterator[str]:
    """A text for each eBPF program ("prog") or map ("map") in the kernel."""
    for each in json.loads("".join(output("bpftool", "--json", kind, "show")) or "[]"):
        yield f"{kind} {each['id']} {each.get('name', '')}"


def steady(setting: str) -> bool:
    """False for counters and for settings of a single interface."""
    of_all = not setting.startswith(("net.ipv4.conf.", "net.ipv4.neigh.")) or setting.split(".")[
        3
    ] in ("all", "default")
    return of_all and not any(word in setting for word in ("nf_conntrack", "tcp_fastopen_key"))


def difference(before: State, after: State) -> list[str]:
    return [
        f"{what}: {sign}{each}"
        for what in before
        for sign, only in (("+", after[what] - before[what]), ("-", before[what] - after[what]))
        for each in sorted(only)
    ]


def leftovers(before: State, everything: bool = False, without: str = "") -> list[str]:
    """Differences from `before` that are still there after `SETTLE_S` seconds.

    The kind `without` is not compared.
    """
    deadline = time.monotonic() + SETTLE_S
    compared = {kind: found for kind, found in before.items() if kind != without}
    while left := difference(compared, state(everything)):
        if time.monotonic() > deadline:
            break
        time.sleep(0.3)
    return left


def leave_one_of_each() -> dict[str, Callable[[], None]]:
    """Leave one thing of each kind; return the functions that remove them."""
    sleeping = subprocess.Popen(["sleep", "600"])
    hidden = subprocess.Popen(["unshare", "--net", "sleep", "601"])
    folder, pin = Path("/run/left-behind"), PINNED / "left-behind"
    folder.mkdir()
    make = "map create {} type array key 4 value 4 entries 1 name left"
    command("bpftool", *make.format(pin).split())
    command("ip", "link", "add", "left0", "type", "dummy")
    command("ovs-vsctl", "--timeout=30", "add-br", "left1")
    command("hwsim_mgmt", "-c", "-n", "mnleft")
    radio = next(each.name for each in Path("/sys/class/ieee80211").iterdir())
    command("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
    return {
        "process": lambda: end(sleeping),
        "namespace": lambda: end(hidden),
        "interface": lambda: command("ip", "link", "del", "left0"),
        "bridge": lambda: command("ovs-vsctl", "--timeout=30", "del-br", "left1"),
        "radio": lambda: command("hwsim_mgmt", "-x", radio),
        "program": pin.unlink,
        "file": folder.rmdir,
        "setting": lambda: command("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=0"),
    }


def command(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def main() -> int:
    subprocess.run(["modprobe", "mac80211_hwsim", "radios=0"], check=True)
    before = state(everything=True)
    removing = leave_one_of_each()
    time.sleep(0.5)  # until `unshare` has become `sleep`
    found = difference(before, state(everything=True))
    missed = [kind for kind in removing if not any(each.startswith(kind) for each in found)]
    for remove in removing.values():
        remove()
    left = leftovers(before, everything=True)
    for kind in removing:
        print(f"{'FAIL' if kind in missed else 'PASS'} what is left is found: {kind}")
    print(f"{'FAIL' if left else 'PASS'} nothing is found when it is removed: {left}", flush=True)
    if missed:
        print(found)
    return 1 if missed or left else 0


if __name__ == "__main__":
    sys.exit(main())
