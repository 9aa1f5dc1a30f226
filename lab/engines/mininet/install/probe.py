"""Find out what this machine has. Each feature is tried; no version number is compared.

Tests replace functions of `Probe`, to imitate another machine.
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
from lab.engines.mininet.vm import vm_kernel
from lab.errors import LabError

IPPROTO_MPTCP = 262
BPF_PASS = "1,6 0 0 4294967295"  # one classic BPF instruction: accept the packet  # noqa: S105 - no password


@dataclass(frozen=True)
class Module:
    """Describe a kernel module: what the emulation needs it for, and a command that tests it.

    The command succeeds only if the kernel has the module. It runs in a new network namespace,
    which is removed when the command ends. For a module that no command can test, the command is
    empty.
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

    A module that is built in is found only by root, who runs the module's test command (`MODULES`).
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
    """Return what the running kernel lacks for the coupled congestion control laws, as a list.

    The list is empty if nothing is missing. If this process is root, it also tries to load LIA,
    OLIA and BALIA, and lists the error if that fails.
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
    """Hold one function per question about a machine; the default functions examine this machine.

    `kvm` returns None if KVM has not been tried. `laws_lack` lists what the machine's kernel lacks
    for coupled congestion control as eBPF; `laws_in_vm_lack` does so for the kernel of the VM.
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
