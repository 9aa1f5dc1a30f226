"""The command `pack-offline`: write a kit (`lab.kit`) that sets a machine up without a network."""

from __future__ import annotations

import hashlib
import platform
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from lab import installed, kit
from lab.errors import LabError, MachineLacks, RequestError
from lab.isolation import python
from lab.results.packages import LOCKS, locked_lines
from lab.run.manifest import ROOT, commit

TOP = "mptcp-lab"  # the folder in the archive
WITHOUT_EMULATION = ("run.txt", "fast.txt")  # what run_lab.sh installs for the page and a class
DEFAULT = f"{TOP}-kit.tar"


@click.command("pack-offline")
@click.option(
    "-o",
    "target",
    type=click.Path(path_type=Path),
    default=DEFAULT,
    show_default=True,
    metavar="FILE.tar",
    help="The archive to write.",
)
@click.option(
    "--emulation", is_flag=True, help="Add what setup-emulation installs. Needs Debian or Ubuntu."
)
def pack_offline(target: Path, emulation: bool) -> None:
    """Write one file that sets up another machine without a network.

    That machine needs the same kind of processor and the same minor version of Python. For the
    emulation it needs the same release of the system, too. Unpack the file there with tar, and type
    ./run_lab.sh in its folder. docs/teaching.md says more.
    """
    _refuse(target)
    sources = _sources()
    with tempfile.TemporaryDirectory(
        prefix=f"{target.name}-", dir=target.absolute().parent
    ) as work:
        folder = Path(work, "kit")
        folder.mkdir()
        _write_about(folder / kit.ABOUT, emulation)
        click.echo("downloading Python packages ...", err=True)
        _download_wheels(folder, emulation)
        if emulation:
            from lab.engines.mininet.install import packing

            click.echo("collecting what the emulation needs ...", err=True)
            packing.pack(folder)
        draft = Path(work, target.name)
        _write_archive(draft, sources, folder)
        size, digest = draft.stat().st_size, _sha256(draft)
        draft.rename(target)
    click.echo(f"{target}: {size / 1e6:.0f} MB, SHA-256 {digest}")
    click.echo(f"It fits {_fits(emulation)}. There:")
    click.echo(f"    tar -xf {target.name} && cd {TOP} && ./run_lab.sh")


def _refuse(target: Path) -> None:
    if target.suffix != ".tar":
        raise RequestError(f"pack-offline -o {target}: it must end in .tar: write {target}.tar")
    if target.exists():
        raise RequestError(
            f"pack-offline: {target} is there already: choose another name with -o, or remove it"
        )
    if not target.absolute().parent.is_dir():
        raise RequestError(f"pack-offline: there is no folder {target.parent}")
    if installed.built_from() is not None or kit.about():
        raise MachineLacks("pack-offline: this needs a clone of the lab. Type it there")


def _sources() -> list[str]:
    """Return the paths of all files of this clone that git tracks and that are still there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise MachineLacks(
            "pack-offline: git does not know the files of the lab. Use a clone of it, with git"
        ) from error
    names = [name for name in done.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_symlink() or (ROOT / name).is_file()]


def _write_about(path: Path, emulation: bool) -> None:
    about = {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": _python_version(),
        "commit": commit() or "",
        "sources_sha256": installed.sources_sha256(),
        **({"system": kit.system()} if emulation else {}),
    }
    path.write_text("".join(f"{key} {value}\n" for key, value in about.items()), encoding="utf-8")


def _python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _fits(emulation: bool) -> str:
    where = f"{platform.machine()} with Python {_python_version()}"
    return f"{where} and {kit.system()}" if emulation else where


def _download_wheels(folder: Path, emulation: bool) -> None:
    """Download the packages of the locks, and pip itself. pip compares them with the hashes."""
    lines = locked_lines(LOCKS / "dev.txt", "pip")
    (folder / kit.PIP).write_text(lines, encoding="utf-8")
    wheels = folder / kit.WHEELS
    _download([folder / kit.PIP, *(LOCKS / each for each in WITHOUT_EMULATION)], wheels)
    if emulation:
        _download([LOCKS / "emulation.txt"], wheels, "--prefer-binary")


def _download(locks: Sequence[Path], wheels: Path, which: str = "--only-binary=:all:") -> None:
    argv = python("-m", "pip", "download", "--quiet", "--disable-pip-version-check")
    argv += ["--require-hashes", "--no-deps", which, "--dest", str(wheels)]
    argv += [word for lock in locks for word in ("-r", str(lock))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise LabError(
            f"download Python packages: {last}. Check the network connection, and type the same "
            "command again"
        )


def _write_archive(path: Path, sources: Sequence[str], folder: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in sources:
            archive.add(ROOT / name, f"{TOP}/{name}", recursive=False, filter=_plain)
        for file in _below(folder):
            name = f"{TOP}/kit/{file.relative_to(folder)}"
            archive.add(file, name, recursive=False, filter=_plain)


def _below(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.rglob("*")) if each.is_symlink() or not each.is_dir())


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns the file, and let everybody read it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    runs = member.mode & stat.S_IXUSR
    member.mode = 0o755 if runs else 0o644
    return member


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
