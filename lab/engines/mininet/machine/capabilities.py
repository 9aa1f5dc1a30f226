"""What this machine can do, found by trying it, never by reading a version.

A `Probe` answers single questions about a machine; `facts` puts them together, `verdicts` draws the conclusions. Tests
give a Probe that answers as another machine would.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet.ebpf import LAWS, build, load
from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.packages import PACKAGES, cure
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.errors import LabError, MachineLacks

IPPROTO_MPTCP = 262
BPF_PASS = "1,6 0 0 4294967295"  # one classic BPF instruction: accept the packet
MODULES = {  # name: why, and a harmless use of it in a network namespace that ends with the command
    "openvswitch": ("the switches' datapath", ""),
    "veth": ("links", "ip link add lab0 type veth peer name lab1"),
    "sch_netem": ("delay and loss of a link", "tc qdisc add dev lo root netem delay 1ms"),
    "sch_htb": ("rate of a link", "tc qdisc add dev lo root handle 1: htb default 1"),
    "sch_fq": ("the WiFi cell's clock", "tc qdisc add dev lo root fq"),
    "cls_bpf": (
        "the WiFi cell's program",
        f"tc qdisc add dev lo clsact && tc filter add dev lo egress bpf bytecode '{BPF_PASS}'",
    ),
    "act_bpf": ("the WiFi cell's program", f"tc actions add action bpf bytecode '{BPF_PASS}'"),
    "mac80211_hwsim": ("simulated radios", ""),
}
NATIVE_PROGRAMS = (
    "ovs-vsctl",
    "ovs-ofctl",
    "mnexec",
    "hostapd",
    "iw",
    "ip",
    "tc",
    "ifconfig",
    "ethtool",
    "clang",
    "bpftool",
)
VM_PROGRAMS = ("qemu-system-x86_64", "modprobe", "busybox")


def _module(name: str) -> bool:
    """Loaded, or there to be loaded, or built in, which only trying it (as root) tells."""
    if Path("/sys/module", name).exists() or shell.succeeds(
        ["modprobe", "--dry-run", "--quiet", name]
    ):
        return True
    use = MODULES[name][1]
    return bool(use) and os.geteuid() == 0 and shell.succeeds(["unshare", "--net", "sh", "-c", use])


def _mptcp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return False
    return Path("/proc/sys/net/mptcp/enabled").exists()


def _coupled() -> list[str]:
    """What stands in the way of coupled congestion control on this kernel. Root tries it."""
    lacks = build.lacking()
    if lacks or os.geteuid() != 0:
        return lacks
    laws = load.Laws()
    try:
        laws.load(*LAWS)
    except LabError as problem:
        return [str(problem)]
    finally:
        laws.close()
    return []


def _coupled_in_vm() -> list[str]:
    image = kernel.find()
    return build.lacking(kernel.types(image)) if image else ["a kernel"]


@dataclass(frozen=True)
class Probe:
    """Questions to a machine; the defaults ask this one."""

    root: Callable[[], bool] = lambda: os.geteuid() == 0
    program: Callable[[str], bool] = lambda name: (
        shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None
    )
    python: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None
    module: Callable[[str], bool] = _module
    mptcp: Callable[[], bool] = _mptcp
    upstream: Callable[[upstreams.Upstream], bool] = upstreams.present
    hwsim_mgmt: Callable[[], bool] = lambda: os.access(upstreams.hwsim_mgmt(), os.X_OK)
    vm_kernel: Callable[[], str | None] = lambda: (
        lambda image: image.name.removeprefix("vmlinuz-") if image else None
    )(kernel.find())
    kvm: Callable[[], bool | None] = kernel.remembered_kvm
    coupled: Callable[[], list[str]] = _coupled
    coupled_in_vm: Callable[[], list[str]] = _coupled_in_vm


@dataclass(frozen=True)
class Fact:
    """One line of the table. `where` says what it is needed for: native, vm, both, or speed and extras."""

    what: str
    there: bool
    why: str
    cure: str = ""
    where: str = "both"
    note: str = ""


SETUP = "./run_lab.sh setup-emulation"
NO_CURE = "run with --vm: this kernel does not have it"


def facts(probe: Probe) -> list[Fact]:
    """Everything the emulation needs, in the order in which it is needed."""
    reasons = {program: package.reason for package in PACKAGES for program in package.programs}
    table = [
        Fact(
            "root",
            probe.root(),
            "networks of the kernel",
            "sudo ./run_lab.sh ..., or run with --vm",
            "native",
        )
    ]
    table.append(Fact("MPTCP", probe.mptcp(), "what the lab is about", NO_CURE, "native"))
    table += [
        Fact(f"module {name}", probe.module(name), why, NO_CURE, "native")
        for name, (why, _) in MODULES.items()
    ]
    table += [
        Fact(name, probe.program(name), reasons[name], cure(name)) for name in NATIVE_PROGRAMS
    ]
    table += [
        Fact(
            each.name,
            probe.upstream(each),
            each.reason,
            SETUP,
            "extra" if each.optional else "both",
        )
        for each in upstreams.UPSTREAMS
    ]
    table.append(Fact("hwsim_mgmt", probe.hwsim_mgmt(), "makes simulated radios", SETUP))
    table.append(Fact("Python six", probe.python("six"), "Mininet-WiFi imports it", SETUP))
    table.append(
        Fact(
            "Python os_ken",
            probe.python("os_ken"),
            "tests compare OpenFlow 1.3 messages with it",
            SETUP,
            "extra",
        )
    )
    table += [
        Fact(
            name,
            probe.program(name),
            reasons.get(name, "the VM's first file system"),
            _vm_cure(name),
            "vm",
        )
        for name in VM_PROGRAMS
    ]
    table.append(
        Fact(
            "virtme-ng",
            probe.python("virtme"),
            "boots the VM from this machine's files",
            SETUP,
            "vm",
        )
    )
    version = probe.vm_kernel()
    table.append(
        Fact(
            "VM kernel",
            version is not None,
            "a kernel with all modules",
            SETUP,
            "vm",
            version or "",
        )
    )
    answer = probe.kvm()
    notes = {True: "", False: "the VM runs in software", None: "not tried yet"}
    table.append(
        Fact(
            "KVM",
            bool(answer),
            "speed of the VM",
            "nothing to do: it works without",
            "extra",
            notes[answer],
        )
    )
    for where, cure_here, lacks in (
        ("natively", NO_CURE, probe.coupled()),
        ("in the VM", SETUP, probe.coupled_in_vm()),
    ):
        note = f"lacks {', '.join(lacks)}" if lacks else ""
        table.append(
            Fact(
                f"coupled laws {where}",
                not lacks,
                "--cc lia, olia, balia as eBPF",
                cure_here,
                "extra",
                note,
            )
        )
    return table


@dataclass(frozen=True)
class Verdict:
    """Can the lab run this way, and if not, what is in the way?"""

    way: str
    possible: bool
    because: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.way}: yes"
            if self.possible
            else f"{self.way}: no, because of {', '.join(self.because)}"
        )


def verdicts(table: list[Fact]) -> list[Verdict]:
    """The three ways to run."""

    def way(name: str, *places: str) -> Verdict:
        missing = tuple(
            fact.what if fact.what.startswith("module") else f"no {fact.what}"
            for fact in table
            if fact.where in places and not fact.there
        )
        return Verdict(
            name, not missing, tuple(each.replace("module", "no module", 1) for each in missing)
        )

    return [
        Verdict("embedded engine", True),
        way("emulation natively", "native", "both"),
        way("emulation in the VM", "vm", "both"),
    ]


def require_native(probe: Probe | None = None) -> None:
    """Nothing if the emulation can run on this machine itself; one `MachineLacks` that names all that is in the way."""
    way = verdicts(facts(probe or Probe()))[1]
    if not way.possible:
        raise MachineLacks(
            f"start the emulation: this machine has {', '.join(way.because)}. Try: the same command with --vm, or ./run_lab.sh doctor"
        )


def _vm_cure(name: str) -> str:
    return "sudo apt install busybox-static" if name == "busybox" else cure(name)
