"""Relations between measured numbers, such as a > b, and whether a relation holds, fails or is
open.

A number has one value per run, that is, per random seed. Runs with the same seed belong together,
because they have the same network and users. Confidence intervals are therefore computed by
resampling seeds and not single values.

    a > b       holds if the 95 % interval of the ratio of the means a/b is above 1
                (`lab.results.statistics`), fails if it is below 1, and is open otherwise
    a >= b      fails if the interval is below 1, holds otherwise
    a <= b      fails if the interval is above 1, holds otherwise
    a ~ b       holds if the means differ by at most 5 % of the larger one, fails otherwise
    every a >= b, every a <= b      hold if they are true for every single run, fail otherwise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lab.results.statistics import mean, ratio_interval

Numbers = Mapping[str, float]
Found = Mapping[str, Sequence[Numbers]]  # case -> the numbers of each seed
Operator = Literal[">", ">=", "<=", "~"]
Verdict = Literal["holds", "open", "fails"]
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
    """A statement about measured numbers. It holds, fails or is open (not significant).

    In all methods, `found` has the numbers of all runs by case (experiment).
    """

    def cases(self) -> frozenset[str]:
        """Return the names of the cases (experiments) whose runs the statement needs."""

    def verdict(self, found: Found) -> Verdict:
        pass

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

    def verdict(self, found: Found) -> Verdict:
        """Return "holds", "fails" or "open". The module docstring has the rules."""
        left, right = self.left.of(found), [each * self.times for each in self.right.of(found)]
        if self.operator == "~":
            difference, larger = abs(mean(left) - mean(right)), max(mean(left), mean(right))
            return "holds" if difference <= ABOUT * larger else "fails"
        low, high = _interval(left, right)
        if high < 0:
            return "holds" if self.operator == "<=" else "fails"
        if low > 0:
            return "fails" if self.operator == "<=" else "holds"
        return "open" if self.operator == ">" else "holds"

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

    def verdict(self, found: Found) -> Verdict:
        worst = self._worst(found)
        kept = worst >= self.limit if self.operator == ">=" else worst <= self.limit
        return "holds" if kept else "fails"

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


def _interval(left: list[float], right: list[float]) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of the change in percent from the mean of `right` to the
    mean of `left`. A single run decides nothing: the interval is then (-1, 1), which contains 0."""
    if min(len(left), len(right)) < 2:
        return -1.0, 1.0
    return ratio_interval(right, left, paired=len(left) == len(right))


def _factor(times: float) -> str:
    return f"{times:g} x " if times != 1 else ""
