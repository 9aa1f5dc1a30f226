"""Install the VM's kernel into the cache (lab/engines/mininet/machine/vm_kernel.py)."""

from __future__ import annotations

import lzma
from pathlib import Path

from lab.engines.mininet.machine import shell, vm_kernel
from lab.engines.mininet.machine.upstreams import cache
from lab.errors import CommandFailed, MachineLacks

GUEST_MODULES = (
    "openvswitch",
    "sch_netem",
    "sch_htb",
    "sch_fq",
    "sch_codel",
    "sch_red",
    "sch_ingress",
    "cls_bpf",
    "act_bpf",
    "ifb",
    "cls_matchall",
    "act_mirred",
    "mac80211_hwsim",
)


def install() -> str:
    """Install the VM's kernel into the cache, if it is missing.

    Return a text that says what was done. Raises `MachineLacks` if this fails.
    """
    image = vm_kernel.find()
    if image:
        unpacked = unpack_modules(image)
        note = f", {unpacked} modules unpacked" if unpacked else ""
        return f"already there ({vm_kernel.version(image)}{note})"
    home = cache() / "vm"
    home.mkdir(parents=True, exist_ok=True)
    archive = vm_kernel.download(home)
    package = archive.name.partition("_")[0]
    version = package.removeprefix("linux-image-")
    try:
        shell.run(["dpkg", "-x", str(archive), str(home)], f"unpack {package}")
        archive.unlink()
        shell.run(["depmod", "-b", str(home), version], f"index the modules of {package}")
    except CommandFailed as problem:
        raise MachineLacks(f"install the VM's kernel: {problem}") from problem
    unpack_modules(home / "boot" / f"vmlinuz-{version}")
    return f"installed ({package})"


def unpack_modules(image: Path) -> int:
    """Decompress the kernel modules that the guest loads, and the modules that these depend on.

    Otherwise each start of the guest would spend a second on this. Returns how many modules were
    decompressed by this call.
    """
    home = image.parents[1]
    index = (vm_kernel.modules(image) / "modules.dep").read_text().splitlines()
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
        source = vm_kernel.modules(image) / name
        source.with_suffix("").write_bytes(lzma.decompress(source.read_bytes()))
        source.unlink()
    if packed:
        name = vm_kernel.version(image)
        shell.run(["depmod", "-b", str(home), name], f"index the modules of {name}")
    return len(packed)
