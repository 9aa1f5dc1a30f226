"""Sweeps: claims are judged again while a setting that the paper does not state takes several
values.

Each value of the setting is added to the cases (experiments) that the claims need. One of the
values is that of the paper's page, whose runs are used again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lab.results.documents import FinishedRun
from papers.base import Case, Claim, Paper, cases_of
from papers.relations import Numbers

Settings = Callable[[Case], tuple[str, ...]]
Measure = Callable[[Case, FinishedRun], Numbers]


@dataclass(frozen=True)
class Point:
    """One value of the setting that a sweep varies.

    `label` shows it in tables. `settings` returns the settings that a case needs for this value,
    each written as `key.path=value`; None means the value that the paper's page uses, so nothing is
    changed. `measure` replaces the paper's own function if it is not None. `runs` names the folder
    of the runs (default: the label), so that points with the same settings can share runs.
    """

    label: str
    settings: Settings | None = None
    measure: Measure | None = None
    runs: str = ""

    @property
    def is_page(self) -> bool:
        """True if this is the value that the paper's page uses."""
        return self.settings is None and self.measure is None

    @property
    def title(self) -> str:
        """The label, marked if this is the value that the paper's page uses."""
        return f"{self.label} (page)" if self.is_page else self.label

    @property
    def folder(self) -> str:
        """The name of the folder of the runs."""
        return re.sub(r"[^a-z0-9.]+", "_", (self.runs or self.label).lower()).strip("_")

    def varied(self, case: Case) -> Case:
        """Return the case with this value of the setting."""
        added = self.settings(case) if self.settings else ()
        return replace(case, settings=(*case.settings, *added))


def point(label: str, *settings: str, measure: Measure | None = None, runs: str = "") -> Point:
    """Return a point whose settings are the same for every case."""
    return Point(label, lambda _case: settings, measure, runs)


@dataclass(frozen=True)
class Sweep:
    """A series of runs in which one setting takes several values, and the claims judged with each.

    `about` says what the paper states and why the values are plausible. `name` is part of names of
    files and folders.
    """

    name: str
    title: str
    about: str
    claims: tuple[Claim, ...]
    points: tuple[Point, ...]

    def cases(self, paper: Paper, point: Point) -> tuple[Case, ...]:
        """Return those cases of the paper that the claims need, with the settings of `point`."""
        needed = cases_of(self.claims)
        return tuple(point.varied(case) for case in paper.cases if case.name in needed)


def with_cases(
    claims: Iterable[Claim], names: Iterable[str], fits: Callable[[str], bool]
) -> tuple[Claim, ...]:
    """Return the claims named `names`, each reduced to the relations for all of whose cases
    (experiments) `fits(name)` is true."""
    wanted = set(names)
    return tuple(
        replace(
            claim, relations=tuple(each for each in claim.relations if all(map(fits, each.cases())))
        )
        for claim in claims
        if claim.name in wanted
    )
