"""What becomes of finished runs: comparisons, explanations, tables and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.results.frames import Frames


def load(where: str | Path | Iterable[str | Path]) -> Frames:
    """Return runs as pandas frames, such as `load("data/**").results` (docs/results.md).

    `where` is a folder, a pattern with `*` and `**`, or several. Runs that are damaged or were
    edited are left out with a warning. Raise `RequestError` if there are no runs, and
    `MachineLacks` without pandas.
    """
    from lab.results import frames  # imported here: only notebooks need pandas

    return frames.load([where] if isinstance(where, str | Path) else list(where))
