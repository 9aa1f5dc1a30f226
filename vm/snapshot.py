"""Make a snapshot of a VM that has booted and imported Python modules; restore VMs from it.

CACHE/vm/snapshots/NAME/   root.ext4, initramfs, ram, state (see qemu.Files), manifest.json
CACHE/vm/snapshots/NAME.failed   reason of the last failure to make or restore it

NAME is a digest of the kernel, QEMU, QEMU's command line, the path of this project's folder, and
the scripts in it. The manifest lists the files of this machine that are in the snapshot. If one of
them changes, a new snapshot is made. A snapshot is made in another folder, which is renamed when it
is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from vm import accelerator, guest, qemu, snapshot_image
from vm.qemu import Files, Monitor

START = "MULTIPATH_LAB_VM_START"
BOOT = "boot"  # the value of START with which VMs are booted; they are restored otherwise
WARM_UP_TIMEOUT_S = 600  # a crowded machine needs minutes
KEPT = 3  # snapshots: one per project folder and interpreter
RETRY_AFTER_S = 3600  # from a failure to the next attempt


def home() -> Path:
    return upstreams.cache() / "vm" / "snapshots"


def ready(ledger: Ledger, kernel: Path) -> Files | None:
    """Return a valid snapshot, or None if the VM has to be booted.

    Without KVM, this function makes a missing or outdated snapshot, which takes a minute. With KVM,
    a boot is fast, so only the command `setup-emulation` makes a snapshot.
    """
    if not wanted():
        return None
    found = find(kernel)
    kvm = accelerator.kvm_works(kernel)
    if found is None and not (kvm or _failed_lately(_files(kernel))):
        with contextlib.suppress(LabError):
            found = make(ledger, kernel)
    if found:
        os.utime(found.folder)
    return found


def wanted() -> bool:
    """Return True if VMs may be restored from a snapshot, False if they have to be booted.

    It is False if the environment variable MULTIPATH_LAB_VM_START is `boot`.
    """
    return os.environ.get(START) != BOOT


def find(kernel: Path) -> Files | None:
    files = _files(kernel)
    return files if is_valid(files) else None


def is_valid(files: Files) -> bool:
    """Return True if the snapshot exists, and all files of this machine in it are unchanged."""
    try:
        manifest = json.loads(files.manifest.read_text())
    except (OSError, ValueError):
        return False
    return manifest["packages"] == snapshot_image.packages() and all(
        _stamp(Path(path)) == [size, changed] for path, size, changed in manifest["files"]
    )


def make(ledger: Ledger, kernel: Path) -> Files:
    """Make the snapshot and return its files. If another process is making it, wait for its end.

    Progress is printed. On failure, `LabError` is raised, and the reason is stored. For some time
    after that, VMs boot without a snapshot, and nobody tries to make one again.
    """
    kvm, files = accelerator.kvm_works(kernel), _files(kernel)
    home().mkdir(parents=True, exist_ok=True)
    with _lock():
        if not is_valid(files):
            try:
                _make(ledger, kernel, files, kvm)
            except (LabError, OSError) as problem:
                discard(files, str(problem))
                raise LabError(f"make the VM's snapshot: {problem}") from problem
            _remove_old()
    return files


def discard(files: Files, reason: str) -> None:
    """Remove a snapshot, store the reason, and print that VMs are booted."""
    shutil.rmtree(files.folder, ignore_errors=True)
    _failure(files).write_text(f"{reason}\n")
    _say(f"the VM boots instead of being restored from its snapshot: {reason}")


def _make(ledger: Ledger, kernel: Path, files: Files, kvm: bool) -> None:
    """Make the snapshot `files`.

    Modification times are read before the boot. So a file that changes during the boot makes the
    snapshot outdated.
    """
    partial = Files(home() / "partial")
    shutil.rmtree(partial.folder, ignore_errors=True)
    ledger.record("folder", path=str(partial.folder))
    root = partial.folder / "root"
    root.mkdir(parents=True)
    began = time.monotonic()
    manifest: dict[str, object] = {"packages": snapshot_image.packages(), "sources": sources()}
    _say("making the VM's snapshot, once: copying files (1 of 3; about a minute in all)")
    image = snapshot_image.Image(root)
    snapshot_image.collect(image, kernel)
    counted = [path for path in sorted(image.files) if _counts(path)]
    manifest["files"] = [[str(path), *_stamp(path)] for path in counted]
    image.build(partial.image)
    shutil.rmtree(root)
    snapshot_image.write_first_file_system(kernel, partial.initramfs)
    _say("making the VM's snapshot: booting, and importing Python packages (2 of 3)")
    with partial.ram.open("wb") as ram:
        ram.truncate(int(guest.MEMORY.removesuffix("G")) << 30)
    with _started(ledger, kernel, partial, partial.folder, partial.folder, kvm=kvm) as running:
        _, monitor, line = running
        _wait_until_warm(line)
        _say("making the VM's snapshot: writing (3 of 3)")
        monitor.save(partial.state)
    partial.manifest.write_text(json.dumps(manifest))
    shutil.rmtree(files.folder, ignore_errors=True)
    partial.folder.rename(files.folder)
    _failure(files).unlink(missing_ok=True)
    _say(f"the VM's snapshot is ready after {time.monotonic() - began:.0f} s")


@contextlib.contextmanager
def restored(
    ledger: Ledger, kernel: Path, files: Files, shared: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Restore a VM that runs the start script in `shared`. Switch it off at the end of the block.

    Yields the process of QEMU. Raises `LabError` if QEMU does not load the snapshot.
    """
    kvm, shared = accelerator.kvm_works(kernel), shared.absolute()
    with _started(ledger, kernel, files, shared / "vm", shared, kvm=kvm, restore=True) as running:
        process, monitor, line = running
        monitor.restore(files.state)
        line.sendall(_orders(files, shared).encode())
        yield process


