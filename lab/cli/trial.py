"""Hold the options that change how often and how long the commands of `lab.cli.evidence` run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """Hold the duration that replaces those of all runs in s, or None, and how often a run of the
    emulation is made at most if it fails or overloads the machine."""

    duration_s: float | None = None
    tries: int = 3
