"""Find the kernel of the virtual machine (VM): a Debian package, unpacked into the cache folder.

CACHE/vm/boot/vmlinuz-VERSION   the kernel
CACHE/vm/lib/modules/VERSION    its modules, where virtme-ng finds them
CACHE/vm/boot/types-VERSION     its C types (BTF), copied out of the running VM
CACHE/vm/kvm.json               whether KVM works here, and with which kernel of the host

The set-up (install/setup.py) writes the types. The program in the folder `vm` writes the other
files (vm/install_kernel.py, vm/accelerator.py).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path

from lab import kit
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.upstreams import cache
from lab.errors import CommandFailed, MachineLacks

META_PACKAGE = "linux-image-6.12-amd64"


def find() -> Path | None:
    """Return the newest kernel image in the cache; None if there is none.

    A kernel is ignored if its modules or their index (modules.dep) are missing.
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
    """Return the path of the file with a kernel's C types (BTF). The file may not exist."""
    return image.with_name(image.name.replace("vmlinuz-", "types-", 1))


def require() -> Path:
    """Return the image of the VM's kernel. Raises `MachineLacks` if there is none."""
    image = find()
    if image is None:
        raise MachineLacks(
            f"start the VM: no kernel in {cache() / 'vm'}. Try: ./run_lab.sh setup-emulation"
        )
    return image


def kvm_file() -> Path:
    return cache() / "vm" / "kvm.json"


def remembered_kvm() -> bool | None:
    """Return the stored result of the KVM test; None if KVM was not tested with this kernel.

    The result is False, without a test, if this user may not open /dev/kvm.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    try:
        answer = json.loads(kvm_file().read_text())
    except (OSError, ValueError):
        return None
    return bool(answer["works"]) if answer.get("kernel") == platform.release() else None


def download(folder: Path) -> Path:
    """Put the Debian package of the VM's kernel into a folder, and return its path.

    It is copied from the kit (`lab.kit`). Without a kit, the package that META_PACKAGE depends on
    now is downloaded. Raises `MachineLacks` if this fails.
    """
    try:
        if packed := kit.part(kit.KERNEL):
            return Path(shutil.copy(next(packed.glob("*.deb")), folder))
        depends = shell.run(["apt-cache", "depends", META_PACKAGE], "find the VM's kernel")
        package = depends.split("Depends: ")[1].split()[0]
        shell.run(
            ["apt-get", "download", "-q", package], f"download {package}", cwd=folder, timeout_s=900
        )
        return next(folder.glob(f"{package}_*.deb"))
    except (CommandFailed, IndexError, StopIteration) as problem:
        raise MachineLacks(
            f"download the VM's kernel {META_PACKAGE}: {problem}. With a network, try: "
            "sudo apt update, then the same command again; "
            f"without one, copy {cache() / 'vm'} from a machine that has it"
        ) from problem