def _orders(files: Files, shared: Path) -> str:
    """Return the settings for a restored guest as one line of JSON (`restored_root.Orders`).

    They include the time and a random seed. Both must differ between VMs restored from the same
    snapshot.
    """
    orders = {
        "shared": str(shared),
        "visible": guest.hidden_folders(),
        "time": time.time(),
        "entropy": secrets.token_hex(64),
        "system_id": str(uuid.uuid4()),
        "changed": json.loads(files.manifest.read_text())["sources"] != sources(),
    }
    return json.dumps(orders) + "\n"


@contextlib.contextmanager
def _started(
    ledger: Ledger,
    kernel: Path,
    files: Files,
    folder: Path,
    shared: Path,
    *,
    kvm: bool,
    restore: bool = False,
) -> Iterator[tuple[subprocess.Popen[bytes], Monitor, socket.socket]]:
    """Start QEMU. Yield its process, the QMP monitor, and the connection to the guest."""
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair(), socket.socketpair()]
        for end in (*pairs[0], *pairs[1]):
            stack.enter_context(end)
        (own_monitor, monitor), (own_line, line) = pairs
        sockets = (monitor.fileno(), line.fileno())
        argv = qemu.argv(kernel, files, shared, sockets, kvm=kvm, restore=restore)
        process = stack.enter_context(guest.running(ledger, argv, folder, sockets))
        monitor.close()
        line.close()
        yield process, Monitor(own_monitor), own_line


def _wait_until_warm(line: socket.socket) -> None:
    """Wait until the guest sends `ready`, which means that it has imported the Python modules.

    Raises `LabError` if the VM ends, or if this takes longer than `WARM_UP_TIMEOUT_S`.
    """
    line.settimeout(WARM_UP_TIMEOUT_S)
    received = b""
    while b"ready" not in received:
        try:
            new = line.recv(4096)
        except TimeoutError:
            raise LabError(f"it was not ready after {WARM_UP_TIMEOUT_S} s") from None
        if not new:
            raise LabError("it ended before it was ready")
        received += new


def sources() -> str:
    """Return a digest of the names, sizes and modification times of the lab's Python files."""
    found = [
        path for part in ("lab", "controller") for path in (guest.PROJECT / part).rglob("*.py")
    ]
    return _digest([[str(path), *_stamp(path)] for path in sorted(found)])


def _files(kernel: Path) -> Files:
    return Files(home() / _name(kernel, accelerator.kvm_works(kernel)))


def _name(kernel: Path, kvm: bool) -> str:
    """Return the name of the snapshot: a digest.

    The docstring of the module lists what is digested.
    """
    files, shared = Files(Path("snapshot")), Path("shared")
    command = qemu.argv(kernel, files, shared, (0, 1), kvm=kvm, restore=False)
    program = Path(shutil.which("qemu-system-x86_64") or "/").resolve()
    image = snapshot_image
    scripts = [image.INIT, image.CODE_PATCHING, image.OPEN_VSWITCH, image.WARM_PYTHON, image.ROOT]
    scripts.append(Path(image.__file__))
    interpreter = (sys.executable, sys.prefix, sys.base_prefix, str(upstreams.cache()))
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in scripts]
    parts = [command, _stamp(program), _stamp(kernel), str(guest.PROJECT), interpreter, digests]
    return _digest(parts)[:16]


def _digest(parts: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


def _stamp(path: Path) -> list[int]:
    """Return size [bytes] and modification time [ns] of a file, or [0, 0] if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return [0, 0]
    return [found.st_size, found.st_mtime_ns]


def _counts(path: Path) -> bool:
    """Return True if a change of this file makes the snapshot outdated.

    Bytecode files do not count, because Python compares bytecode with its source. The files of this
    project do not count either: a restored VM imports changed Python files again, and if one of the
    scripts changes, the snapshot has another name.
    """
    own = [guest.PROJECT / part for part in ("lab", "controller", "vm")]
    return path.suffix != ".pyc" and not any(map(path.is_relative_to, own))


def _failure(files: Files) -> Path:
    return files.folder.with_suffix(".failed")


def _failed_lately(files: Files) -> bool:
    try:
        return abs(time.time() - _failure(files).stat().st_mtime) < RETRY_AFTER_S
    except OSError:
        return False


def _remove_old() -> None:
    """Remove all snapshots except the `KEPT` that were used last."""
    folders = [each for each in home().iterdir() if Files(each).manifest.exists()]
    for folder in sorted(folders, key=lambda each: each.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    with (home() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting while another process makes the VM's snapshot")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
