"""Evaluation of checks: conditions on the results of a student's runs. No run is started."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import RequestError
from lab.results import documents as figures
from lab.results.flips import is_waiting
from lab.run.reading import (
    APPENDED,
    changed,
    changed_text,
    read_document,
    read_events,
    read_samples,
    size_of,
)
from lab.summaries import mean
from lab.worksheets import language as at
from lab.worksheets.language import Condition, Expression, Numeric, Occurrence, spelled

COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CALCULATE: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class NoEvidence(RequestError):
    """Raised when a check cannot be evaluated because a run or a measured value is missing."""


MOST_BYTES = 128 * 2**20  # of a run's samples, and of its events


@dataclass(frozen=True)
class RunFiles:
    """The content of the files of one run to which a check can refer."""

    result: Mapping[str, Any]
    samples: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> RunFiles:
        """Read the files of a finished run. Raise `RequestError` if one cannot be read, was changed
        after the run, or is too large."""
        for name in APPENDED:
            if size_of(folder / name) > MOST_BYTES:
                raise RequestError(
                    f"check run {folder.name}: {name} is larger than {MOST_BYTES >> 20} MiB: "
                    "let the worksheet make shorter runs, or longer sample intervals"
                )
        result = read_document(folder, "result.json")
        if names := changed(folder, result):
            raise RequestError(f"check run {folder.name}: {changed_text(names)}")
        return cls(result, read_samples(folder), read_events(folder))


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    `figures` has the expression and the value of each measured number that decided the check.
    `problem` says why the check could not be evaluated; it is empty if it could.
    """

    passed: bool
    figures: tuple[tuple[str, float], ...] = ()
    problem: str = ""


def evaluate(check: Condition, runs: Mapping[str, RunFiles]) -> Verdict:
    """Evaluate a check on the files of a student's runs.

    The keys of `runs` are the ids of the worksheet's steps in which the runs were made. The key ""
    stands for the default run of the check. If a run or a value is missing, the check is not
    passed, and `problem` of the result says why. Nothing is raised.
    """
    checker = _Checker(runs)
    try:
        return Verdict(checker.holds(check), checker.looked_at(check))
    except NoEvidence as error:
        return Verdict(False, problem=str(error))


def evaluate_number(tree: Numeric, runs: Mapping[str, RunFiles]) -> tuple[float | None, Verdict]:
    """Return the value of an expression, and a verdict that lists the measured numbers in the
    expression.

    If a run or a number is missing, the value is None and the verdict says why. Nothing is raised.
    """
    checker = _Checker(runs)
    try:
        return checker.number(tree), Verdict(True, checker.looked_at(tree))
    except NoEvidence as error:
        return None, Verdict(False, problem=str(error))


class _Checker:
    def __init__(self, runs: Mapping[str, RunFiles]) -> None:
        self.runs = runs

    def looked_at(self, check: Expression) -> tuple[tuple[str, float], ...]:
        """Return the text and the value of each measured number in an expression. Missing numbers
        are left out."""
        measured = (at.Sampled, at.Measured, at.Time, at.Count)
        leaves = {spelled(each): each for each in at.parts(check) if isinstance(each, measured)}
        found = []
        for text, leaf in leaves.items():
            try:
                found.append((text, self.number(leaf)))
            except NoEvidence:
                continue
        return tuple(found)

    def holds(self, tree: Condition) -> bool:
        match tree:
            case at.Comparison(symbol, left, right):
                return COMPARE[symbol](self.number(left), self.number(right))
            case at.Before(left, right):
                first, second = self._first(left), self._first(right)
                return first is not None and second is not None and first < second
            case at.Occurrence():
                return self._first(tree) is not None
            case at.Multipath(run):
                return bool(self._of(run).result.get("mptcp", {}).get("verified"))
            case at.Not(inner):
                return not self.holds(inner)
            case at.Both(left, right, either):
                first_holds = self.holds(left)
                return first_holds if first_holds == either else self.holds(right)

    def number(self, tree: Numeric) -> float:
        match tree:
            case at.Number(value):
                return value
            case at.Measured(path, run):
                return self._present(figures.figure(self._of(run).result, path), tree)
            case at.Sampled():
                return self._sampled(tree)
            case at.Time(event):
                return self._present(self._first(event), tree)
            case at.Count(event):
                return float(len(self._times(event)))
            case at.Magnitude(inner):
                return abs(self.number(inner))
            case at.Arithmetic(symbol, left, right):
                try:
                    return CALCULATE[symbol](self.number(left), self.number(right))
                except ZeroDivisionError as error:
                    raise NoEvidence(f"{spelled(tree)}: the divisor is 0") from error

    def _sampled(self, tree: at.Sampled) -> float:
        samples = self._of(tree.run).samples
        pairs = figures.values_between(samples, tree.path, tree.start_s, tree.end_s)
        values = [value for value, _ in pairs]
        if not values:
            raise NoEvidence(f"{spelled(tree)}: no sample there has this figure")
        if tree.fold == "mean":
            return self._present(mean(values, [length for _, length in pairs]), tree)
        return {"min": min(values), "max": max(values), "last": values[-1]}[tree.fold]

    def _present(self, value: float | None, tree: Expression) -> float:
        if value is None:
            raise NoEvidence(f"{spelled(tree)}: the run has no such figure")
        return value

    def _of(self, run: str) -> RunFiles:
        if run not in self.runs:
            name = f"run '{run}'" if run else "the run of this check"
            raise NoEvidence(f"{name} is missing: make it first")
        return self.runs[run]

    def _first(self, event: Occurrence) -> float | None:
        return min(self._times(event), default=None)

    def _times(self, event: Occurrence) -> list[float]:
        """Return the times in s of all matching events.

        Changes that were refused or are still waiting to be applied do not count.
        """
        return [
            each["t"]
            for each in self._of(event.run).events
            if each.get("kind") == event.kind
            and each.get("ok", True) is not False
            and not is_waiting(each)
            and all(_has(each, field, value) for field, value in event.where)
        ]


def _has(event: Mapping[str, Any], field: str, value: str) -> bool:
    """Return whether a field of an event equals a value that is given as text.

    Numbers are compared by value: "2.0" equals 2. A strategy is compared by its name.
    """
    present = event.get(field)
    if isinstance(present, Mapping):
        present = present.get("name")
    if isinstance(present, bool) or present is None:
        return value == {True: "true", False: "false", None: "null"}[present]
    if isinstance(present, int | float):
        try:
            return float(value) == present
        except ValueError:
            return False
    return str(present) == value
