"""A job: one run to make, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.run.engine import Options
from lab.run.outcome import Progress
from lab.run.reading import ALL
from lab.scenario.schema import Scenario

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Job:
    """One run to make.

    `out` is the run folder. If it is None, a new folder is made, named after the time at which the
    run starts. If `vm` is True, the emulation runs inside the virtual machine, whose clocks run
    slower than real time by the factor `dilation`; None: as the environment says.
    """

    scenario: Scenario
    engine: str
    options: Options
    out: Path | None = None
    vm: bool = False
    keep: str = ALL
    dilation: float | None = None

    @property
    def name(self) -> str:
        """The strategy and the seed, such as `none, seed 1`."""
        return f"{self.scenario.strategy.name}, seed {self.scenario.seed}"
