"""Build QEMU's command line for a snapshot, and control QEMU by QMP, its JSON protocol."""

from __future__ import annotations

import json
import shlex
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

from lab.errors import LabError
from vm import dilation, guest

POLL_S = 0.02
TIMEOUT_S = 30  # of one step, such as loading the state
IGNORE_SHARED = {"capability": "x-ignore-shared", "state": True}  # RAM is in a file already
Message = dict[str, Any]
"""A JSON object of QMP."""


class Files(NamedTuple):
    folder: Path

    @property
    def image(self) -> Path:
        return self.folder / "root.ext4"

    @property
    def initramfs(self) -> Path:
        return self.folder / "initramfs"

    @property
    def ram(self) -> Path:
        return self.folder / "ram"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"


def argv(
    kernel: Path, files: Files, shared: Path, sockets: tuple[int, int], *, kvm: bool, restore: bool
) -> list[str]:
    """Return QEMU's command line.

    If `restore` is True, QEMU restores a VM from the snapshot `files`. It maps the RAM file
    privately, so that the snapshot does not change. Otherwise QEMU boots the VM from which the
    snapshot will be made. `sockets` has two file descriptors: the connection to QMP, and the
    connection to the guest.
    """
    ram = f"memory-backend-file,id=ram,size={guest.MEMORY},mem-path={_escaped(files.ram)}"
    processor = ["-accel", "kvm", "-cpu", "host"] if kvm else ["-accel", "tcg,thread=multi"]
    if not kvm:
        processor += ["-cpu", guest.EMULATED_PROCESSOR]
    drive = f"if=none,id=root,file={_escaped(files.image)},format=raw,readonly=on,file.locking=off"
    host = "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"
    own = f"local,id=own,path={_escaped(shared)},security_model=none,multidevs=remap"
    monitor, line = sockets
    return [
        *("setpriv", "--pdeathsig", "KILL", *dilation.prefix(kvm=kvm)),
        *("qemu-system-x86_64", "-name", "multipath-lab"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,memory-backend=ram", *processor, "-smp", guest.CPUS),
        *("-m", guest.MEMORY, "-object", f"{ram},share={'off' if restore else 'on'}"),
        *("-kernel", str(kernel), "-initrd", str(files.initramfs)),
        *("-append", " ".join(["console=ttyS0", "panic=-1", *guest.kernel_options(kvm)])),
        *("-drive", drive, "-device", "virtio-blk-pci,drive=root"),
        *("-fsdev", host, "-device", "virtio-9p-pci,fsdev=host,mount_tag=hostroot"),
        *("-fsdev", own, "-device", "virtio-9p-pci,fsdev=own,mount_tag=shared"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=line,fd={line}"),
        *("-device", "virtserialport,chardev=line,name=line", "-device", "vmgenid,guid=auto"),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control"),
        *(("-incoming", "defer") if restore else ()),
    ]


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


class Monitor:
    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        self._lines = connection.makefile("rw", encoding="utf-8")
        self._read()  # the greeting
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Message:
        """Run a QMP command and return its result.

        Raises `LabError` if QEMU refuses the command.
        """
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while True:
            answer = self._read()
            if "error" in answer:
                raise LabError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
            if "return" in answer:
                result: Message = answer["return"]
                return result

    def _read(self) -> Message:
        try:
            line = self._lines.readline()
        except OSError as problem:
            raise LabError(f"QEMU does not answer: {problem}") from problem
        if not line:
            raise LabError("QEMU has ended")
        found: Message = json.loads(line)
        return found

    def save(self, state: Path) -> None:
        """Stop the guest, and write the state of its devices into the file `state`.

        The RAM is not written, because it is in a file already (`Files.ram`).
        """
        self.execute("stop")
        self.execute("migrate-set-capabilities", capabilities=[IGNORE_SHARED])
        self.execute("migrate", uri=f"exec:cat >{shlex.quote(str(state))}")
        self._wait("query-migrate", "completed")

    def restore(self, state: Path) -> None:
        """Load the device state from the file `state`, written by `save`.

        The guest then continues.
        """
        self.execute("migrate-set-capabilities", capabilities=[IGNORE_SHARED])
        self.execute("migrate-incoming", uri=f"exec:cat {shlex.quote(str(state))}")
        self._wait("query-migrate", "completed")
        self.execute("cont")

    def _wait(self, query: str, wanted: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while (status := self.execute(query).get("status")) != wanted:
            if status == "failed" or time.monotonic() > deadline:
                raise LabError(f"QEMU's state of the guest was not written or loaded: {status}")
            time.sleep(POLL_S)
