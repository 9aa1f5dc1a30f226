"""Install everything that the emulation needs: `./run_lab.sh setup-emulation`.

If a step of the set-up fails, its error says what to type, and the next steps still run. A step
does nothing if its result exists. So a machine without a network can use a copy of the cache folder
of another machine. With a kit beside the lab (`lab.kit`), everything comes from the kit.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from lab import kit
from lab.engines.mininet import in_vm
from lab.engines.mininet.ebpf import LAWS, build
from lab.engines.mininet.kernel import subflow_rates
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.engines.mininet.machine.packages import PACKAGES
from lab.engines.mininet.network import packet_programs
from lab.errors import CommandFailed, LabError, MachineLacks
from lab.isolation import python

PROJECT = Path(__file__).resolve().parents[4]
SETUP = "./run_lab.sh setup-emulation"


@dataclass(frozen=True)
class Step:
    """A step of the set-up. The emulation can run even if an `optional` step fails.

    `run` returns a text that says what was done. It raises `LabError` if the step fails.
    """

    name: str
    run: Callable[[], str]
    optional: bool = False


def steps() -> list[Step]:
    return [
        Step("packages", install_packages),
        Step("Python packages", install_python_packages),
        *(
            Step(each.name, partial(upstreams.fetch, each), each.optional)
            for each in upstreams.UPSTREAMS
        ),
        Step("hwsim_mgmt", build_hwsim_mgmt),
        Step("wmediumd's program", build_wmediumd, optional=True),
        Step("bytecode", compile_upstreams),
        Step("WiFi cell", lambda: f"compiled as {packet_programs.cell_program().name}"),
        Step("WiFi by DCF", lambda: f"compiled as {packet_programs.cell_program('dcf').name}"),
        Step("switch ports", lambda: f"compiled as {packet_programs.port_program().name}"),
        Step("pacing", lambda: f"compiled as {subflow_rates.pacing_program().name}"),
        Step("VM kernel", partial(in_vm.prepare, "install kernel")),
        Step("KVM", try_kvm, optional=True),
        Step("VM kernel's types", read_types, optional=True),
        Step("coupled congestion control", compile_laws, optional=True),
        Step("VM snapshot", partial(in_vm.prepare, "make snapshot"), optional=True),
    ]


def main() -> int:
    """Run every step and print one line for each.

    The line of a failed step says what to type. Returns 0 if all required steps succeeded,
    otherwise 3.
    """
    missing = False
    for step in steps():
        try:
            print(f"{step.name}: {step.run()}", flush=True)
        except LabError as problem:
            missing = missing or not step.optional
            note = "left out, optional: " if step.optional else ""
            print(f"{step.name}: {note}{problem}", file=sys.stderr, flush=True)
    if missing:
        print("Something is missing; the lines above say what to type.")
        return MachineLacks.exit_code
    print(f"Everything is in {upstreams.cache()}. Try: ./run_lab.sh doctor")
    return 0


def install_packages() -> str:
    """Install the missing Debian packages; return what was done, as text.

    Raises `MachineLacks`, with the command to type, if this process is not root or if apt fails.
    """
    missing = missing_packages()
    if not missing:
        return "already there"
    install = f"apt install {' '.join(missing)}"
    if os.geteuid() != 0:
        raise MachineLacks(f"install {len(missing)} packages: this needs root. Try: sudo {install}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    argv = ["install", "-y", "-q", "--no-install-recommends", *missing]
    try:
        with _apt() as apt:
            shell.run([*apt, *argv], "install packages", env=environment)
    except CommandFailed as problem:
        raise MachineLacks(
            f"install packages: {shell.last_line(problem)}. With a network, try: "
            f"sudo apt update && sudo {install}"
        ) from problem
    return f"installed {' '.join(missing)}"


@contextlib.contextmanager
def _apt() -> Iterator[list[str]]:
    """Yield the beginning of a command of apt, which knows the packages of the kit alone if there
    is one. Raise `MachineLacks` if the kit is for another system."""
    packed = kit.part(kit.PACKAGES)
    if not packed:
        yield ["apt-get"]
        return
    if (wanted := kit.about().get("system")) != kit.system():
        raise MachineLacks(
            f"install packages: the kit is for {wanted}, and this machine is {kit.system()}. "
            "Pack a kit on a machine with the same system as this one"
        )
    with tempfile.TemporaryDirectory(prefix="lab-apt-") as folder:
        source, lists, parts = (Path(folder, each) for each in ("kit.list", "lists", "parts"))
        parts.mkdir()
        (lists / "partial").mkdir(parents=True)
        source.write_text(f"deb [trusted=yes] file:{quote(str(packed))} ./\n", encoding="utf-8")
        apt = [
            *("apt-get", "-o", f"Dir::Etc::sourcelist={source}"),
            *("-o", f"Dir::Etc::sourceparts={parts}", "-o", f"Dir::State::lists={lists}"),
            *("-o", "APT::Sandbox::User=root"),
        ]
        shell.run([*apt, "update", "-q"], "read the kit's packages")
        yield apt


def missing_packages() -> list[str]:
    names = [package.name for package in PACKAGES]
    argv = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"]
    try:
        listed = shell.run(argv, "list the installed packages")
    except MachineLacks as problem:
        raise MachineLacks(
            "list the installed packages: this is not Debian or Ubuntu. "
            f"Install the equivalents of: {' '.join(names)}"
        ) from problem
    installed = {line.split()[1] for line in listed.splitlines() if line.startswith("installed ")}
    return [name for name in names if name not in installed]


def install_python_packages() -> str:
    """Install the Python packages of locks/emulation.txt; return what was done, as text.

    Nothing is done if the versions in requirements-emulation.txt are already installed.
    """
    file, lock = PROJECT / "requirements-emulation.txt", PROJECT / "locks" / "emulation.txt"
    wanted = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
    if all(_installed(*each.split("==")) for each in wanted if each):
        return "already there"
    pip = python("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    pip += kit.pip_options()
    try:
        shell.run([*pip, "--require-hashes", "-r", str(lock)], f"install {lock.name}")
    except CommandFailed as problem:
        raise MachineLacks(
            f"install {file.name}: {shell.last_line(problem)}. With a network, try: {SETUP}"
        ) from problem
    return f"installed {file.name}"


def build_hwsim_mgmt() -> str:
    """Build hwsim_mgmt, the program that makes simulated radios."""
    packages = "libnl-3-dev libnl-genl-3-dev libevent-dev pkg-config make gcc"
    return _build("hwsim_mgmt", upstreams.hwsim_mgmt(), packages)


def build_wmediumd() -> str:
    """Build wmediumd, a program with an alternative model of the radio channel."""
    packages = "libconfig-dev libnl-3-dev libnl-genl-3-dev libevent-dev pkg-config make gcc"
    return _build("wmediumd", upstreams.wmediumd(), packages)


def _build(name: str, program: Path, packages: str) -> str:
    if os.access(program, os.X_OK):
        return "already built"
    if not program.parent.is_dir():
        raise MachineLacks(f"build {name}: its sources are missing, see above. Try: {SETUP}")
    try:
        shell.run(["make", "-C", str(program.parent)], f"build {name}")
    except CommandFailed as problem:
        raise MachineLacks(f"{problem}. Try: sudo apt install {packages}") from problem
    return "built"


def compile_upstreams() -> str:
    """Compile the Python files of POX, Mininet and Mininet-WiFi to bytecode.

    The VM cannot write into the cache folder, so it would compile them in every run. A stamp file
    for this version of Python names the commits that were compiled. Nothing is done if the cache
    still has these commits.
    """
    stamp = upstreams.folder() / f".compiled-{sys.implementation.cache_tag}"
    sources = [
        upstreams.folder(name) for name in ("pox/pox", "mininet/mininet", "mininet-wifi/mn_wifi")
    ]
    commits = " ".join(str(upstreams.commit(source.parent)) for source in sources)
    compiled = all((source / "__pycache__").is_dir() for source in sources)
    if compiled and stamp.exists() and stamp.read_text() == commits:
        return "already compiled"
    if not all(source.is_dir() for source in sources):
        raise MachineLacks(f"compile the upstreams: some are missing, see above. Try: {SETUP}")
    files = [*map(str, sources), str(upstreams.folder("pox") / "pox.py")]
    argv = python("-m", "compileall", "-q", *files)
    with contextlib.suppress(CommandFailed):  # a few files of POX are Python 2; the rest compiles
        shell.run(argv, "compile the upstreams")
    stamp.write_text(commits)
    return "compiled"


def try_kvm() -> str:
    """Test KVM and store the result, so that the first run does not need to test it."""
    image = vm_kernel.find()
    if image is None or not shutil.which("qemu-system-x86_64"):
        raise MachineLacks(f"try KVM: the VM's kernel or QEMU is missing, see above. Try: {SETUP}")
    return in_vm.prepare("try KVM")


def read_types() -> str:
    """Boot the VM, and copy the C types (BTF) that its kernel publishes into the cache.

    Congestion controls are compiled against these types. Nothing is done if the copy exists.
    """
    target = vm_kernel.types(vm_kernel.require())
    if target.exists():
        return "already there"
    with tempfile.TemporaryDirectory(prefix="shared-", dir=upstreams.cache() / "vm") as shared:
        draft = Path(shared, "types")
        command = in_vm.GuestCommand(["cp", str(build.RUNNING), str(draft)], Path(shared))
        status = in_vm.run_in_vm(command)
        if status != 0:
            raise MachineLacks(
                f"read the types of the VM's kernel: it publishes none (status {status})"
            )
        draft.rename(target)
    return f"written to {target.name}"


def compile_laws() -> str:
    """Compile the coupled congestion controls (`LAWS`) for the kernels of this machine and the VM.

    Returns what was done, as text. A kernel that cannot run them is left out. Raises `MachineLacks`
    if neither kernel can run them.
    """
    image = vm_kernel.find()
    kernels = {"this machine": build.RUNNING}
    if image:
        kernels["the VM"] = vm_kernel.types(image)
    able, notes = [], []
    for where, types in kernels.items():
        lacking = build.lacking(types)
        if lacking:
            notes.append(f"{where} lacks {', '.join(lacking)}")
        else:
            build.require(LAWS, types)
            able.append(where)
    if not able:
        raise MachineLacks(f"compile {', '.join(LAWS)}: {'; '.join(notes)}. Try: {SETUP}")
    return "; ".join([f"{', '.join(LAWS)} compiled for {' and '.join(able)}", *notes])


def _installed(name: str, version: str) -> bool:
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False
