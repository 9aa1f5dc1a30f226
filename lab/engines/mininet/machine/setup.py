"""`./run_lab.sh setup-emulation`: bring what the emulation needs, once. What is there already is left alone.

The steps are independent: one that fails is reported with what to type, and the others still run. Without a network,
everything that is in the cache is found there, and nothing is asked of it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lab.engines.mininet.ebpf import LAWS, build
from lab.engines.mininet.kernel import pacing
from lab.engines.mininet.machine import shell, upstreams
from lab.engines.mininet.machine.packages import PACKAGES
from lab.engines.mininet.network import wifi_cell as cell
from lab.engines.mininet.vm import launch as vm
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.errors import CommandFailed, LabError, MachineLacks

PROJECT = Path(__file__).resolve().parents[4]


def main() -> int:
    """Run every step, print a line for each. 0: all there; 3: something is missing, the lines say what to type."""
    steps: list[tuple[str, Callable[[], str], bool]] = [
        ("packages", packages, False),
        ("Python packages", python_packages, False),
    ]
    steps += [
        (each.name, partial(upstreams.bring, each), each.optional) for each in upstreams.UPSTREAMS
    ]
    steps += [("hwsim_mgmt", build_hwsim_mgmt, False), ("wmediumd's program", build_wmediumd, True)]
    steps += [("bytecode", compile_upstreams, False)]
    steps += [("WiFi cell", lambda: f"compiled as {cell.program().name}", False)]
    steps += [("pacing", lambda: f"compiled as {pacing.program().name}", False)]
    steps += [
        ("VM kernel", kernel.bring, False),
        ("KVM", try_kvm, True),
        ("VM kernel's types", read_types, True),
    ]
    steps += [("coupled congestion control", compile_laws, True)]
    missing = False
    for name, step, optional in steps:
        try:
            print(f"{name}: {step()}", flush=True)
        except LabError as problem:
            missing = missing or not optional
            print(
                f"{name}: {'left out, optional: ' if optional else ''}{problem}",
                file=sys.stderr,
                flush=True,
            )
    print(
        "Some of it is missing; the lines above say what to type."
        if missing
        else f"All of it is in {upstreams.cache()}. Try: ./run_lab.sh doctor"
    )
    return MachineLacks.exit_code if missing else 0


def packages() -> str:
    """Install the Debian packages that are missing; as an ordinary user, say which line to type."""
    missing = missing_packages()
    if not missing:
        return "already there"
    if os.geteuid() != 0:
        raise MachineLacks(
            f"install {len(missing)} packages: this needs root. Try: sudo apt install {' '.join(missing)}"
        )
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        shell.run(
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
            "install packages",
            env=environment,
        )
    except CommandFailed as problem:
        last = (problem.stderr.splitlines() or ["no message"])[-1]
        raise MachineLacks(
            f"install packages: {last}. Try: sudo apt update && sudo apt install {' '.join(missing)}"
        ) from problem
    return f"installed {' '.join(missing)}"


def missing_packages() -> list[str]:
    """The packages dpkg does not list as installed."""
    names = [package.name for package in PACKAGES]
    try:
        listed = shell.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n"],
            "list the installed packages",
        )
    except MachineLacks as problem:
        raise MachineLacks(
            f"list the installed packages: this is not Debian or Ubuntu. Install what matches: {' '.join(names)}"
        ) from problem
    installed = {line.split()[1] for line in listed.splitlines() if line.startswith("installed ")}
    return [name for name in names if name not in installed]


def python_packages() -> str:
    """Install requirements-emulation.txt beside the interpreter that runs this, unless those very versions are there."""
    file = PROJECT / "requirements-emulation.txt"
    wanted = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
    if all(_installed(*each.split("==")) for each in wanted if each):
        return "already there"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        str(file),
    ]
    try:
        shell.run(pip, f"install {file.name}")
    except CommandFailed as problem:
        last = (problem.stderr.splitlines() or ["no message"])[-1]
        raise MachineLacks(
            f"install {file.name}: {last}. With a network, try: ./run_lab.sh setup-emulation"
        ) from problem
    return f"installed {file.name}"


def build_hwsim_mgmt() -> str:
    """Build the program that makes radios, unless it is built."""
    return _build(
        "hwsim_mgmt",
        upstreams.hwsim_mgmt(),
        "libnl-3-dev libnl-genl-3-dev libevent-dev pkg-config make gcc",
    )


def build_wmediumd() -> str:
    """Build the second model of the air, unless it is built."""
    return _build(
        "wmediumd",
        upstreams.wmediumd(),
        "libconfig-dev libnl-3-dev libnl-genl-3-dev libevent-dev pkg-config make gcc",
    )


def _build(name: str, program: Path, packages: str) -> str:
    if os.access(program, os.X_OK):
        return "already built"
    if not program.parent.is_dir():
        raise MachineLacks(
            f"build {name}: its sources are missing, see above. Try: ./run_lab.sh setup-emulation"
        )
    try:
        shell.run(["make", "-C", str(program.parent)], f"build {name}")
    except CommandFailed as problem:
        raise MachineLacks(f"{problem}. Try: sudo apt install {packages}") from problem
    return "built"


def compile_upstreams() -> str:
    """Compile the upstreams' Python: the VM cannot write into the cache, and would compile them at every start.

    The stamp is per interpreter and names the commits it was made from.
    """
    stamp = upstreams.folder() / f".compiled-{sys.implementation.cache_tag}"
    sources = [
        upstreams.folder(name) for name in ("pox/pox", "mininet/mininet", "mininet-wifi/mn_wifi")
    ]
    commits = " ".join(str(upstreams.commit(source.parent)) for source in sources)
    compiled = all((source / "__pycache__").is_dir() for source in sources)
    if compiled and stamp.exists() and stamp.read_text() == commits:
        return "already compiled"
    there = [str(source) for source in sources if source.is_dir()]
    if len(there) < len(sources):
        raise MachineLacks(
            "compile the upstreams: some are missing, see above. Try: ./run_lab.sh setup-emulation"
        )
    argv = [
        sys.executable,
        "-m",
        "compileall",
        "-q",
        *there,
        str(upstreams.folder("pox") / "pox.py"),
    ]
    with contextlib.suppress(
        CommandFailed
    ):  # a few of POX's files are Python 2 still; the others are compiled all the same
        shell.run(argv, "compile the upstreams")
    stamp.write_text(commits)
    return "compiled"


def try_kvm() -> str:
    """Find out whether KVM works, once, so that the first run does not have to."""
    image = kernel.find()
    if image is None or not shutil.which("qemu-system-x86_64"):
        raise MachineLacks(
            "try KVM: the VM's kernel or QEMU is missing, see above. Try: ./run_lab.sh setup-emulation"
        )
    return (
        "works: the VM runs at full speed"
        if kernel.kvm_works(image)
        else "does not work here: the VM runs in software, which is slower"
    )


def read_types() -> str:
    """Boot the VM once, to let its kernel publish its types."""
    image = kernel.require()
    target = kernel.types(image)
    if target.exists():
        return "already there"
    with tempfile.TemporaryDirectory(prefix="shared-", dir=upstreams.cache() / "vm") as shared:
        draft = Path(shared, "types")
        status = vm.run_in_vm(vm.GuestCommand(["cp", str(build.RUNNING), str(draft)], Path(shared)))
        if status != 0:
            raise MachineLacks(
                f"read the types of the VM's kernel: it publishes none (status {status})"
            )
        draft.rename(target)
    return f"written to {target.name}"


def compile_laws() -> str:
    """Compile the coupled laws for this machine's kernel and for the VM's, as far as these can run them."""
    image = kernel.find()
    kernels = {"this machine": build.RUNNING} | ({"the VM": kernel.types(image)} if image else {})
    able = {where: types for where, types in kernels.items() if not build.lacking(types)}
    for types in able.values():
        build.require(LAWS, types)
    lacks = [
        f"{where} lacks {', '.join(build.lacking(types))}"
        for where, types in kernels.items()
        if where not in able
    ]
    if not able:
        raise MachineLacks(
            f"compile {', '.join(LAWS)}: {'; '.join(lacks)}. Try: ./run_lab.sh setup-emulation"
        )
    return "; ".join([f"{', '.join(LAWS)} compiled for {' and '.join(able)}", *lacks])


def _installed(name: str, version: str) -> bool:
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False
