"""Hold options of `crosscheck` and `reproduce` that change how long and how often runs are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """Hold how long each run is, and how often it is repeated if it cannot be used.

    `duration_s` replaces the duration of every run; None keeps the durations. `tries` is how often
    a run of the emulation is made at most, if it fails or overloads the machine.
    """

    duration_s: float | None = None
    tries: int = 3
