"""The VM's kernel: a distribution's, unpacked into the cache and never installed on the machine.

CACHE/vm/boot/vmlinuz-VERSION   and   CACHE/vm/lib/modules/VERSION, side by side, where virtme-ng finds them
CACHE/vm/boot/types-VERSION     the kernel's types (BTF), as it publishes them when it runs
CACHE/vm/kvm.json               whether KVM really works here, found out once per kernel of this machine
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

from lab.engines.mininet.ebpf import build
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.upstreams import cache
from lab.errors import CommandFailed, MachineLacks

META_PACKAGE = "linux-image-6.12-amd64"
GUEST_MODULES = (
    "openvswitch",
    "sch_netem",
    "sch_htb",
    "sch_fq",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    "mac80211_hwsim",
)
KVM_PATIENCE_S = 8  # a working KVM prints within two


def find() -> Path | None:
    """The newest kernel in the cache whose modules are there and indexed."""
    images = (cache() / "vm" / "boot").glob("vmlinuz-*")
    ready = [image for image in images if (modules(image) / "modules.dep").exists()]
    return max(ready, key=lambda image: image.stat().st_mtime, default=None)


def modules(image: Path) -> Path:
    """The folder of a kernel's modules."""
    return image.parents[1] / "lib" / "modules" / image.name.removeprefix("vmlinuz-")


def types(image: Path) -> Path:
    """The file with a kernel's types; it need not exist."""
    return image.with_name(image.name.replace("vmlinuz-", "types-", 1))


def require(congestion_controls: Iterable[str] = ()) -> Path:
    """The VM's kernel, or one `MachineLacks`; what it loads for these congestion controls is compiled, if it was not yet."""
    image = find()
    if image is None:
        raise MachineLacks(
            f"start the VM: no kernel in {cache() / 'vm'}. Try: ./run_lab.sh setup-emulation"
        )
    build.require(congestion_controls, types(image))
    return image


def bring() -> str:
    """Make sure the kernel is there; what was done. The network is used only if it is not.

    1) ask which package META_PACKAGE stands for now   2) download and unpack it   3) index its modules
    """
    image = find()
    if image:
        unpacked = unpack_modules(image)
        return f"already there ({image.name.removeprefix('vmlinuz-')}{f', {unpacked} modules unpacked' if unpacked else ''})"
    home = cache() / "vm"
    home.mkdir(parents=True, exist_ok=True)
    try:
        depends = shell.run(["apt-cache", "depends", META_PACKAGE], "ask for the VM's kernel")  # 1
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
            f"bring the VM's kernel {META_PACKAGE}: {problem}. With a network, try: sudo apt update, then ./run_lab.sh setup-emulation; "
            f"without one, copy {home} from a machine that has it"
        ) from problem
    unpack_modules(home / "boot" / f"vmlinuz-{package.removeprefix('linux-image-')}")
    return f"brought ({package})"


def unpack_modules(image: Path) -> int:
    """Decompress the modules the guest loads, and those they need: it would take a second for that at every start.

    Returns how many were; none the second time.
    """
    version, home = image.name.removeprefix("vmlinuz-"), image.parents[1]
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
        shell.run(["depmod", "-b", str(home), version], f"index the modules of {version}")
    return len(packed)


def remembered_kvm() -> bool | None:
    """Whether KVM worked when it was tried with this machine's kernel; None if it was not tried."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    try:
        answer = json.loads((cache() / "vm" / "kvm.json").read_text())
    except (OSError, ValueError):
        return None
    return bool(answer["works"]) if answer.get("kernel") == platform.release() else None


def kvm_works(image: Path) -> bool:
    """Does KVM run this kernel? /dev/kvm may exist and hang, so it is tried once for a few seconds, and remembered."""
    known = remembered_kvm()
    if known is None:
        known = _try_kvm(image)
        (cache() / "vm" / "kvm.json").write_text(
            json.dumps({"works": known, "kernel": platform.release()}) + "\n"
        )
    return known


def _try_kvm(image: Path) -> bool:
    """Start the kernel without a root file system: if it gets as far as missing it, KVM works."""
    argv = [
        "qemu-system-x86_64",
        "-machine",
        "q35",
        "-accel",
        "kvm",
        "-cpu",
        "host",
        "-m",
        "512M",
        "-display",
        "none",
        "-no-reboot",
    ]
    argv += [
        "-nodefaults",
        "-serial",
        "stdio",
        "-kernel",
        str(image),
        "-append",
        "console=ttyS0 panic=-1",
    ]
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
    seen, deadline = b"", time.monotonic() + KVM_PATIENCE_S
    try:
        while (
            b"Unable to mount root" not in seen
            and time.monotonic() < deadline
            and machine.poll() is None
        ):
            seen += serial_line.read() or b""
            time.sleep(0.05)
        return b"Unable to mount root" in seen + (serial_line.read() or b"")
    finally:
        machine.kill()
        machine.wait()
        serial_line.close()
