"""The measured numbers of compared runs. They are kept in a file beside the page that shows them,
one JSON object per line.

The run folders of a comparison are large, and stay on the machine that made them. The numbers are
small. With this file, a command that makes only some of the runs can still write the whole page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import RequestError
from papers.page_file import read_page, write_page


@dataclass(frozen=True)
class RunFigures:
    """The measured numbers of one run of a scenario with a strategy in one engine.

    `numbers` maps titles to the compared numbers. `left_out` says why the run cannot be used, and
    is empty for a valid run. `verified` says whether the run really used Multipath TCP; it is None
    if the run had no multipath users. `idle_mean` and `idle_min` are idle shares of the processors
    from 0 to 1, or None if they were not measured. `made_on` names the machine and the git commit.
    `dilation` is the factor by which the clocks of the VM were slower than real time, None outside
    a VM. `wall_s` is the time from the first to the last file of the run, with the VM's start.
    """

    scenario: str
    strategy: str
    engine: str
    seed: int
    rate_scale: float
    duration_s: float
    numbers: Mapping[str, float]
    left_out: str = ""
    verified: bool | None = None
    idle_mean: float | None = None
    idle_min: float | None = None
    made_on: str = ""
    dilation: float | None = None
    wall_s: float | None = None

    @property
    def case(self) -> tuple[str, str]:
        return self.scenario, self.strategy


def read_figures(path: Path) -> list[RunFigures]:
    """Return the runs in a file. If the file does not exist, return an empty list.

    Raise `RequestError` for the first line that is not a run. The message has the line number.
    """
    found = []
    for n, line in enumerate(read_page(path).splitlines(), 1):
        try:
            found.append(RunFigures(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise RequestError(f"{path} line {n}: not the figures of a run: {error}") from error
    return found


def write_figures(path: Path, runs: Iterable[RunFigures]) -> None:
    """Write these runs to the file, in place of its old content."""
    write_page(path, "".join(f"{json.dumps(asdict(run))}\n" for run in runs))


def with_new(
    old: Sequence[RunFigures], new: Sequence[RunFigures], order: Sequence[tuple[str, str]]
) -> list[RunFigures]:
    """Merge old and new runs. A new run replaces the old run with the same case (scenario and
    strategy), engine and seed. Exception: a valid old run is not replaced by a new run that is not
    valid.

    If the new runs of a case have another rate scale or duration than before, its old runs are
    dropped. The result is sorted by the position of the case in `order`, then by engine and seed.
    """
    setting = {run.case: (run.rate_scale, run.duration_s) for run in new}
    kept = {
        (run.case, run.engine, run.seed): run
        for run in old
        if setting.get(run.case) in (None, (run.rate_scale, run.duration_s))
    }
    for run in new:
        key = (run.case, run.engine, run.seed)
        if key not in kept or not run.left_out or kept[key].left_out:
            kept[key] = run
    place = {case: n for n, case in enumerate(order)}
    return sorted(
        kept.values(), key=lambda run: (place.get(run.case, len(place)), run.engine, run.seed)
    )
