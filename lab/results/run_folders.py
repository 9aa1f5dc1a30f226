"""Find the run folders below a folder, such as that of a grid."""

from __future__ import annotations

import os
import re
from pathlib import Path

OF_A_RUN = frozenset(("manifest.json", "result.json"))  # a run folder has at least one of them
NUMBER = re.compile(r"(\d+)")


def below(folder: Path) -> list[Path]:
    """Return all run folders in a folder, at any depth. Numbers in their names are in order.

    The answer is `[folder]` if it is a run folder, or if it has none: reading it then says what is
    wrong. Symbolic links are not followed.
    """
    found = []
    for path, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".")]  # half written
        if not OF_A_RUN.isdisjoint(files):
            found.append(Path(path))
            folders.clear()  # inside a run folder there is no other
    return sorted(found, key=_in_order) or [folder]


def _in_order(folder: Path) -> list[tuple[int, str]]:
    parts = NUMBER.split(str(folder))
    return [(int(each), "") if n % 2 else (0, each) for n, each in enumerate(parts)]
