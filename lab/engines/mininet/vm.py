"""Run a command in a throw-away VM with a distribution's kernel, on this machine's own files.

The guest sees the machine's files read-only, with an overlay of its own, and one shared folder where what it writes
appears at once. The folder `vm` in it holds what passes between the two:

    host:   start.sh (environment and command), switches.db (Open vSwitch's database), stop (interrupt the command)
    guest:  console.txt (the kernel's log), guest.txt (guest.sh's), output.txt and errors.txt (what the command prints),
            started, exit_code (the command runs, has ended with this status)
"""

from __future__ import annotations

import compileall
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from lab import manifest
from lab.engines.mininet import cell, kernel, lock, pacing, shell, upstreams
from lab.engines.mininet.ledger import Ledger, own
from lab.errors import LabError, MachineLacks, RequestError

PROJECT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
BOOT_TIMEOUT_S = 120
BOOTS = 3  # before a kernel that panics while it boots is given up
SWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
SWITCHES_RUN = "/run/openvswitch/ovs-vswitchd.pid"
POLL_S = 0.2
INTERRUPTED = 130
GRACE_S = 30  # between asking the command to stop and pulling the plug
HIDDEN = ("/tmp", "/run", "/var/tmp", "/var/log", "/var/cache", "/dev", "/root" if os.geteuid() else "/dev")
OVERLAID = ("/etc", "/lib", "/home", "/opt", "/srv", "/usr", "/var", "/tmp")  # the guest may write there, to its own memory
KERNEL_OPTIONS = ("mitigations=off", "audit=0", "loglevel=5")  # nothing in there needs guarding, and it costs a tenth
PASSED_ON = ("MULTIPATH_LAB_", "PYTHON", "LANG", "LC_", "TERM", "COLUMNS")


def run_in_vm(
    argv: list[str],
    shared: Path,
    on_poll: Callable[[], None] = lambda: None,
    cpus: int = 2,
    memory: str = "4G",
    *,
    on_interrupt: Callable[[], None] | None = None,
    show: bool = False,
    wait: bool = False,
) -> int:
    """Boot, run `argv` from the project's folder with `shared` writable, return its exit status.

    `on_poll` is called about five times a second. Ctrl-C or SIGTERM calls `on_interrupt` (default: interrupt the
    command, as Ctrl-C would); if the command then goes on for `GRACE_S`, or at the second Ctrl-C, the VM is switched
    off and 130 returned. `show` copies what the command prints to this process's output, as it comes.
    The machine's emulation lock is held meanwhile; `wait` waits for it.
    Raises `MachineLacks` if a part is missing or another emulation runs, `LabError` if the VM does not start.
    """
    kernel.require()
    with lock.hold(f"{shared.name} in the VM", wait), _ledger() as ledger:
        return _run(ledger, argv, shared, on_poll, cpus, memory, on_interrupt, show)


def main(cmd: list[str]) -> int:
    """`./run_lab.sh vm -- CMD`: run CMD in the VM, print what it prints, return its exit status."""
    if not cmd:
        raise RequestError("vm: no command given. Try: ./run_lab.sh vm -- uname -r")
    kernel.require()
    with lock.hold(f"vm -- {shlex.join(cmd)}"), _ledger() as ledger:
        shared = Path(tempfile.mkdtemp(prefix="shared-", dir=upstreams.cache() / "vm"))
        ledger.record("folder", path=str(shared))
        waiting = [
            "sh",
            "-c",
            f'modprobe mac80211_hwsim radios=0; until [ -e {SWITCHES_RUN} ]; do sleep 0.1; done; exec "$@"',
            "sh",
            *cmd,
        ]  # so that CMD finds a complete machine
        return _run(ledger, waiting, shared, show=True)


@contextlib.contextmanager
def _ledger() -> Iterator[Ledger]:
    """What the VM leaves on this machine, and what an earlier one left: both are gone when the block ends."""
    ledger = Ledger(own())
    ledger.undo_all()
    try:
        yield ledger
    finally:
        ledger.undo_all()


def _run(
    ledger: Ledger,
    argv: list[str],
    shared: Path,
    on_poll: Callable[[], None] = lambda: None,
    cpus: int = 2,
    memory: str = "4G",
    on_interrupt: Callable[[], None] | None = None,
    show: bool = False,
) -> int:
    """Boot and see the command through; a kernel that panics while it boots is booted again."""
    boot = partial(_booted, ledger, argv, shared, on_poll, cpus, memory, on_interrupt, show)
    for _ in range(BOOTS - 1):
        try:
            return boot()
        except LabError:
            if not _panicked(shared / "vm"):
                raise
            print("the VM's kernel panicked while it booted: once more", file=sys.stderr)
    return boot()


def _booted(
    ledger: Ledger,
    argv: list[str],
    shared: Path,
    on_poll: Callable[[], None],
    cpus: int,
    memory: str,
    on_interrupt: Callable[[], None] | None,
    show: bool,
) -> int:
    """Look five times a second: has it ended, has it failed, does somebody want it to stop?"""
    image = kernel.require()
    folder = _prepare(argv, shared)
    watch = _Watch(folder, on_interrupt or (folder / "stop").touch)
    output = [_Follower(folder / "output.txt", sys.stdout), _Follower(folder / "errors.txt", sys.stderr)] if show else []
    with _machine(ledger, _boot_argv(image, shared, cpus, memory), folder) as machine, _interrupts() as interrupts:
        while (status := watch.look(machine.poll() is not None, len(interrupts))) is None:
            on_poll()
            for follower in output:
                follower.copy()
            time.sleep(POLL_S)
    for follower in output:
        follower.copy()
    return status


