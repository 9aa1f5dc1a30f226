"""Figures of compared runs, kept in a file beside their page, one JSON object per line.

The run folders of a comparison are large, and stay on the machine that made them. The figures are
small: with them, a command that makes some of the runs can write the whole page.
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
    """The figures of one run of a scenario with a strategy in one engine.

    `numbers` are the compared numbers by title. `left_out` says why the run cannot be used; it is
    empty for a valid run. `verified` says whether Multipath TCP was verified, None if the run had
    none. `idle_mean` and `idle_min` are idle shares of the processors, from 0 to 1, None if not
    measured. `made_on` names machine and commit.
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

    @property
    def case(self) -> tuple[str, str]:
        return self.scenario, self.strategy


def read_figures(path: Path) -> list[RunFigures]:
    """Return the figures in a file; none if there is no file.

    Raise `RequestError` with the number of the first line that has something else.
    """
    found = []
    for n, line in enumerate(read_page(path).splitlines(), 1):
        try:
            found.append(RunFigures(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise RequestError(f"{path} line {n}: not the figures of a run: {error}") from error
    return found


def write_figures(path: Path, runs: Iterable[RunFigures]) -> None:
    """Replace the file by one with these runs."""
    write_page(path, "".join(f"{json.dumps(asdict(run))}\n" for run in runs))


def with_new(
    old: Sequence[RunFigures], new: Sequence[RunFigures], order: Sequence[tuple[str, str]]
) -> list[RunFigures]:
    """Merge runs. A run of `new` replaces the run of `old` with the same case, engine and seed,
    unless only the old one is valid.

    Old runs of a case whose new runs have another rate scale or duration are dropped. The result is
    sorted by the position of the case in `order`, then by engine and seed.
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
