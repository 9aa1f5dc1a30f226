"""Run a command in a throw-away VM that has a distribution's kernel and this machine's own files.

The guest sees the machine's files read-only, with its own overlay, and one shared folder in which
what it writes appears at once on the machine. The folder `vm` in it holds what passes between both:

    host:   start.sh (environment and command), switches.db (Open vSwitch's database),
            files (the command's files), stop (interrupts the command)
    guest:  console.txt (the kernel's log), guest.txt (guest.sh's log), output.txt and errors.txt
            (the command's output), started, exit_code (the command was started, its status)
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
BOOTS = 3  # attempts, if the kernel panics while it boots
# `vm` starts its command when the guest has all modules and switches
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
    """Describe a command for the VM.

    It runs in the project's folder, and only what it writes into `shared` is kept. `on_poll` is
    called about five times a second. Ctrl-C or SIGTERM calls `on_interrupt` (default: interrupt the
    command, as Ctrl-C would). If the command then runs on for `GRACE_S`, or at the second Ctrl-C,
    the VM is switched off. `show` copies the command's output to this process's output as it comes.
    `files` are files that the command reads: those in a folder that the guest does not see, such as
    /tmp, appear there under the same path.
    """

    argv: list[str]
    shared: Path
    on_poll: Callable[[], None] = lambda: None
    on_interrupt: Callable[[], None] | None = None
    show: bool = False
    files: tuple[Path, ...] = ()


def run_in_vm(command: GuestCommand, *, wait: bool = False) -> int:
    """Boot, run the command, return its exit status, or 130 if the VM was switched off first.

    The machine's emulation lock is held meanwhile; `wait` waits for it. Raises `MachineLacks` if a
    part is missing or another emulation is running, `LabError` if the VM does not start.
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
    """Yield the user's ledger; what an earlier VM or this one leaves is removed."""
    ledger = Ledger(user_ledger())
    ledger.undo_all()
    try:
        yield ledger
    finally:
        ledger.undo_all()


def _run(ledger: Ledger, command: GuestCommand) -> int:
    """Boot and run the command; retry the boot if the kernel panics during it."""
    for _ in range(BOOTS - 1):
        try:
            return _boot_and_run(ledger, command)
        except LabError:
            if (command.shared / "vm" / "started").exists() or not _panicked(command.shared / "vm"):
                raise
            print("the VM's kernel panicked while it booted: booting it again", file=sys.stderr)
    return _boot_and_run(ledger, command)


def _boot_and_run(ledger: Ledger, command: GuestCommand) -> int:
    """Boot the VM and poll it until the command has ended; return its status."""
    image = vm_kernel.require()
    boot = guest.boot_argv(image, command.shared)  # it finds out whether KVM works
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
    """Return whether the guest's kernel panicked, as happens now and then under emulation."""
    console = folder / "console.txt"
    return console.exists() and "Kernel panic" in console.read_text(errors="replace")


class _Monitor:
    """Decide from a VM's folder whether its command is running, has ended or has failed."""

    def __init__(self, folder: Path, interrupt: Callable[[], None]) -> None:
        self._folder, self._interrupt = folder, interrupt
        self._boots_until, self._stops_until = time.monotonic() + BOOT_TIMEOUT_S, float("inf")

    def poll(self, ended: bool, interrupts: int) -> int | None:
        """Return the command's exit status, 130 if it was interrupted too long ago, None to go on.

        `ended` says that QEMU has ended. It is determined before the file is read, so that a status
        written at the end is not missed.
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
    """Collect Ctrl-C and SIGTERM while the block runs, instead of ending this process."""
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
    """Copy what is appended to a file."""

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
    """Return the error of a VM that did not finish its command, with the end of its log."""
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
