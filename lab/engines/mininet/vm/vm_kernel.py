"""The VM's kernel: a Debian package, unpacked into the cache and not installed.

CACHE/vm/boot/vmlinuz-VERSION   the kernel
CACHE/vm/lib/modules/VERSION    its modules, where virtme-ng finds them
CACHE/vm/boot/types-VERSION     its C types (BTF), copied out of the running VM
CACHE/vm/kvm.json               whether KVM works here, and with which kernel of the host
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet import ebpf
from lab.engines.mininet.ebpf import build
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.upstreams import cache
from lab.errors import CommandFailed, MachineLacks

SLOW_MACHINE = "MULTIPATH_LAB_SLOW_MACHINE"  # set inside a VM without KVM
META_PACKAGE = "linux-image-6.12-amd64"
GUEST_MODULES = (
    "openvswitch",
    "sch_netem",
    "sch_htb",
    "sch_fq",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    "ifb",
    "cls_matchall",
    "act_mirred",
    "mac80211_hwsim",
)
KVM_TIMEOUT_S = 8  # a working KVM prints within two seconds


def find() -> Path | None:
    """Return the image of the newest kernel in the cache; None if there is none.

    A kernel without modules or their index (modules.dep) does not count.
    """
    images = (cache() / "vm" / "boot").glob("vmlinuz-*")
    ready = [image for image in images if (modules(image) / "modules.dep").exists()]
    return max(ready, key=lambda image: image.stat().st_mtime, default=None)


def version(image: Path) -> str:
    """Return the version of a kernel, such as 6.12.9-amd64, from the name of its image."""
    return image.name.removeprefix("vmlinuz-")


def modules(image: Path) -> Path:
    return image.parents[1] / "lib" / "modules" / version(image)


def types(image: Path) -> Path:
    """Return the path of the file with a kernel's types (BTF), which may not exist."""
    return image.with_name(image.name.replace("vmlinuz-", "types-", 1))


def require(congestion_controls: Iterable[str] = (), by_window: bool = False) -> Path:
    """Return the image of the VM's kernel, after compiling the eBPF programs that a run needs.

    They are compiled here, because the guest cannot write into the cache: one for each coupled law
    in `congestion_controls`, and one for each law that a user has registered, because a change
    during the run may select it. With `by_window` (expected rates limit congestion windows, not
    pacing), there is one for every congestion control, reno and cubic included. Raises
    `MachineLacks` if the kernel or the compiler is missing, `RequestError` if a user's C file does
    not compile.
    """
    image = find()
    if image is None:
        raise MachineLacks(
            f"start the VM: no kernel in {cache() / 'vm'}. Try: ./run_lab.sh setup-emulation"
        )
    selectable = (*ebpf.LAWS, *ebpf.IN_KERNEL) if by_window else ()
    wanted = [*congestion_controls, *ebpf.registered(), *selectable]
    build.require(wanted, types(image), by_window)
    return image


def install() -> str:
    """Install the VM's kernel into the cache if it is missing; return what was done, as text.

    This needs the network:

    1) find the package that META_PACKAGE depends on now   2) download and unpack it
    3) index its modules

    Raises `MachineLacks` if this fails.
    """
    image = find()
    if image:
        unpacked = unpack_modules(image)
        note = f", {unpacked} modules unpacked" if unpacked else ""
        return f"already there ({version(image)}{note})"
    home = cache() / "vm"
    home.mkdir(parents=True, exist_ok=True)
    try:
        depends = shell.run(["apt-cache", "depends", META_PACKAGE], "find the VM's kernel")  # 1
        package = depends.split("Depends: ")[1].split()[0]
        shell.run(
            ["apt-get", "download", "-q", package], f"download {package}", cwd=home, timeout_s=900
        )  # 2
        archive = next(home.glob(f"{package}_*.deb"))
        shell.run(["dpkg", "-x", str(archive), str(home)], f"unpack {package}")
        archive.unlink()
        shell.run(
            ["depmod", "-b", str(home), package.removeprefix("linux-image-")],
            f"index the modules of {package}",
        )  # 3
    except (CommandFailed, IndexError, StopIteration) as problem:
        raise MachineLacks(
            f"install the VM's kernel {META_PACKAGE}: {problem}. With a network, try: "
            "sudo apt update, then ./run_lab.sh setup-emulation; "
            f"without one, copy {home} from a machine that has it"
        ) from problem
    unpack_modules(home / "boot" / f"vmlinuz-{package.removeprefix('linux-image-')}")
    return f"installed ({package})"


def unpack_modules(image: Path) -> int:
    """Decompress the modules that the guest loads, and the modules that these depend on.

    Otherwise every start of the guest would spend a second on this. Return how many modules were
    decompressed now.
    """
    home = image.parents[1]
    index = (modules(image) / "modules.dep").read_text().splitlines()
    needs = {
        Path(line.partition(":")[0]).name.partition(".")[0].replace("-", "_"): line.replace(
            ":", ""
        ).split()
        for line in index
    }
    packed = {
        name for module in GUEST_MODULES for name in needs.get(module, ()) if name.endswith(".xz")
    }
    for name in packed:
        source = modules(image) / name
        source.with_suffix("").write_bytes(lzma.decompress(source.read_bytes()))
        source.unlink()
    if packed:
        name = version(image)
        shell.run(["depmod", "-b", str(home), name], f"index the modules of {name}")
    return len(packed)


def remembered_kvm() -> bool | None:
    """Return the stored result of the KVM test; None if the running kernel was not tested yet.

    The result is False, without a test, if this user may not open /dev/kvm.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    try:
        answer = json.loads((cache() / "vm" / "kvm.json").read_text())
    except (OSError, ValueError):
        return None
    return bool(answer["works"]) if answer.get("kernel") == platform.release() else None


def kvm_works(image: Path) -> bool:
    """Return whether KVM can boot the kernel `image`.

    /dev/kvm may exist and yet hang. So the first call boots it for a few seconds and stores the
    result in kvm.json, which later calls read.
    """
    known = remembered_kvm()
    if known is None:
        known = _try_kvm(image)
        (cache() / "vm" / "kvm.json").write_text(
            json.dumps({"works": known, "kernel": platform.release()}) + "\n"
        )
    return known


def _try_kvm(image: Path) -> bool:
    """Boot the kernel with KVM, without a root file system, and return whether it boots.

    It boots if it prints within `KVM_TIMEOUT_S` that it cannot mount a root file system.
    """
    argv = ["qemu-system-x86_64", "-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "512M"]
    argv += ["-display", "none", "-no-reboot", "-nodefaults", "-serial", "stdio"]
    argv += ["-kernel", str(image), "-append", "console=ttyS0 panic=-1"]
    machine = shell.spawn(
        argv,
        "try KVM",
        text=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    serial_line = machine.stdout
    assert serial_line is not None
    os.set_blocking(serial_line.fileno(), False)
    printed, deadline = b"", time.monotonic() + KVM_TIMEOUT_S
    try:
        while (
            b"Unable to mount root" not in printed
            and time.monotonic() < deadline
            and machine.poll() is None
        ):
            printed += serial_line.read() or b""
            time.sleep(0.05)
        return b"Unable to mount root" in printed + (serial_line.read() or b"")
    finally:
        machine.kill()
        machine.wait()
        serial_line.close()
