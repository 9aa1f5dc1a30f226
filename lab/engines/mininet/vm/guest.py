"""The VM itself: what its guest starts from, the command line that boots it, and how it is switched off."""

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
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.engines.mininet.kernel import pacing
from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import wifi_cell as cell
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.errors import RequestError
from lab.run import manifest

PROJECT = Path(__file__).resolve().parents[4]
HERE = Path(__file__).parent
CPUS, MEMORY = "2", "4G"
SWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
HIDDEN = (
    "/tmp",
    "/run",
    "/var/tmp",
    "/var/log",
    "/var/cache",
    "/dev",
    "/root" if os.geteuid() else "/dev",
)
OVERLAID = (
    "/etc",
    "/lib",
    "/home",
    "/opt",
    "/srv",
    "/usr",
    "/var",
    "/tmp",
)  # the guest may write there, to its own memory
# nothing in there needs guarding: what a kernel does to be safe is dear on an emulated processor
KERNEL_OPTIONS = (
    "mitigations=off",
    "init_on_alloc=0",
    "hardened_usercopy=off",
    "randomize_kstack_offset=off",
    "lsm=capability",
    "audit=0",
    "loglevel=5",
)
# without KVM: copying byte by byte (erms, fsrm), guarded memory (smap, smep), five levels of page tables and wide registers are slow
EMULATED_PROCESSOR = "max,-erms,-fsrm,-smap,-smep,-la57,-avx,-avx2"
PASSED_ON = ("MULTIPATH_LAB_", "PYTHON", "LANG", "LC_", "TERM", "COLUMNS")


def prepare(argv: list[str], shared: Path, files: Iterable[Path] = ()) -> Path:
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
    for file in files:
        _copy(Path(os.path.abspath(file)), folder / "files")
    settings = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    settings |= {
        "MULTIPATH_LAB_CACHE": str(upstreams.cache()),
        "MULTIPATH_LAB_VM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    settings |= {manifest.COMMIT: manifest.commit() or ""}
    programs = [
        Path(sys.executable).parent,
        upstreams.hwsim_mgmt().parent,
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]
    settings["PATH"] = ":".join(map(str, programs))
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    lines.append(
        shlex.join(["exec", "bash", str(HERE / "guest.sh"), str(folder), str(PROJECT), *argv])
    )
    (folder / "start.sh").write_text("\n".join(lines) + "\n")
    _write_switch_database(folder / "switches.db")
    cell.program(), pacing.program()  # here: a compiler takes its time in the guest
    for part in ("lab", "controller"):
        compileall.compile_dir(PROJECT / part, quiet=2)
    return folder


def _copy(file: Path, folder: Path) -> None:
    """Copy a file into a folder, under its absolute path."""
    copy = folder / file.relative_to("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)


def _write_switch_database(path: Path) -> None:
    """Open vSwitch's database with its one row, made here because each of these commands takes half a second in the guest."""
    seldom = [
        "stats-update-interval",
        "3600000",
    ]  # [ms]; every port's counters into the database: nobody reads them there
    row = {
        "external_ids": ["map", [["system-id", str(uuid.uuid4())]]],
        "other_config": ["map", [seldom]],
    }
    transaction = json.dumps(
        ["Open_vSwitch", {"op": "insert", "table": "Open_vSwitch", "row": row}]
    )
    shell.run(["ovsdb-tool", "create", str(path), SWITCH_SCHEMA], "make the switches' database")
    shell.run(["ovsdb-tool", "transact", str(path), transaction], "fill the switches' database")


def boot_argv(image: Path, shared: Path) -> list[str]:
    """The command line that boots the VM: what `vng -v -r IMAGE --user root ... -- 'bash start.sh'` comes down to."""
    argv = [
        sys.executable,
        str(HERE / "start_qemu.py"),
        "--name",
        "multipath-lab",
        "--kimg",
        str(image),
        "--mods",
        "auto",
        "--user",
        "root",
    ]
    argv += [
        "--script-sh",
        shlex.join(["bash", str(shared.absolute() / "vm" / "start.sh")]),
        "--cwd",
        "/",
    ]
    argv += [
        "--cpus",
        CPUS,
        "--memory",
        MEMORY,
        "--disable-microvm",
        "--force-9p",
        "--verbose",
        "--show-boot-console",
    ]
    for folder in OVERLAID:
        argv += ["--overlay-rwdir", folder]
    for option in KERNEL_OPTIONS:
        argv += ["--kopt", option]
    if not kernel.kvm_works(image):
        argv += ["--disable-kvm", "--qemu-opt=-cpu", f"--qemu-opt={EMULATED_PROCESSOR}"]
    needed = [PROJECT, Path(sys.prefix), Path(sys.base_prefix), upstreams.cache()]
    for each in dict.fromkeys(
        str(path)
        for path in needed
        if str(path).startswith(tuple(f"{folder}/" for folder in HIDDEN))
    ):
        # writable folders are mounted first: one that holds the shared folder must be among them, or it would hide it
        argv += ["--rwdir" if shared.absolute().is_relative_to(each) else "--rodir", each]
    return [*argv, "--rwdir", str(shared.absolute())]


@contextlib.contextmanager
def machine(ledger: Ledger, argv: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A booting VM that is gone when the block ends. Its temporary files are in a folder of their own."""
    temporary = folder / "temporary"
    temporary.mkdir()
    ledger.record("folder", path=str(temporary))
    with (folder / "console.txt").open("wb") as console:
        environment = os.environ | {"TMPDIR": str(temporary)}
        process = shell.spawn(
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
            ledger.record("process", pid=process.pid)
            yield process
        finally:
            _switch_off(process)
            shutil.rmtree(temporary, ignore_errors=True)


def _switch_off(process: subprocess.Popen[bytes]) -> None:
    """Kill QEMU, so that its parent sees to its remains and ends; and then whatever is left of the two."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
