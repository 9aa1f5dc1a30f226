"""Prepare the files that a VM starts from, build its boot command, and switch the VM off."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
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

from lab.engines.mininet.kernel import subflow_rates
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import packet_programs
from lab.vm_environment import IN_VM, LOST_SHARE_FILE, SLOW_MACHINE
from vm import accelerator, dilation

PROJECT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).parent
CPUS, MEMORY = "2", "4G"
SWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# folders of the machine that the guest does not see; it sees root's home only if root starts the VM
HIDDEN = (
    *("/tmp", "/run", "/var/tmp", "/var/log", "/var/cache", "/dev"),  # noqa: S108 - chosen on purpose: see the module
    *(("/root",) if os.geteuid() else ()),
)
# folders in which the guest's changes stay in its own memory
OVERLAID = ("/etc", "/lib", "/home", "/opt", "/srv", "/usr", "/var", "/tmp")  # noqa: S108 - chosen on purpose: see the module
# the guest holds no secrets, and a kernel's protections are slow on an emulated processor
KERNEL_OPTIONS = (
    "mitigations=off",
    "init_on_alloc=0",
    "hardened_usercopy=off",
    "randomize_kstack_offset=off",
    "lsm=capability",
    "audit=0",
    "loglevel=5",
)
# without KVM: the guest starts its second processor itself (code_patching.sh). It does not test its
# timer: the test fails if the VM's clocks are much slower than real time (see `dilation`)
EMULATED_KERNEL_OPTIONS = ("maxcpus=1", "noreplace-smp", "no_timer_check")
# without KVM these are slow: copying byte by byte (erms, fsrm), memory protection (smap, smep),
# five levels of page tables (la57) and wide registers (avx)
EMULATED_PROCESSOR = "max,-erms,-fsrm,-smap,-smep,-la57,-avx,-avx2"
ALIASES = "/tmp/multipath-lab"  # noqa: S108 - in the guest
LOST_SHARE = "lost_share"  # a file in the folder `vm`, see machine/lost_time.py
PASSED_ON = ("MULTIPATH_LAB_", "PYTHON", "LANG", "LC_", "TERM", "COLUMNS")
STATISTICS_INTERVAL_MS = "3600000"  # nothing reads the port counters in Open vSwitch's database


def prepare(argv: list[str], shared: Path, files: Iterable[tuple[Path, Path]] = ()) -> Path:
    """Make the folder `shared`/vm with the files that the guest starts from; return its path.

    `argv` is the command that the guest will run. `files` lists pairs of paths: a file to make in
    the guest, and the file on this machine that has its content. A folder of an earlier VM is
    removed first.
    """
    folder = shared.absolute() / "vm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("output.txt", "errors.txt"):
        (folder / name).touch()
    for place, copy in files:
        _copy(copy, folder / "files" / Path(os.path.abspath(place)).relative_to("/"))
    (folder / "start.sh").write_text(_start_script(argv, folder))
    for air in ("cell", "dcf"):  # compiling is slow in the guest
        packet_programs.cell_program(air)
    packet_programs.port_program()
    subflow_rates.pacing_program()
    for part in ("lab", "controller"):
        compileall.compile_dir(PROJECT / part, quiet=2)
    return folder


def _start_script(argv: list[str], folder: Path) -> str:
    """Return the shell script that the guest runs after its boot.

    The script sets environment variables, then runs guest.sh with the command `argv`. `folder` is
    the folder made by `prepare`.
    """
    settings = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    settings |= environment()
    settings[LOST_SHARE_FILE] = str(folder / LOST_SHARE)
    if not vm_kernel.remembered_kvm():
        settings[SLOW_MACHINE] = "1"
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    command = ["exec", "bash", str(HERE / "guest.sh"), str(folder), str(PROJECT), *argv]
    return "\n".join([*_bound(folder.parent), *lines, shlex.join(command)]) + "\n"


def _bound(shared: Path) -> Iterator[str]:
    """Yield shell lines that mount each folder with an alias (`_alias`) also at its own path."""
    for number, folder in enumerate([*hidden_folders(), str(shared)]):
        if (alias := _alias(number, folder)) != folder:
            path = shlex.quote(folder)
            yield f"if [ -d {alias} ]; then mkdir -p {path}; mount --bind {alias} {path}; fi"


def _alias(number: int, folder: str) -> str:
    """Return the path at which the booted guest mounts a folder of this machine.

    This is the path of the folder, unless it contains a blank. The kernel's command line names the
    folders and cannot contain blanks. So such a folder gets an alias, made from `number`.
    """
    blank = any(character.isspace() for character in folder)
    return f"{ALIASES}/{number}" if blank else folder


def environment() -> dict[str, str]:
    """Return environment variables for all programs in the guest."""
    programs = [Path(sys.executable).parent, upstreams.hwsim_mgmt().parent, SYSTEM_PATH]
    return {
        "MULTIPATH_LAB_CACHE": str(upstreams.cache()),
        IN_VM: "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # the lab has no pydantic plugins, and searching all packages for some takes seconds
        "PYDANTIC_DISABLE_PLUGINS": "1",
        "PATH": ":".join(map(str, programs)),
    }


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def write_switch_database(path: Path) -> None:
    """Make a database for Open vSwitch in the guest, with the one row that Open vSwitch requires.

    `ovsdb-tool` is run on this machine, because in the guest it would take 0.5 s for each of its
    two calls.
    """
    row = {
        "external_ids": ["map", [["system-id", str(uuid.uuid4())]]],
        "other_config": ["map", [["stats-update-interval", STATISTICS_INTERVAL_MS]]],
    }
    insert = {"op": "insert", "table": "Open_vSwitch", "row": row}
    transaction = json.dumps(["Open_vSwitch", insert])
    shell.run(["ovsdb-tool", "create", str(path), SWITCH_SCHEMA], "make the switches' database")
    shell.run(["ovsdb-tool", "transact", str(path), transaction], "fill the switches' database")


def boot_argv(image: Path, shared: Path) -> list[str]:
    """Return the command line that boots a VM with the kernel `image` and the folder `shared`.

    It boots the same VM as `vng -v -r IMAGE --user root ... -- 'bash start.sh'`. The first call of
    this function on a machine tests KVM, which can take some seconds.
    """
    own, visible = str(shared.absolute()), hidden_folders()
    script = shlex.join(["bash", f"{_alias(len(visible), own)}/vm/start.sh"])
    kvm = accelerator.kvm_works(image)
    argv = [*dilation.prefix(kvm=kvm), *_guest_tools(), sys.executable, str(HERE / "start_qemu.py")]
    argv += ["--name", "multipath-lab"]
    argv += ["--kimg", str(image), "--mods", "auto", "--user", "root"]
    argv += ["--script-sh", script, "--cwd", "/"]
    argv += ["--cpus", CPUS, "--memory", MEMORY]
    argv += ["--disable-microvm", "--force-9p", "--verbose", "--show-boot-console"]
    for folder in OVERLAID:
        argv += ["--overlay-rwdir", folder]
    for option in kernel_options(kvm):
        argv += ["--kopt", option]
    if not kvm:
        argv += ["--disable-kvm", "--qemu-opt=-cpu", f"--qemu-opt={EMULATED_PROCESSOR}"]
    for number, each in enumerate(visible):
        # writable folders are mounted first: a read-only one that contains the shared folder would
        # hide it, so it is mounted writable
        kind = "--rwdir" if Path(own).is_relative_to(each) else "--rodir"
        argv += [kind, _mounted(number, each)]
    return [*argv, "--rwdir", _mounted(len(visible), own)]


def _guest_tools() -> list[str]:
    """Return words to put before the boot command, which name the folder of virtme-ng's programs.

    The kernel's command line cannot contain blanks. If the path of the installed programs contains
    a blank, the programs are copied into the cache folder. Otherwise the list is empty.
    """
    found = importlib.util.find_spec("virtme")
    installed = Path(found.origin).parent / "guest" if found and found.origin else Path()
    if not any(character.isspace() for character in str(installed)):
        return []
    copy = upstreams.cache() / "vm" / "guest-tools"
    shutil.copytree(installed, copy, dirs_exist_ok=True)
    return ["env", f"MULTIPATH_LAB_GUEST_TOOLS={copy}"]


def _mounted(number: int, folder: str) -> str:
    alias = _alias(number, folder)
    return folder if alias == folder else f"{alias}={folder}"


def kernel_options(kvm: bool) -> tuple[str, ...]:
    return KERNEL_OPTIONS if kvm else KERNEL_OPTIONS + EMULATED_KERNEL_OPTIONS


def hidden_folders() -> list[str]:
    """Return the folders that the lab needs and that the guest does not see.

    These are inside the folders of `HIDDEN`. Symbolic links are resolved, because `.venv` can be a
    link to the `.venv` of another clone of the repository.
    """
    needed = [PROJECT, *map(Path, (sys.prefix, sys.base_prefix)), upstreams.cache()]
    real = dict.fromkeys(each.resolve() for each in needed)
    outer = [each for each in real if not any(other in each.parents for other in real)]
    hidden = tuple(f"{folder}/" for folder in HIDDEN)
    return [str(folder) for folder in outer if str(folder).startswith(hidden)]


@contextlib.contextmanager
def booted(ledger: Ledger, image: Path, shared: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Boot a VM that runs the start script in `shared`.

    Switch it off at the end of the `with` block.

    Yields the process that starts QEMU. `image` is the kernel file. `ledger` is the list of what
    the clean-up has to remove.
    """
    folder = shared.absolute() / "vm"
    write_switch_database(folder / "switches.db")
    with running(ledger, boot_argv(image, shared), folder) as process:
        yield process


@contextlib.contextmanager
def running(
    ledger: Ledger, argv: list[str], folder: Path, descriptors: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a VM with the command line `argv`. Switch it off at the end of the `with` block.

    Yields the process of `argv`, which is QEMU or starts QEMU. This process inherits the file
    descriptors in `descriptors`. The VM's console is written to console.txt in `folder`. Temporary
    files are also in `folder` and are removed at the end.
    """
    temporary = folder / "temporary"
    temporary.mkdir()
    ledger.record("folder", path=str(temporary))
    with (folder / "console.txt").open("wb") as console:
        process = shell.spawn(
            argv,
            "start the VM",
            text=False,
            env=os.environ | {"TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
            pass_fds=descriptors,
        )
        try:
            ledger.record("process", pid=process.pid)
            yield process
        finally:
            _switch_off(process)
            shutil.rmtree(temporary, ignore_errors=True)


def _switch_off(process: subprocess.Popen[bytes]) -> None:
    """Kill QEMU, then wait up to 2 s for the end of `process`, and kill `process` too.

    `process` is QEMU itself, or a program that has started QEMU and cleans up after it.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        if children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
