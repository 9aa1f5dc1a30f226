"""Run a command in a temporary VM with the kernel of a distribution and the files of this machine.

The guest sees the files of this machine. Its changes stay in its memory and are lost when the VM
ends. Only changes in one shared folder are written to this machine. In this folder, host and guest
exchange files in the folder `vm`:

host:   start.sh (environment and command), switches.db (Open vSwitch's database),
        files (the command's files), stop (interrupts the command), lost_share (how much
        processor time the VM loses to other programs)
guest:  console.txt (the kernel's log), guest.txt (guest.sh's log), output.txt and errors.txt
        (the command's output), started (exists once the command has started), exit_code (the
        command's exit status)
"""

from __future__ import annotations

import contextlib
import functools
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from lab.engines.mininet.in_vm import POLL_S, GuestCommand, interrupts
from lab.engines.mininet.machine import lock, upstreams, vm_kernel
from lab.engines.mininet.machine.ledger import Ledger, user_ledger
from lab.engines.mininet.machine.lost_time import Reporter
from lab.errors import LabError, MachineLacks
from vm import accelerator, guest, snapshot

BOOT_TIMEOUT_S = 120
BOOTS = 3  # at most, if the kernel panics while it boots
# `./run_lab.sh vm` starts its command after the modules are loaded and the switches are running
COMPLETE = (
    "modprobe mac80211_hwsim radios=0; "
    "until [ -e /run/openvswitch/ovs-vswitchd.pid ]; do sleep 0.1; done; "
    'exec "$@"'
)
INTERRUPTED = 130
Starting = Callable[[Path], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]
GRACE_S = 30  # from interrupting the command to switching the VM off


def run_in_vm(command: GuestCommand, *, wait: bool = False) -> int:
    """Start a VM, run the command in it, and return the exit status of the command.

    If another run uses this machine, wait for its end if `wait` is True, else raise `MachineLacks`.
    lab/engines/mininet/in_vm.py lists the other errors, and the effect of an interrupt.
    """
    with lock.hold(f"{command.shared.name} in the VM", wait), _ledger() as ledger:
        return _run(ledger, command)


def show(cmd: list[str]) -> int:
    """Run a command in a VM, print its output, and return its exit status."""
    with lock.hold(f"vm -- {shlex.join(cmd)}"), _ledger() as ledger:
        shared = Path(tempfile.mkdtemp(prefix="shared-", dir=upstreams.cache() / "vm"))
        ledger.record("folder", path=str(shared))
        return _run(ledger, GuestCommand(["sh", "-c", COMPLETE, "sh", *cmd], shared, show=True))


def boot_once(shared: Path) -> list[str]:
    """Boot a VM (no snapshot), run `true` in it, and return the kernel panics: none or one.

    A panic is represented by the last lines of the console. Raises `LabError` for any other
    failure.
    """
    with lock.hold("a boot of the VM", wait=True), _ledger() as ledger:
        try:
            _boot_and_run(ledger, GuestCommand(["true"], shared), ())
        except LabError:
            if not _panicked(shared / "vm"):
                raise
            return [_last_lines((shared / "vm" / "console.txt").read_text(errors="replace"), 40)]
    return []


def make_snapshot() -> bool:
    """Make the snapshot of the VM unless there is a valid one. Return True if it was made now.

    As a test, a VM is restored from the new snapshot. If this fails, the snapshot is removed, and
    `LabError` is raised.
    """
    kernel = vm_kernel.require()
    with lock.hold("the VM's snapshot"), _ledger() as ledger:
        if snapshot.find(kernel):
            return False
        files = snapshot.make(ledger, kernel)
        with tempfile.TemporaryDirectory(prefix="shared-", dir=upstreams.cache() / "vm") as shared:
            starting = functools.partial(snapshot.restored, ledger, kernel, files)
            try:
                _run_in(starting, GuestCommand(["true"], Path(shared)))
            except LabError as problem:
                snapshot.discard(files, str(problem))
                raise
    return True


@contextlib.contextmanager
def _ledger() -> Iterator[Ledger]:
    """Yield the ledger: a list of what VMs of this user have made on this machine.

    Before the `with` block, remove what an earlier VM has left. After the block, remove what the VM
    of the block has made.
    """
    ledger = Ledger(user_ledger())
    ledger.undo_all()
    try:
        yield ledger
    finally:
        ledger.undo_all()


def _run(ledger: Ledger, command: GuestCommand) -> int:
    """Run the command in a VM and return the exit status of the command.

    The VM is restored from its snapshot. If there is no snapshot, or if the command does not start
    in the restored VM, a VM is booted.
    """
    kernel = vm_kernel.require()
    files = snapshot.ready(ledger, kernel)
    if files:
        try:
            starting = functools.partial(snapshot.restored, ledger, kernel, files)
            return _run_in(starting, command)
        except LabError as problem:
            if (command.shared / "vm" / "started").exists():
                raise
            snapshot.discard(files, str(problem))
    return _boot_and_repeat(ledger, command)


