"""Decide whether the emulation can run on this machine, natively or in a VM.

`facts` lists everything that the emulation needs and whether this machine has it. From this list,
`verdicts` concludes which modes of the lab can run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.engines.mininet.install.probe import MODULES, Probe
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.packages import PACKAGES, install_command
from lab.errors import MachineLacks

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
SETUP = "./run_lab.sh setup-emulation"
USE_VM = "run with --vm: this kernel does not have it"
NATIVE, VM, BOTH, OPTIONAL = "native", "vm", "both", "extra"
"""The modes that need a fact (`Fact.needed_for`); no mode needs an OPTIONAL one."""
EMBEDDED_MODE = "embedded engine"
NATIVE_MODE = "emulation natively"
VM_MODE = "emulation in the VM"


@dataclass(frozen=True)
class Fact:
    """Describe one thing that the emulation needs, and whether this machine has it.

    `reason` says what the thing is needed for, and `fix` what to type if it is missing.
    `needed_for` is NATIVE (emulation on this machine), VM (emulation in the VM), BOTH or OPTIONAL.
    `note` adds a detail, such as a version.
    """

    name: str
    present: bool
    reason: str
    fix: str = ""
    needed_for: str = BOTH
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """Say whether the lab can run in one of its three modes on this machine.

    The modes are the embedded engine (the simulator), the emulation natively, and the emulation in
    the VM. `missing` names what this machine lacks for the mode.
    """

    mode: str
    possible: bool
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.mode}: " + (
            "yes" if self.possible else f"no, missing: {', '.join(self.missing)}"
        )


def facts(probe: Probe | None = None) -> list[Fact]:
    """List everything that the emulation needs, and whether it is present.

    `probe` examines the machine; the default examines this one.
    """
    probe = probe or Probe()
    return [
        *_kernel_facts(probe),
        *_program_facts(probe, NATIVE_PROGRAMS, BOTH),
        *_upstream_facts(probe),
        *_program_facts(probe, VM_PROGRAMS, VM),
        *_vm_facts(probe),
        *_law_facts(probe),
    ]


def verdicts(table: list[Fact]) -> list[Verdict]:
    """Conclude from a list of facts whether the lab can run in each of its three modes.

    The modes are the simulator, the emulation natively, and the emulation in the VM, in this order.
    """
    return [
        Verdict(EMBEDDED_MODE, True),
        _verdict(table, NATIVE_MODE, NATIVE),
        _verdict(table, VM_MODE, VM),
    ]


def require_native(probe: Probe | None = None) -> None:
    """Check that the emulation can run natively on this machine.

    Raises `MachineLacks` with the names of all that is missing. `probe` examines the machine.
    """
    verdict = _verdict(facts(probe), NATIVE_MODE, NATIVE)
    if not verdict.possible:
        raise MachineLacks(
            f"start the emulation: this machine lacks {', '.join(verdict.missing)}. "
            "Try: the same command with --vm, or ./run_lab.sh doctor"
        )


def _verdict(table: list[Fact], mode: str, needed_for: str) -> Verdict:
    missing = tuple(
        fact.name for fact in table if fact.needed_for in (needed_for, BOTH) and not fact.present
    )
    return Verdict(mode, not missing, missing)


def _kernel_facts(probe: Probe) -> Iterator[Fact]:
    as_root = "sudo ./run_lab.sh ..., or run with --vm"
    yield Fact("root", probe.root(), "networks of the kernel", as_root, NATIVE)
    yield Fact("MPTCP", probe.mptcp(), "Multipath TCP connections", USE_VM, NATIVE)
    for name, module in MODULES.items():
        yield Fact(f"module {name}", probe.module(name), module.reason, USE_VM, NATIVE)


def _program_facts(probe: Probe, names: tuple[str, ...], needed_for: str) -> Iterator[Fact]:
    reasons = {program: package.reason for package in PACKAGES for program in package.programs}
    for name in names:
        yield Fact(name, probe.program(name), reasons[name], install_command(name), needed_for)


def _upstream_facts(probe: Probe) -> Iterator[Fact]:
    for each in upstreams.UPSTREAMS:
        needed_for = OPTIONAL if each.optional else BOTH
        yield Fact(each.name, probe.upstream(each), each.reason, SETUP, needed_for)
    yield Fact("hwsim_mgmt", probe.hwsim_mgmt(), "makes simulated radios", SETUP)
    yield Fact("Python six", probe.python("six"), "Mininet-WiFi imports it", SETUP)
    compared = "tests compare OpenFlow 1.3 messages with it"
    yield Fact("Python os_ken", probe.python("os_ken"), compared, SETUP, OPTIONAL)


def _vm_facts(probe: Probe) -> Iterator[Fact]:
    boots = "boots the VM from this machine's files"
    yield Fact("virtme-ng", probe.python("virtme"), boots, SETUP, VM)
    version = probe.vm_kernel_version()
    has_kernel = version is not None
    yield Fact("VM kernel", has_kernel, "a kernel with all modules", SETUP, VM, version or "")
    kvm = probe.kvm()
    notes = {True: "", False: "the VM runs in software", None: "not tried yet"}
    nothing = "nothing to do: it works without"
    yield Fact("KVM", bool(kvm), "speed of the VM", nothing, OPTIONAL, notes[kvm])


def _law_facts(probe: Probe) -> Iterator[Fact]:
    reason = "--cc lia, olia, balia, wvegas as eBPF"
    native, vm = probe.laws_lack(), probe.laws_in_vm_lack()
    for where, fix, lacking in (("natively", USE_VM, native), ("in the VM", SETUP, vm)):
        note = f"lacks {', '.join(lacking)}" if lacking else ""
        name = f"coupled congestion control {where}"
        yield Fact(name, not lacking, reason, fix, OPTIONAL, note)
