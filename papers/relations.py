"""Relations between measured numbers, such as a > b, and whether a relation holds, fails or is
open.

A number has one value per run, that is, per random seed. Runs with the same seed belong together,
because they have the same network and users. Confidence intervals are therefore computed by
resampling seeds and not single values.

A relation is true if its margins are positive (`lab.results.statistics`, docs/definitions.md):

    a > b, a >= b   a - b of the means; > is false if they are equal
    a <= b          b - a
    a ~ b           a - 0.95 b and b - 0.95 a: they differ by at most 5 % of the larger one
    every a >= b, every a <= b      true for every single run: one run can refute it, and it holds
                                    if at least five runs keep it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lab.results.statistics import MIN_RUNS, Judgement, difference, judged, mean

Numbers = Mapping[str, float]
Found = Mapping[str, Sequence[Numbers]]  # case -> the numbers of each seed
Operator = Literal[">", ">=", "<=", "~"]
ABOUT = 0.05


class Quantity(Protocol):
    """One side of a relation, such as a measured number. A measured quantity has one value per
    seed.

    In all methods, `found` has the numbers of all runs by case (experiment).
    """

    def cases(self) -> frozenset[str]:
        """Return the names of the cases (experiments) whose runs the quantity needs."""

    def of(self, found: Found) -> list[float]:
        """Return the values of the quantity. A measured quantity has one value per seed."""

    def shown(self, found: Found, times: float = 1.0) -> str:
        """Return a text such as `2 x T(first-3) 5.1`, with the title and the mean of the quantity.
        The factor `times` is left out if it is 1."""


class Judged(Protocol):
    """A statement about measured numbers. It holds, fails or is open.

    In all methods, `found` has the numbers of all runs by case (experiment).
    """

    def cases(self) -> frozenset[str]:
        """Return the names of the cases (experiments) whose runs the statement needs."""

    def judgement(self, found: Found) -> Judgement:
        """Return whether the statement holds, fails or is open, by `lab.results.statistics`."""

    def shown(self, found: Found) -> str:
        """Return the statement as text, including the measured values."""


@dataclass(frozen=True)
class Value:
    """A number that is measured in a case (experiment). `title` is its name in tables."""

    case: str
    number: str
    title: str

    def cases(self) -> frozenset[str]:
        return frozenset({self.case})

    def of(self, found: Found) -> list[float]:
        return [numbers[self.number] for numbers in found[self.case]]

    def shown(self, found: Found, times: float = 1.0) -> str:
        return f"{_factor(times)}{self.title} {mean(self.of(found)):.3g}"


@dataclass(frozen=True)
class Quotient:
    """The quotient of two measured numbers, computed for each seed. `title` is its name in
    tables."""

    above: Value
    below: Value
    title: str

    def cases(self) -> frozenset[str]:
        return self.above.cases() | self.below.cases()

    def of(self, found: Found) -> list[float]:
        pairs = zip(self.above.of(found), self.below.of(found), strict=True)
        return [above / below for above, below in pairs]

    def shown(self, found: Found, times: float = 1.0) -> str:
        return f"{_factor(times)}{self.title} {mean(self.of(found)):.3g}"


@dataclass(frozen=True)
class Constant:
    """A given number with which measured numbers are compared. `title` may be empty."""

    value: float
    title: str = ""

    def cases(self) -> frozenset[str]:
        return frozenset()

    def of(self, _found: Found) -> list[float]:
        """Return the constant a hundred times, because an interval needs several values."""
        return [self.value] * 100

    def shown(self, _found: Found, times: float = 1.0) -> str:
        return f"{_factor(times)}{self.title}{' ' if self.title else ''}{self.value:.3g}"


@dataclass(frozen=True)
class Relation:
    """The statement that the mean of `left` is >, >=, <= or ~ (about equal to) `times` the mean of
    `right`."""

    left: Quantity
    operator: Operator
    right: Quantity
    times: float = 1.0

    def cases(self) -> frozenset[str]:
        return self.left.cases() | self.right.cases()

    def judgement(self, found: Found) -> Judgement:
        left, right = self.left.of(found), [each * self.times for each in self.right.of(found)]
        if self.operator == "~":
            near = 1 - ABOUT
            return judged((difference(left, right, near), difference(right, left, near)))
        larger, smaller = (right, left) if self.operator == "<=" else (left, right)
        return judged([difference(larger, smaller, is_strict=self.operator == ">")])

    def shown(self, found: Found) -> str:
        right = self.right.shown(found, self.times)
        return f"{self.left.shown(found)} {self.operator} {right}"


@dataclass(frozen=True)
class Every:
    """The statement that `value` is at least (or at most) `limit` in every single run."""

    value: Value
    operator: Literal[">=", "<="]
    limit: float

    def cases(self) -> frozenset[str]:
        return self.value.cases()

    def _worst(self, found: Found) -> float:
        values = self.value.of(found)
        return min(values) if self.operator == ">=" else max(values)

    def judgement(self, found: Found) -> Judgement:
        worst, n = self._worst(found), len(self.value.of(found))
        kept = worst >= self.limit if self.operator == ">=" else worst <= self.limit
        if not kept:
            return Judgement("fails")
        return Judgement("holds") if n >= MIN_RUNS else Judgement("open", MIN_RUNS - n)

    def shown(self, found: Found) -> str:
        """Return the statement as text, including the value of the worst run."""
        worst = self._worst(found)
        return f"every {self.value.title}, {worst:.3g} at worst, {self.operator} {self.limit:.3g}"


def within(
    value: Value, base: Value | Constant, least: float, most: float
) -> tuple[Relation, Relation]:
    """Return two relations that together say: `value` is between `least` and `most` times
    `base`."""
    return Relation(value, ">=", base, least), Relation(value, "<=", base, most)


def _factor(times: float) -> str:
    return f"{times:g} x " if times != 1 else ""
