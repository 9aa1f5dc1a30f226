"""Run a command in a throw-away VM with a distribution's kernel, on this machine's own files.

The guest sees the machine's files read-only, with an overlay of its own, and one shared folder where what it writes
appears at once. The folder `vm` in it holds what passes between the two:

    host:   start.sh (environment and command), switches.db (Open vSwitch's database), stop (interrupt the command)
    guest:  console.txt (the kernel's log), guest.txt (guest.sh's), output.txt and errors.txt (what the command prints),
            started, exit_code (the command runs, has ended with this status)
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
from lab.engines.mininet.machine.ledger import Ledger, own
from lab.engines.mininet.vm import guest
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.errors import LabError, MachineLacks, RequestError

BOOT_TIMEOUT_S = 120
BOOTS = 3  # before a kernel that panics while it boots is given up
# what a command of `vm` waits for, so that it finds a complete machine
COMPLETE = 'modprobe mac80211_hwsim radios=0; until [ -e /run/openvswitch/ovs-vswitchd.pid ]; do sleep 0.1; done; exec "$@"'
POLL_S = 0.2
INTERRUPTED = 130
GRACE_S = 30  # between asking the command to stop and pulling the plug


@dataclass(frozen=True)
class GuestCommand:
    """A command for the VM. It runs from the project's folder, and only `shared` of what it writes stays.

    `on_poll` is called about five times a second. Ctrl-C or SIGTERM calls `on_interrupt` (default: interrupt the command,
    as Ctrl-C would); if it then goes on for `GRACE_S`, or at the second Ctrl-C, the VM is switched off. `show` copies what
    the command prints to this process's output, as it comes. `files` are files that the command reads: those in a folder
    that the guest does not see, such as /tmp, appear there under the same path.
    """

    argv: list[str]
    shared: Path
    on_poll: Callable[[], None] = lambda: None
    on_interrupt: Callable[[], None] | None = None
    show: bool = False
    files: tuple[Path, ...] = ()


def run_in_vm(command: GuestCommand, *, wait: bool = False) -> int:
    """Boot, run the command, return its exit status, or 130 if the VM was switched off under it.

    The machine's emulation lock is held meanwhile; `wait` waits for it.
    Raises `MachineLacks` if a part is missing or another emulation runs, `LabError` if the VM does not start.
    """
    kernel.require()
    with lock.hold(f"{command.shared.name} in the VM", wait), _ledger() as ledger:
        return _run(ledger, command)


def main(cmd: list[str]) -> int:
    """`./run_lab.sh vm -- CMD`: run CMD in the VM, print what it prints, return its exit status."""
    if not cmd:
        raise RequestError("vm: no command given. Try: ./run_lab.sh vm -- uname -r")
    kernel.require()
    with lock.hold(f"vm -- {shlex.join(cmd)}"), _ledger() as ledger:
        shared = Path(tempfile.mkdtemp(prefix="shared-", dir=upstreams.cache() / "vm"))
        ledger.record("folder", path=str(shared))
        return _run(ledger, GuestCommand(["sh", "-c", COMPLETE, "sh", *cmd], shared, show=True))


@contextlib.contextmanager
def _ledger() -> Iterator[Ledger]:
    """What the VM leaves on this machine, and what an earlier one left: both are gone when the block ends."""
    ledger = Ledger(own())
    ledger.undo_all()
    try:
        yield ledger
    finally:
        ledger.undo_all()


def _run(ledger: Ledger, command: GuestCommand) -> int:
    """Boot and see the command through; a kernel that panics while it boots is booted again."""
    for _ in range(BOOTS - 1):
        try:
            return _booted(ledger, command)
        except LabError:
            if (command.shared / "vm" / "started").exists() or not _panicked(command.shared / "vm"):
                raise
            print("the VM's kernel panicked while it booted: once more", file=sys.stderr)
    return _booted(ledger, command)


def _booted(ledger: Ledger, command: GuestCommand) -> int:
    """Look five times a second: has it ended, has it failed, does somebody want it to stop?"""
    image = kernel.require()
    folder = guest.prepare(command.argv, command.shared, command.files)
    watch = _Watch(folder, command.on_interrupt or (folder / "stop").touch)
    files = {"output.txt": sys.stdout, "errors.txt": sys.stderr} if command.show else {}
    output = [_Follower(folder / name, to) for name, to in files.items()]
    with (
        guest.machine(ledger, guest.boot_argv(image, command.shared), folder) as machine,
        _interrupts() as interrupts,
    ):
        while (status := watch.look(machine.poll() is not None, len(interrupts))) is None:
            command.on_poll()
            for follower in output:
                follower.copy()
            time.sleep(POLL_S)
    for follower in output:
        follower.copy()
    return status


def _panicked(folder: Path) -> bool:
    """Whether the guest's kernel gave up, as it now and then does under software emulation."""
    console = folder / "console.txt"
    return console.exists() and "Kernel panic" in console.read_text(errors="replace")


class _Watch:
    """Judges a VM by its folder: still at it, done, given up, failed."""

    def __init__(self, folder: Path, interrupt: Callable[[], None]) -> None:
        self._folder, self._interrupt = folder, interrupt
        self._boots_until, self._stops_until = time.monotonic() + BOOT_TIMEOUT_S, float("inf")

    def look(self, ended: bool, interrupts: int) -> int | None:
        """The command's exit status if it has one, 130 if it was interrupted and had its time, None to go on.

        `ended`: QEMU has; asked before the file is read, so that a status written at the end is not missed.
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
            raise _failed(
                self._folder,
                "its kernel panicked" if _panicked(self._folder) else "it ended by itself",
            )
        if now > self._boots_until and not (self._folder / "started").exists():
            raise _failed(self._folder, f"the command had not started after {BOOT_TIMEOUT_S} s")
        return None


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects Ctrl-C and SIGTERM while the block runs, instead of ending this process."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {
        number: signal.signal(number, lambda number, _frame: seen.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Follower:
    """Copies what is added to a file."""

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


def _failed(folder: Path, what: str) -> LabError:
    """Why the VM did not get to the command's end, with its last words."""
    panicked = _panicked(folder)
    log = (
        folder / "guest.txt"
        if (folder / "guest.txt").exists() and not panicked
        else folder / "console.txt"
    )
    last = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()][
        -3:
    ]
    kind = (
        MachineLacks if "No module named 'virtme'" in log.read_text(errors="replace") else LabError
    )
    cure = " Try: ./run_lab.sh setup-emulation" if kind is MachineLacks else ""
    cure = (
        " An emulated processor makes it do so now and then. Try: the same command again"
        if panicked
        else cure
    )
    return kind(
        f"run a command in the VM: {what}. {log} ends with: {' / '.join(last) or 'nothing'}.{cure}"
    )
