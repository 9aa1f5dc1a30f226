"""Run a command in a throw-away VM with a distribution's kernel and the files of this machine.

The guest sees the machine's files. What it changes there stays in its own memory, and is lost when
the VM ends. Only files in one shared folder are written through to the machine immediately. In the
shared folder, the folder `vm` holds the files that host and guest exchange:

    host:   start.sh (environment and command), switches.db (Open vSwitch's database),
            files (the command's files), stop (interrupts the command)
    guest:  console.txt (the kernel's log), guest.txt (guest.sh's log), output.txt and errors.txt
            (the command's output), started (exists once the command has started), exit_code (the
            command's exit status)
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab.engines.mininet.machine import lock, upstreams
from lab.engines.mininet.machine.ledger import Ledger, user_ledger
from lab.engines.mininet.vm import guest, vm_kernel
from lab.errors import LabError, MachineLacks, RequestError

BOOT_TIMEOUT_S = 120
BOOTS = 3  # boots at most, if the kernel panics while it boots
# `./run_lab.sh vm` starts its command after the modules are loaded and the switches are running
COMPLETE = (
    "modprobe mac80211_hwsim radios=0; "
    "until [ -e /run/openvswitch/ovs-vswitchd.pid ]; do sleep 0.1; done; "
    'exec "$@"'
)
POLL_S = 0.2
INTERRUPTED = 130
GRACE_S = 30  # from interrupting the command to switching the VM off


@dataclass(frozen=True)
class GuestCommand:
    """Describe a command for the VM, and how this process reacts while the command runs.

    The command runs in the project's folder. Only the files that it writes into the folder `shared`
    are kept. `on_poll` is called about five times a second. The first Ctrl-C or SIGTERM calls
    `on_interrupt`; by default this interrupts the command in the guest (SIGINT). The VM is switched
    off if the command is still running `GRACE_S` later, or at the second Ctrl-C. With `show`, the
    output of the command is copied to the output of this process while the command runs. `files`
    are files that the command reads. The guest does not see some folders, such as /tmp; files in
    these are copied into the guest, to the same path.
    """

    argv: list[str]
    shared: Path
    on_poll: Callable[[], None] = lambda: None
    on_interrupt: Callable[[], None] | None = None
    show: bool = False
    files: tuple[Path, ...] = ()


def run_in_vm(command: GuestCommand, *, wait: bool = False) -> int:
    """Boot a VM, run the command in it, and return the exit status of the command.

    The status is 130 if the VM was switched off before the command ended. This process holds the
    machine's emulation lock during the run; with `wait`, it waits until the lock is free. Raises
    `MachineLacks` if the kernel is missing or, without `wait`, if another emulation is running;
    `LabError` if the VM does not start.
    """
    vm_kernel.require()
    with lock.hold(f"{command.shared.name} in the VM", wait), _ledger() as ledger:
        return _run(ledger, command)


def main(cmd: list[str]) -> int:
    """Run CMD in the VM for `./run_lab.sh vm -- CMD`, print its output, return its exit status."""
    if not cmd:
        raise RequestError("vm: no command given. Try: ./run_lab.sh vm -- uname -r")
    vm_kernel.require()
    with lock.hold(f"vm -- {shlex.join(cmd)}"), _ledger() as ledger:
        shared = Path(tempfile.mkdtemp(prefix="shared-", dir=upstreams.cache() / "vm"))
        ledger.record("folder", path=str(shared))
        return _run(ledger, GuestCommand(["sh", "-c", COMPLETE, "sh", *cmd], shared, show=True))


@contextlib.contextmanager
def _ledger() -> Iterator[Ledger]:
    """Yield the user's ledger, in which a VM records its resources on this machine.

    Before the `with` block, the remains of an earlier VM are removed; after it, those of this VM.
    """
    ledger = Ledger(user_ledger())
    ledger.undo_all()
    try:
        yield ledger
    finally:
        ledger.undo_all()


def _run(ledger: Ledger, command: GuestCommand) -> int:
    """Boot the VM, run the command, and return its exit status.

    If the kernel panics before the command starts, boot once more, at most `BOOTS` times in all.
    """
    for _ in range(BOOTS - 1):
        try:
            return _boot_and_run(ledger, command)
        except LabError:
            if (command.shared / "vm" / "started").exists() or not _panicked(command.shared / "vm"):
                raise
            print("the VM's kernel panicked while it booted: booting it again", file=sys.stderr)
    return _boot_and_run(ledger, command)


def _boot_and_run(ledger: Ledger, command: GuestCommand) -> int:
    """Boot the VM once, poll it until the command has ended, and return its exit status."""
    image = vm_kernel.require()
    boot = guest.boot_argv(image, command.shared)  # also finds out whether KVM works
    folder = guest.prepare(command.argv, command.shared, command.files)
    monitor = _Monitor(folder, command.on_interrupt or (folder / "stop").touch)
    files = {"output.txt": sys.stdout, "errors.txt": sys.stderr} if command.show else {}
    output = [_Follower(folder / name, to) for name, to in files.items()]
    with guest.booted(ledger, boot, folder) as qemu, _interrupts() as interrupts:
        while (status := monitor.poll(qemu.poll() is not None, len(interrupts))) is None:
            command.on_poll()
            for follower in output:
                follower.copy()
            time.sleep(POLL_S)
    for follower in output:
        follower.copy()
    return status


def _panicked(folder: Path) -> bool:
    """Return whether the guest's kernel log in `folder` shows a panic.

    Without KVM, the kernel panics now and then.
    """
    console = folder / "console.txt"
    return console.exists() and "Kernel panic" in console.read_text(errors="replace")


class _Monitor:
    """Decide whether the command in a VM is running, has ended or has failed.

    The decision uses the files that the guest writes into `folder`. `interrupt` is called at the
    first Ctrl-C.
    """

    def __init__(self, folder: Path, interrupt: Callable[[], None]) -> None:
        self._folder, self._interrupt = folder, interrupt
        self._boots_until, self._stops_until = time.monotonic() + BOOT_TIMEOUT_S, float("inf")

    def poll(self, ended: bool, interrupts: int) -> int | None:
        """Return the exit status of the command, or None while it is running.

        `ended` says whether QEMU has ended, `interrupts` counts the Ctrl-C and SIGTERM received so
        far. After an interrupt, return 130 if the command runs on for `GRACE_S`, if QEMU ends, or
        at the second interrupt. Raises `LabError` if QEMU ended or the boot took too long. The
        caller determines `ended` before this reads the status, so a status written at the end is
        not missed.
        """
        status = self._folder / "exit_code"
        if status.exists():
            return int(status.read_text())
        now = time.monotonic()
        if interrupts and self._stops_until == float("inf"):
            self._stops_until = now + GRACE_S
            self._interrupt()
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


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM while the `with` block runs, so that they do not end this process.

    Yields a list to which the number of each signal is appended. Outside the main thread signals
    cannot be caught, and the list stays empty.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {
        number: signal.signal(number, lambda number, _frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Follower:
    """Copy a growing text file to an output; each `copy` writes what was appended meanwhile."""

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


def _failure(folder: Path, reason: str) -> LabError:
    """Return the error for a VM whose command did not run to its end.

    The message contains `reason` and the last three lines of the VM's log in `folder`.
    """
    panicked = _panicked(folder)
    guest_log = folder / "guest.txt"
    log = guest_log if guest_log.exists() and not panicked else folder / "console.txt"
    text = log.read_text(errors="replace")
    last = [line.strip() for line in text.splitlines() if line.strip()][-3:]
    kind, fix = LabError, ""
    if panicked:
        fix = " This happens now and then on an emulated processor. Try: the same command again"
    if "No module named 'virtme'" in text:
        kind, fix = MachineLacks, " Try: ./run_lab.sh setup-emulation"
    return kind(
        f"run a command in the VM: {reason}. {log} ends with: {' / '.join(last) or 'nothing'}.{fix}"
    )
