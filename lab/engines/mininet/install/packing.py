"""Collect in a kit (`lab.kit`) what the emulation needs: sources, Debian packages and a kernel."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path

from lab import kit
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.engines.mininet.machine.packages import PACKAGES
from lab.errors import CommandFailed, MachineLacks

EPOCH = re.compile(r"_[0-9]+%3a")  # in the name of a file that apt has downloaded
LEFT_OUT = (".git", "__pycache__", "*.o")
INDEX = "Packages"


def pack(folder: Path) -> None:
    """Write the parts of the emulation into the folder of a kit. Raise `MachineLacks` if something
    cannot be fetched."""
    pack_upstreams(folder / kit.UPSTREAMS)
    pack_packages(folder / kit.PACKAGES)
    (folder / kit.KERNEL).mkdir()
    vm_kernel.download(folder / kit.KERNEL)


def pack_upstreams(folder: Path) -> None:
    """Copy the sources, which are fetched if the cache does not have them. Built programs are left
    out."""
    for each in upstreams.UPSTREAMS:
        upstreams.fetch(each)
        target = folder / each.name
        shutil.copytree(
            upstreams.folder(each.name),
            target,
            symlinks=True,
            ignore=shutil.ignore_patterns(*LEFT_OUT),
        )
        (target / ".commit").write_text(each.commit + "\n")
        for program in (upstreams.hwsim_mgmt(), upstreams.wmediumd()):
            if program.is_relative_to(upstreams.folder(each.name)):
                built = target / program.relative_to(upstreams.folder(each.name))
                built.unlink(missing_ok=True)


def pack_packages(folder: Path) -> None:
    """Download the Debian packages, with all that they need on a system that has none, and write
    their index."""
    (folder / "partial").mkdir(parents=True)
    names = [each.name for each in PACKAGES]
    with tempfile.NamedTemporaryFile() as no_packages:
        apt = [
            *("apt-get", "-q", "-y", "--no-install-recommends", "--download-only"),
            *("-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root"),
            *(
                "-o",
                f"Dir::State::status={no_packages.name}",
                "-o",
                f"Dir::Cache::archives={folder}",
            ),
        ]
        try:
            shell.run([*apt, "install", *names], "download Debian packages", timeout_s=3600)
        except CommandFailed as problem:
            raise MachineLacks(
                f"download Debian packages: {shell.last_line(problem)}. With a network, try: "
                "sudo apt update, and the same command again"
            ) from problem
    (folder / "partial").rmdir()
    (folder / "lock").unlink(missing_ok=True)
    write_index(folder)


def write_index(folder: Path) -> None:
    """Write the index from which apt knows the packages in a folder."""
    stanzas = []
    for path in sorted(folder.glob("*.deb")):
        file = path.rename(path.with_name(EPOCH.sub("_", path.name)))
        control = shell.run(["dpkg-deb", "--field", str(file)], f"read {file.name}").strip()
        content = file.read_bytes()
        stanzas.append(
            f"{control}\nFilename: ./{file.name}\nSize: {len(content)}\n"
            f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    (folder / INDEX).write_text("\n".join(stanzas), encoding="utf-8")
