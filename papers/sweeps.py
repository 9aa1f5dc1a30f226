"""Sweeps: a setting that the paper does not state takes several values, and claims are judged again
with each value.

For each value, the cases (experiments) that the claims need are run with this value. One of the
values is the one on the paper's main page; its runs are used again.
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

    `label` shows the value in tables. `settings` returns the settings of a case (an experiment) for
    this value, each written as `key.path=value`. If `settings` is None, nothing is changed: the
    value is the one on the paper's main page. If `measure` is not None, it replaces the function
    with which the paper's runs are measured.
    `runs` names the folder of the runs (default: the label), so that points with the same settings
    can share runs.
    """

    label: str
    settings: Settings | None = None
    measure: Measure | None = None
    runs: str = ""

    @property
    def is_page(self) -> bool:
        """True if this is the value on the paper's main page."""
        return self.settings is None and self.measure is None

    @property
    def title(self) -> str:
        """The label of this value of the setting, with a mark if the paper's page of results uses
        this value."""
        return f"{self.label} (page)" if self.is_page else self.label

    @property
    def folder(self) -> str:
        return re.sub(r"[^a-z0-9.]+", "_", (self.runs or self.label).lower()).strip("_")

    def varied(self, case: Case) -> Case:
        """Return a copy of the case (experiment) with this value of the setting."""
        added = self.settings(case) if self.settings else ()
        return replace(case, settings=(*case.settings, *added))


def point(label: str, *settings: str, measure: Measure | None = None, runs: str = "") -> Point:
    """Return a value of a sweep whose `settings` are the same for every case (experiment)."""
    return Point(label, lambda _case: settings, measure, runs)


@dataclass(frozen=True)
class Sweep:
    """A series of runs in which one setting takes several values, and the claims that are judged
    with each value.

    `about` says what the paper states, and why the values are plausible. `name` is part of the
    names of files and folders.
    """

    name: str
    title: str
    about: str
    claims: tuple[Claim, ...]
    points: tuple[Point, ...]

    def cases(self, paper: Paper, point: Point) -> tuple[Case, ...]:
        """Return the cases (experiments) of the paper that the claims need, with the settings of
        `point`."""
        needed = cases_of(self.claims)
        return tuple(point.varied(case) for case in paper.cases if case.name in needed)


def with_cases(
    claims: Iterable[Claim], names: Iterable[str], fits: Callable[[str], bool]
) -> tuple[Claim, ...]:
    """Return the claims named in `names`. Each is reduced to some of its relations: `fits(name)`
    must be True for all cases (experiments) of a relation."""
    wanted = set(names)
    return tuple(
        claim.part(lambda each: all(map(fits, each.cases())))
        for claim in claims
        if claim.name in wanted
    )
