"""Name the sources that decide what runs measure: runs of other sources are not mixed in."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lab.run import manifest
from lab.run.manifest import ROOT

DECIDING = (
    *("controller", "lab/engines", "lab/radio", "lab/run", "lab/scenario", "lab/topologies"),
    *("lab/congestion.py", "lab/extensions.py", "lab/user_file.py"),
)
ENDINGS = {".py", ".c", ".h", ".sh"}


def digest(root: Path = ROOT) -> str:
    """Return twelve digits that change with every file of the engines and strategies.

    A commit is no such name: most commits change pages or texts, and their runs can be kept.
    """
    found = hashlib.sha256()
    for place in DECIDING:
        for path in sorted([root / place, *(root / place).rglob("*")]):
            if path.suffix in ENDINGS and path.is_file():
                found.update(path.relative_to(root).as_posix().encode() + b"\0")
                found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def runs_below(folder: Path) -> Path:
    """Return the folder of the runs of the present sources. Runs of a changed tree have one of
    their own, so that no published page takes them."""
    is_changed = (manifest.commit() or "+").endswith("+")
    return folder / f"{digest()}{'+' if is_changed else ''}"
