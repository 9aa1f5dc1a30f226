"""Find out whether pip installed this copy of the lab, or whether it is a clone.

pip installs the lab's folders in one folder, `mptcp_sdn_lab`. There, the build has added a file
that says what was built (`hatch_build.py`). Runs of a clone are in its folder `data`; runs of an
installed lab are in the user's own folder.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from lab import sudo
from lab.isolation import ROOT

DOOR = "./run_lab.sh"  # the command of a clone
FOLDERS = ("controller", "dashboard", "lab", "scenarios", "templates", "worksheets")
BUILT_FROM = "built_from.json"


def built_from(root: Path | None = None) -> dict[str, str] | None:
    """Return the git commit and the digest of the sources from which the lab was built.

    `root` is the lab's folder, or an unpacked sdist. The keys are `commit`, "" if it was not known,
    and `sources_sha256`. Return None for a clone.
    """
    try:
        file = (root or Path(ROOT)) / BUILT_FROM
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


def sources_sha256(root: Path | None = None) -> str:
    """Return the digest of the names and contents of all files that make up the lab's program."""
    root = root or Path(ROOT)
    files = {
        path.relative_to(root).as_posix(): path
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    digest = hashlib.sha256()
    for name in sorted(files):
        content = hashlib.sha256(files[name].read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def commit() -> str | None:
    """Return the git commit from which an installed lab was built; None if it is not known.

    `+` at the end means that somebody has changed the installed files since.
    """
    built = built_from()
    if not built or not built["commit"]:
        return None
    if sources_sha256() == built["sources_sha256"]:
        return built["commit"]
    return built["commit"].removesuffix("+") + "+"


def how_to_add(name: str) -> str | None:
    """Return what to type to install an optional part of an installed lab; None for a clone."""
    return None if built_from() is None else f"pip install 'mptcp-sdn-lab[{name}]'"


def worded(text: str) -> str:
    """Return `text` with the command that starts this copy of the lab."""
    return text if built_from() is None else text.replace(DOOR, "mptcp-lab")


DATA = Path(ROOT, "data") if built_from() is None else sudo.user_data()
