"""Find out whether KVM, the kernel's accelerator of virtual machines, works on this machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path

from lab.engines.mininet.machine import shell, vm_kernel

TIMEOUT_S = 8  # a working KVM prints within two seconds


def kvm_works(image: Path) -> bool:
    """Return True if KVM can boot the kernel file `image` on this machine.

    KVM can hang although /dev/kvm exists. So the first call boots the kernel for a few seconds, and
    stores the result in kvm.json. Later calls read this file.
    """
    known = vm_kernel.remembered_kvm()
    if known is None:
        known = _try_kvm(image)
        vm_kernel.kvm_file().write_text(
            json.dumps({"works": known, "kernel": platform.release()}) + "\n"
        )
    return known


def _try_kvm(image: Path) -> bool:
    """Boot the kernel with KVM and without a root file system. Return True if it boots.

    The kernel has booted if it reports within `TIMEOUT_S` that it cannot mount a root file system.
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
    printed, deadline = b"", time.monotonic() + TIMEOUT_S
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
