"""Report what this machine can run: `./run_lab.sh doctor`, and the check before each emulation.

`Probe` examines the machine: it tries each feature, and compares no version numbers. `facts` lists
everything that the emulation needs, present or missing. `verdicts` says which modes of the lab can
run. Tests replace functions of `Probe` to imitate another machine.
"""

from __future__ import annotations

import importlib.util
import json as encoder
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.engines.mininet.ebpf import LAWS, build, load
from lab.engines.mininet.kernel import congestion_modules
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.engines.mininet.machine.packages import PACKAGES, install_command
from lab.errors import LabError, MachineLacks

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
    """One thing that the emulation needs, and whether this machine has it.

    `reason` says why the emulation needs it. `fix` is what the user can type if it is missing.
    `needed_for` is NATIVE (needed for the emulation on this machine), VM (for the emulation in the
    VM), BOTH or OPTIONAL. `note` is a detail, such as a version.
    """

    name: str
    present: bool
    reason: str
    fix: str = ""
    needed_for: str = BOTH
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """Whether one mode of the lab can run on this machine.

    The modes are the simulator, the emulation natively, and the emulation in the VM. `missing` has
    the names of the needed things that this machine lacks.
    """

    mode: str
    possible: bool
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.mode}: " + (
            "yes" if self.possible else f"no, missing: {', '.join(self.missing)}"
        )


def facts(probe: Probe | None = None) -> list[Fact]:
    """Return everything that the emulation needs, present or missing.

    `probe` examines the machine; the default examines this machine.
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
    """Return whether each mode can run: simulator, emulation natively, emulation in the VM."""
    return [
        Verdict(EMBEDDED_MODE, True),
        _verdict(table, NATIVE_MODE, NATIVE),
        _verdict(table, VM_MODE, VM),
    ]


def require_native(probe: Probe | None = None) -> None:
    """Raise `MachineLacks` if the emulation cannot run natively on this machine.

    The message names everything that is missing.
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
    for name, module in congestion_modules.MODULES.items():
        has_it, reason = not probe.cc_modules_lack([name]), f"--cc {name} natively"
        yield Fact(f"module {module}", has_it, reason, USE_VM, OPTIONAL)


def main(json: bool = False, probe: Probe | None = None, simulator: str = "") -> int:
    """Print what this machine has and lacks, and which modes of the lab can run.

    `json` selects the format JSON. `simulator` is a text on the state of the simulator. Returns 0
    if the emulation can run here, natively or in the VM, otherwise 3.
    """
    table = facts(probe)
    modes = verdicts(table)
    state = [f"simulator: {simulator}"] if simulator else []
    if json:
        document = {
            "facts": [asdict(fact) for fact in table],
            "verdicts": [asdict(mode) for mode in modes],
            "simulator": simulator,
        }
        print(encoder.dumps(document, indent=1))
    else:
        print("\n".join([*lines(table), "", *map(str, modes), *state]))
    return 0 if any(mode.possible for mode in modes[1:]) else MachineLacks.exit_code


def lines(table: list[Fact]) -> list[str]:
    """Format facts as the lines of a table with aligned columns and a title line.

    The last column says what the user can type if something is missing.
    """
    rows = [("what", "state", "why it matters", "what to type")]
    for fact in table:
        state = "yes" if fact.present else "no"
        reason = f"{fact.reason} ({fact.note})" if fact.note else fact.reason
        rows.append((fact.name, state, reason, "" if fact.present else fact.fix))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]


IPPROTO_MPTCP = 262
BPF_PASS = "1,6 0 0 4294967295"  # one classic BPF instruction: accept the packet  # noqa: S105 - no password


@dataclass(frozen=True)
class Module:
    """A kernel module that the emulation needs.

    `reason` says why. `command` is a shell command that succeeds only if the kernel has the module.
    It runs in a temporary network namespace. It is empty if no command can test the module.
    """

    reason: str
    command: str = ""