def _boot_and_repeat(ledger: Ledger, command: GuestCommand) -> int:
    """Boot a VM, run the command in it, and return the exit status of the command.

    If the kernel panics before the command starts, another VM is booted, up to `BOOTS` in all. The
    consoles of the failed boots are kept as vm/console-1.txt and vm/console-2.txt.
    """
    consoles: list[str] = []
    for _ in range(BOOTS - 1):
        try:
            return _boot_and_run(ledger, command, consoles)
        except LabError:
            folder = command.shared / "vm"
            if (folder / "started").exists() or not _panicked(folder):
                raise
            consoles.append((folder / "console.txt").read_text(errors="replace"))
            text = f"booting it again. The end of its console:\n{_last_lines(consoles[-1], 12)}"
            print(f"the VM's kernel panicked while it booted: {text}", file=sys.stderr)
    return _boot_and_run(ledger, command, consoles)


def _boot_and_run(ledger: Ledger, command: GuestCommand, consoles: Sequence[str]) -> int:
    """Boot one VM, run the command in it, and return the exit status of the command.

    `consoles` has the consoles of earlier boots that failed. They are written to files.
    """
    image = vm_kernel.require()
    accelerator.kvm_works(image)  # the start script says whether the guest is slow
    return _run_in(functools.partial(guest.booted, ledger, image), command, consoles)


def _run_in(starting: Starting, command: GuestCommand, consoles: Sequence[str] = ()) -> int:
    """Start a VM, wait for the end of the command, and return the exit status of the command.

    `starting` starts the VM; its argument is the shared folder. `consoles` has the consoles of
    earlier boots that failed. They are written to files.
    """
    folder = guest.prepare(command.argv, command.shared, command.files)
    for number, text in enumerate(consoles, 1):
        (folder / f"console-{number}.txt").write_text(text)
    monitor = _Monitor(folder)
    files = {"output.txt": sys.stdout, "errors.txt": sys.stderr} if command.show else {}
    output = [Follower(folder / name, to) for name, to in files.items()]
    with interrupts() as received, starting(command.shared) as qemu:
        lost = Reporter(qemu.pid, folder / guest.LOST_SHARE)
        while (status := monitor.poll(qemu.poll() is not None, len(received))) is None:
            lost.poll(time.monotonic())
            for follower in output:
                follower.copy()
            time.sleep(POLL_S)
    for follower in output:
        follower.copy()
    return status


def _panicked(folder: Path) -> bool:
    """Return True if the console in `folder` shows a kernel panic.

    Without KVM, the kernel sometimes panics while it boots.
    """
    console = folder / "console.txt"
    return console.exists() and "Kernel panic" in console.read_text(errors="replace")


class _Monitor:
    """Follows the command in a VM by the files that the guest writes into `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boots_until, self._stops_until = time.monotonic() + BOOT_TIMEOUT_S, float("inf")

    def poll(self, ended: bool, interrupts: int) -> int | None:
        """Return the exit status of the command, or None while the command is running.

        - `ended`: True if QEMU has ended. Check this before the call. Otherwise a status that the
          guest writes just before the end could be missed.
        - `interrupts`: number of Ctrl-C and SIGTERM so far. The first one interrupts the command.
          After that, the result is 130 if the command runs longer than `GRACE_S`, if QEMU ends, or
          if there is a second interrupt.

        Raises `LabError` if QEMU has ended without an interrupt, or if the command has not started
        within `BOOT_TIMEOUT_S`.
        """
        status = self._folder / "exit_code"
        if status.exists():
            return int(status.read_text())
        now = time.monotonic()
        if interrupts and self._stops_until == float("inf"):
            self._stops_until = now + GRACE_S
            (self._folder / "stop").touch()
        if interrupts > 1 or now > self._stops_until or (ended and interrupts):
            return INTERRUPTED
        if ended:
            panicked = _panicked(self._folder)
            reason = "its kernel panicked" if panicked else "it ended by itself"
            raise _failure(self._folder, reason)
        if now > self._boots_until and not (self._folder / "started").exists():
            reason = f"the command had not started after {BOOT_TIMEOUT_S} s"
            raise _failure(self._folder, reason)
        return None


def _failure(folder: Path, reason: str) -> LabError:
    """Return the error for a VM whose command did not finish.

    The message has `reason` and the last lines of the VM's log in `folder`.
    """
    panicked = _panicked(folder)
    guest_log = folder / "guest.txt"
    log = guest_log if guest_log.exists() and not panicked else folder / "console.txt"
    text = log.read_text(errors="replace")
    last = _last_lines(text, 3).splitlines()
    kind, fix = LabError, ""
    if panicked:
        fix = " This happens now and then on an emulated processor. Try: the same command again"
    if "No module named 'virtme'" in text:
        kind, fix = MachineLacks, " Try: ./run_lab.sh setup-emulation"
    return kind(
        f"run a command in the VM: {reason}. {log} ends with: {' / '.join(last) or 'nothing'}.{fix}"
    )


def _last_lines(text: str, count: int) -> str:
    return "\n".join([line.strip() for line in text.splitlines() if line.strip()][-count:])


class Follower:
    def __init__(self, path: Path, to: IO[str]) -> None:
        self._path, self._to, self._at = path, to, 0

    def copy(self) -> None:
        with self._path.open("rb") as source:
            source.seek(self._at)
            new = source.read()
        self._at += len(new)
        if new:
            self._to.write(new.decode(errors="replace"))
            self._to.flush()