def _panicked(folder: Path) -> bool:
    """Whether the guest's kernel gave up before the command started, as it now and then does under software emulation."""
    console = folder / "console.txt"
    return not (folder / "started").exists() and console.exists() and "Kernel panic" in console.read_text(errors="replace")


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
            raise _failed(self._folder, "it ended by itself")
        if now > self._boots_until and not (self._folder / "started").exists():
            raise _failed(self._folder, f"the command had not started after {BOOT_TIMEOUT_S} s")
        return None


def _prepare(argv: list[str], shared: Path) -> Path:
    """Write what the guest starts from, and remove what an earlier one left in the folder."""
    shared = shared.absolute()
    if any(character.isspace() for character in str(shared)):
        raise RequestError(
            f"start the VM: the shared folder '{shared}' has a blank in its name, which cannot be passed to it. Rename it"
        )
    folder = shared / "vm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("output.txt", "errors.txt"):
        (folder / name).touch()
    settings = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    settings |= {"MULTIPATH_LAB_CACHE": str(upstreams.cache()), "MULTIPATH_LAB_VM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {manifest.COMMIT: manifest.commit() or ""}
    programs = [
        Path(sys.executable).parent,
        upstreams.hwsim_mgmt().parent,
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]
    settings["PATH"] = ":".join(map(str, programs))
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    lines.append(shlex.join(["exec", "bash", str(HERE / "guest.sh"), str(folder), str(PROJECT), *argv]))
    (folder / "start.sh").write_text("\n".join(lines) + "\n")
    _write_switch_database(folder / "switches.db")
    cell.program(), pacing.program()  # here: a compiler takes its time in the guest
    for part in ("lab", "controller"):
        compileall.compile_dir(PROJECT / part, quiet=2)
    return folder


def _write_switch_database(path: Path) -> None:
    """Open vSwitch's database with its one row, made here because each of these commands takes half a second in the guest."""
    row = {"external_ids": ["map", [["system-id", str(uuid.uuid4())]]]}
    transaction = json.dumps(["Open_vSwitch", {"op": "insert", "table": "Open_vSwitch", "row": row}])
    shell.run(["ovsdb-tool", "create", str(path), SWITCH_SCHEMA], "make the switches' database")
    shell.run(["ovsdb-tool", "transact", str(path), transaction], "fill the switches' database")


def _boot_argv(image: Path, shared: Path, cpus: int, memory: str) -> list[str]:
    """The command line that boots the VM: what `vng -v -r IMAGE --user root ... -- 'bash start.sh'` comes down to."""
    argv = [
        sys.executable,
        str(HERE / "boot.py"),
        "--name",
        "multipath-lab",
        "--kimg",
        str(image),
        "--mods",
        "auto",
        "--user",
        "root",
    ]
    argv += ["--script-sh", shlex.join(["bash", str(shared.absolute() / "vm" / "start.sh")]), "--cwd", "/"]
    argv += ["--cpus", str(cpus), "--memory", memory, "--disable-microvm", "--force-9p", "--verbose", "--show-boot-console"]
    for folder in OVERLAID:
        argv += ["--overlay-rwdir", folder]
    for option in KERNEL_OPTIONS:
        argv += ["--kopt", option]
    if not kernel.kvm_works(image):
        argv.append("--disable-kvm")
    needed = [PROJECT, Path(sys.prefix), Path(sys.base_prefix), upstreams.cache()]
    for each in dict.fromkeys(str(path) for path in needed if str(path).startswith(tuple(f"{folder}/" for folder in HIDDEN))):
        # writable folders are mounted first: one that holds the shared folder must be among them, or it would hide it
        argv += ["--rwdir" if shared.absolute().is_relative_to(each) else "--rodir", each]
    return [*argv, "--rwdir", str(shared.absolute())]


@contextlib.contextmanager
def _machine(ledger: Ledger, argv: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A booting VM that is gone when the block ends. Its temporary files are in a folder of their own."""
    temporary = folder / "temporary"
    temporary.mkdir()
    ledger.record("folder", path=str(temporary))
    with (folder / "console.txt").open("wb") as console:
        environment = os.environ | {"TMPDIR": str(temporary)}
        machine = shell.spawn(
            argv,
            "start the VM",
            text=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        )
        try:
            ledger.record("process", pid=machine.pid)
            yield machine
        finally:
            _switch_off(machine)
            shutil.rmtree(temporary, ignore_errors=True)


def _switch_off(machine: subprocess.Popen[bytes]) -> None:
    """Kill QEMU, so that its parent sees to its remains and ends; and then whatever is left of the two."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            machine.wait(2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(machine.pid, signal.SIGKILL)
    machine.wait()


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects Ctrl-C and SIGTERM while the block runs, instead of ending this process."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {
        number: signal.signal(number, lambda number, _frame: seen.append(number)) for number in (signal.SIGINT, signal.SIGTERM)
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
    log = folder / "guest.txt" if (folder / "guest.txt").exists() else folder / "console.txt"
    last = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()][-3:]
    kind = MachineLacks if "No module named 'virtme'" in log.read_text(errors="replace") else LabError
    cure = " Try: ./run_lab.sh setup-emulation" if kind is MachineLacks else ""
    return kind(f"run a command in the VM: {what}. {log} ends with: {' / '.join(last) or 'nothing'}.{cure}")
