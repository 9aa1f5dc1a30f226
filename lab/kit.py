"""The kit beside the lab: what a machine without a network installs from. `pack-offline` writes it.

kit/about        which machines it fits and from which sources it was made, one KEY VALUE a line
kit/wheels       Python packages; pip compares them with the hashes of the locks
kit/pip.txt      the lock of pip itself
kit/packages     Debian packages and their index
kit/upstreams    the sources of the upstream projects, each with its commit in the file `.commit`
kit/kernel       the Debian package of the VM's kernel

The last three are parts of a kit with the emulation. run_lab.sh uses the first three, too. A copy
of the lab without the folder `kit` installs from the network.
"""

from __future__ import annotations

import platform
from pathlib import Path

from lab import installed
from lab.isolation import ROOT

FOLDER = Path(ROOT, "kit")
ABOUT, WHEELS, PIP = "about", "wheels", "pip.txt"
PACKAGES, UPSTREAMS, KERNEL = "packages", "upstreams", "kernel"


def about() -> dict[str, str]:
    """Return the content of kit/about; {} without a kit."""
    try:
        lines = (FOLDER / ABOUT).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


def part(name: str) -> Path | None:
    """Return a folder of the kit; None without a kit that has it."""
    folder = FOLDER / name
    return folder if about() and folder.is_dir() else None


def pip_options() -> tuple[str, ...]:
    """Return the options with which pip installs from the kit; () without one."""
    return ("--no-index", "--find-links", str(FOLDER / WHEELS)) if about() else ()


def system() -> str:
    """Return the name and release of this machine's system, such as `debian 12`; "" if unknown."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return ""
    return f"{found.get('ID', '')} {found.get('VERSION_ID', '')}".strip()


def commit() -> str | None:
    """Return the git commit from which the kit was made; None if it is not known.

    `+` at the end means that files differ from the commit.
    """
    found = about()
    if not found.get("commit") or found.get("sources_sha256") == installed.sources_sha256():
        return found.get("commit") or None
    return found["commit"].removesuffix("+") + "+"