MODULES = {
    "openvswitch": Module("the switches' datapath"),
    "veth": Module("links", "ip link add lab0 type veth peer name lab1"),
    "sch_netem": Module("delay and loss of a link", "tc qdisc add dev lo root netem delay 1ms"),
    "sch_htb": Module("rate of a link", "tc qdisc add dev lo root handle 1: htb default 1"),
    "sch_fq": Module("departure times in a WiFi cell", "tc qdisc add dev lo root fq"),
    "cls_bpf": Module(
        "the WiFi cell's program",
        f"tc qdisc add dev lo clsact && tc filter add dev lo egress bpf bytecode '{BPF_PASS}'",
    ),
    "act_bpf": Module(
        "the WiFi cell's program", f"tc actions add action bpf bytecode '{BPF_PASS}'"
    ),
    "ifb": Module("uplink queues of LTE", "ip link add lab0 type ifb"),
    "cls_matchall": Module(
        "uplink queues of LTE",
        "tc qdisc add dev lo clsact && tc filter add dev lo ingress matchall action pass",
    ),
    "act_mirred": Module(
        "uplink queues of LTE", "tc actions add action mirred egress redirect dev lo"
    ),
    "mac80211_hwsim": Module("simulated radios"),
}


def _is_root() -> bool:
    return os.geteuid() == 0


def _has_program(name: str) -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return shutil.which(name, path=path) is not None


def _has_python_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _has_module(name: str) -> bool:
    """Return whether the kernel has a module: loaded, loadable, or built in.

    Some built-in modules are found only by their test command (`MODULES`), which needs root.
    """
    if Path("/sys/module", name).exists():
        return True
    if shell.succeeds(["modprobe", "--dry-run", "--quiet", name]):
        return True
    command = MODULES[name].command
    if not command or not _is_root():
        return False
    return shell.succeeds(["unshare", "--net", "sh", "-c", command])


def _has_mptcp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return False
    return Path("/proc/sys/net/mptcp/enabled").exists()


def _has_hwsim_mgmt() -> bool:
    return os.access(upstreams.hwsim_mgmt(), os.X_OK)


def _vm_kernel_version() -> str | None:
    image = vm_kernel.find()
    return vm_kernel.version(image) if image else None


def _laws_lack() -> list[str]:
    """Return what the running kernel lacks for the coupled congestion controls in eBPF.

    As root, this function also tries to load them. If loading fails, the error is in the list.
    """
    lacking = build.lacking()
    if lacking or not _is_root():
        return lacking
    laws = load.Laws()
    try:
        laws.load(*LAWS)
    except LabError as problem:
        return [str(problem)]
    finally:
        laws.close()
    return []


def _laws_in_vm_lack() -> list[str]:
    image = vm_kernel.find()
    return build.lacking(vm_kernel.types(image)) if image else ["a kernel"]


@dataclass(frozen=True)
class Probe:
    """Functions that examine a machine, one for each question. The defaults examine this machine.

    `kvm` returns None if KVM has not been tried. `laws_lack` lists what the running kernel lacks
    for coupled congestion controls in eBPF. `laws_in_vm_lack` lists the same for the kernel of the
    VM. `cc_modules_lack` lists the modules that are missing for some congestion controls.
    """

    root: Callable[[], bool] = _is_root
    program: Callable[[str], bool] = _has_program
    python: Callable[[str], bool] = _has_python_module
    module: Callable[[str], bool] = _has_module
    mptcp: Callable[[], bool] = _has_mptcp
    upstream: Callable[[upstreams.Upstream], bool] = upstreams.present
    hwsim_mgmt: Callable[[], bool] = _has_hwsim_mgmt
    vm_kernel_version: Callable[[], str | None] = _vm_kernel_version
    kvm: Callable[[], bool | None] = vm_kernel.remembered_kvm
    laws_lack: Callable[[], list[str]] = _laws_lack
    laws_in_vm_lack: Callable[[], list[str]] = _laws_in_vm_lack
    cc_modules_lack: Callable[[list[str]], list[str]] = congestion_modules.lacking
