"""Build the root file system of the VM from which the snapshot is made: an ext4 image.

The image has copies of files of this machine, at their own paths: kernel modules, the programs that
every run starts, their shared libraries, Python, and the modules that warm_python.py imports. After
it has been restored, the guest also mounts all other files of this machine.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.errors import LabError
from vm import guest
from vm.install_kernel import GUEST_MODULES

INIT = guest.HERE / "snapshot_init.sh"
CODE_PATCHING = guest.HERE / "code_patching.sh"
OPEN_VSWITCH = guest.HERE / "open_vswitch.sh"
WARM_PYTHON = guest.HERE / "warm_python.py"
ROOT = guest.HERE / "restored_root.py"
FIRST_INIT = """#!/bin/sh
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
for module in /modules/*; do insmod $module; done
mount -t ext4 -o ro,noload /dev/vda /image
mount -t tmpfs changes /changes; mkdir /changes/new /changes/work
mount -t overlay -o lowerdir=/image,upperdir=/changes/new,workdir=/changes/work overlay /root
for each in dev proc sys image; do mount -o move /$each /root/$each; done
exec switch_root /root /snapshot_init.sh
"""
FIRST_MODULES = ("crc32c_generic", "virtio_blk", "ext4", "overlay")
# modules that the kernel would load when they are first needed, and those of the mounts
FURTHER_MODULES = (
    *("veth", "inet_diag", "tcp_diag", "mptcp_diag", "udp_diag", "9p", "9pnet_virtio"),
    *("tcp_bbr", "tcp_dctcp"),
)
WITH_OPTIONS = {"ifb", "mac80211_hwsim"}  # snapshot_init.sh loads these itself
PROGRAMS = (
    *("bash", "sh", "busybox", "mount", "umount", "cat", "cp", "mv", "rm", "ln", "mkdir", "mkfifo"),
    *("mountpoint", "sleep", "date", "stat", "sync", "touch", "env", "pgrep", "ps", "kill"),
    *(
        "modprobe",
        "sysctl",
        "ip",
        "tc",
        "ss",
        "ethtool",
        "ifconfig",
        "iw",
        "hostapd",
        "mnexec",
        "ping",
    ),
    *("ovs-vsctl", "ovs-ofctl", "ovs-vswitchd", "ovsdb-server", "bpftool"),
)
DATA = (
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/protocols"),
    *("/etc/hosts", "/etc/services", "/etc/localtime", "/lib/modprobe.d", "/etc/iproute2"),
    # without these the kernel refuses every 5 GHz channel
    *("/lib/firmware/regulatory.db", "/lib/firmware/regulatory.db.p7s"),
)
SOURCES = ("pox/pox.py", "pox/pox", "mininet/mininet", "mininet-wifi/mn_wifi")
NOT_NEEDED = ("test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip")
EMPTY_FOLDERS = ("proc", "sys", "dev", "run", "tmp", "root", "image", "mnt", "var/log")


class Image:
    """A folder with copies of files, from which `build` makes the root file system of a VM."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: set[Path] = set()
        """The files of this machine that were copied."""

    def add(self, path: Path) -> None:
        """Copy a file or folder, and all symbolic links on its path.

        Do nothing if it does not exist.
        """
        place = Path("/")
        parts = list(Path(os.path.abspath(path)).parts[1:])
        while parts:
            place = place / parts.pop(0)
            copy = self.root / place.relative_to("/")
            try:
                kind = os.lstat(place).st_mode
            except OSError:
                return
            if stat.S_ISLNK(kind):
                target = os.readlink(place)
                if not copy.is_symlink():
                    copy.symlink_to(target)
                parts = [*Path(os.path.normpath(place.parent / target)).parts[1:], *parts]
                place = Path("/")
            elif stat.S_ISDIR(kind):
                copy.mkdir(exist_ok=True)
            elif stat.S_ISREG(kind) and place not in self.files:
                shutil.copy2(place, copy)
                self.files.add(place)
        if place.is_dir():
            for each in sorted(place.iterdir()):
                self.add(each)

    def write(self, name: str, text: str) -> None:
        """Write an executable file into the image. `name` is its path in the image."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def build(self, target: Path) -> None:
        """Write the folder into the file `target`, as an ext4 file system."""
        used = shell.run(["du", "-sm", "--apparent-size", str(self.root)], "measure the image")
        size_mb = int(used.split()[0]) * 5 // 4 + 64
        argv = ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", "-d", str(self.root)]
        environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        argv = ["env", *argv, str(target), f"{size_mb}M"]
        shell.run(argv, "make the snapshot's image", env=environment)


def collect(image: Image, kernel: Path) -> None:
    """Copy into the image all files that the guest needs before it mounts this machine's files."""
    for name in EMPTY_FOLDERS:
        (image.root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64", "var/run"):  # links on today's systems
        if Path("/", name).is_symlink():
            (image.root / name).symlink_to(os.readlink(Path("/", name)))
    programs = [path for name in PROGRAMS if (path := _program(name))]
    warm = [Path(each) for each in _warm_files()]
    binaries = [*programs, *_python(), *(each for each in warm if ".so" in each.name)]
    libraries = _libraries(binaries)
    data = [Path(each) for each in (*DATA, guest.SWITCH_SCHEMA)]
    venv = [Path(sys.prefix, "pyvenv.cfg"), *_site_packages().glob("*.pth")]
    for path in (*binaries, *libraries, *warm, *data, *venv, *_standard_library()):
        image.add(path)
    for path in (
        upstreams.hwsim_mgmt(),
        CODE_PATCHING,
        OPEN_VSWITCH,
        WARM_PYTHON,
        ROOT,
        *map(upstreams.folder, SOURCES),
    ):
        image.add(path)
    _add_modules(image, kernel)
    image.write("snapshot_init.sh", INIT.read_text())
    image.write("settings.sh", _settings(programs))
    guest.write_switch_database(image.root / "switches.db")


def warm_folders() -> list[Path]:
    """Return the folders that a restored guest reads from the image first, then from this machine.

    The files in the image are already in the guest's memory, so reading them is fast. Folders
    inside /usr are left out.
    """
    folders = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    folders.add(upstreams.folder().resolve())
    return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))


def write_first_file_system(kernel: Path, target: Path) -> None:
    """Write the initramfs of the VM into the file `target`.

    It loads the kernel modules that are needed to mount the image, and mounts the image.
    """
    busybox = _program("busybox")
    if busybox is None:
        raise LabError("make the snapshot: busybox is missing. Try: ./run_lab.sh setup-emulation")
    with target.open("wb") as file:
        archive = import_module("virtme.cpiowriter").CpioWriter(file)
        for name in ("bin", "modules", "dev", "proc", "sys", "image", "changes", "root"):
            archive.mkdir(name.encode(), 0o755)
        archive.write_file(b"bin/busybox", busybox.read_bytes(), 0o755)
        for name in ("sh", "mount", "mkdir", "insmod", "switch_root"):
            archive.symlink(b"busybox", f"bin/{name}".encode())
        for number, module in enumerate(_needed(kernel, FIRST_MODULES)):
            name = f"modules/{number:02d}-{module.name.removesuffix('.xz')}"
            archive.write_file(name.encode(), _unpacked(module), 0o644)
        archive.write_file(b"init", FIRST_INIT.encode(), 0o755)
        archive.write_trailer()


def _settings(programs: Iterable[Path]) -> str:
    """Return shell commands that set the environment variables for snapshot_init.sh."""
    settings = guest.environment() | {
        "PROJECT": str(guest.PROJECT),
        "PYTHON": sys.executable,
        "POX": str(upstreams.folder("pox")),
        "MODULES": " ".join(sorted({*GUEST_MODULES, *FURTHER_MODULES} - WITH_OPTIONS)),
        "OVERLAID": " ".join(guest.OVERLAID),
        "WARM": "\n".join(map(str, warm_folders())),
        "PROGRAMS": " ".join(map(str, programs)),
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())


def _program(name: str) -> Path | None:
    found = shutil.which(name, path=f"{guest.SYSTEM_PATH}:{os.environ.get('PATH', '')}")
    return Path(found) if found else None


def _python() -> Iterator[Path]:
    yield Path(sys.executable)
    yield from Path(_library_folder(), "lib-dynload").glob("*.so")


def _library_folder() -> Path:
    return Path(os.__file__).parent


def _standard_library() -> Iterator[Path]:
    for each in _library_folder().iterdir():
        if each.name not in NOT_NEEDED and not each.name.startswith("config-"):
            yield each


def _site_packages() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.prefix, "lib", version, "site-packages")


def packages() -> list[str]:
    """Return the names of the installed Python packages, with their versions."""
    return sorted(each.name for each in _site_packages().glob("*.dist-info"))


def _warm_files() -> list[str]:
    """Return the paths of all files that are read by the imports of warm_python.py."""
    argv = [sys.executable, str(WARM_PYTHON), "list", str(upstreams.folder("pox"))]
    environment = os.environ | guest.environment()
    listed = shell.run(argv, "list what the snapshot imports", cwd=guest.PROJECT, env=environment)
    found: list[str] = json.loads(listed.splitlines()[-1])
    return found


def _libraries(binaries: Iterable[Path]) -> set[Path]:
    """Return the paths of the shared libraries that the files in `binaries` load."""
    argv = ["sh", "-c", 'ldd "$@" 2>/dev/null || true', "ldd", *map(str, binaries)]
    listed = shell.run(argv, "list the programs' libraries")
    return {Path(found) for found in re.findall(r"^\t(?:.* => )?(/.*) \(0x", listed, re.MULTILINE)}


def _needed(kernel: Path, names: Iterable[str]) -> list[Path]:
    """Return the files of these kernel modules, and of all modules that they depend on.

    A module comes after the modules that it depends on.
    """
    folder = vm_kernel.modules(kernel)
    lines = (folder / "modules.dep").read_text().splitlines()
    table = {}
    for line in lines:
        path, _, needs = line.partition(":")
        name = Path(path).name.partition(".")[0].replace("-", "_")
        table[name] = [*needs.split()[::-1], path]
    found = [file for name in names for file in table.get(name, ())]
    return [folder / file for file in dict.fromkeys(found)]


def _unpacked(module: Path) -> bytes:
    data = module.read_bytes()
    return lzma.decompress(data) if module.suffix == ".xz" else data


def _add_modules(image: Image, kernel: Path) -> None:
    folder, version = vm_kernel.modules(kernel), vm_kernel.version(kernel)
    for index in folder.glob("modules.*"):
        image.add(index)
    for module in _needed(kernel, (*GUEST_MODULES, *FURTHER_MODULES)):
        image.add(module)
    link = image.root / "usr/lib/modules" / version
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(folder)
