"""Relate numbers of runs, and judge whether a relation holds.

a > b       holds if the 95 % interval of the ratio a/b (`lab.results.statistics`) is above 1,
            fails if it is below 1, and is open otherwise
a >= b      holds unless the interval is below 1; a <= b, unless it is above 1
a ~ b       holds if the means are within 5 %
every a >= b, every a <= b      hold if they are true for every single run
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
    """Define the interface of a number that has one value for each seed.

    In all its methods, `found` holds the numbers of all runs, by case.
    """

    def of(self, found: Found) -> list[float]:
        """Return the values of the quantity, one for each seed."""

    def shown(self, found: Found, times: float = 1.0) -> str:
        """Return the factor `times`, the quantity's name and its mean as text."""


class Judged(Protocol):
    """Define the interface of a statement that holds, fails or is open.

    In all its methods, `found` holds the numbers of all runs, by case.
    """

    def verdict(self, found: Found) -> Verdict:
        """Return `holds`, `fails` or `open`."""

    def shown(self, found: Found) -> str:
        """Return the statement as text, with the measured figures."""


@dataclass(frozen=True)
class Value:
    """Name a measured number of a case. `title` is its name in tables."""

    case: str
    number: str
    title: str

    def of(self, found: Found) -> list[float]:
        """Return the values of the number, one for each seed."""
        return [numbers[self.number] for numbers in found[self.case]]

    def shown(self, found: Found, times: float = 1.0) -> str:
        """Return the factor `times`, the title and the mean as text."""
        return f"{_factor(times)}{self.title} {mean(self.of(found)):.3g}"


@dataclass(frozen=True)
class Constant:
    """Hold a known number with which measured numbers are compared."""

    value: float
    title: str = ""

    def of(self, _found: Found) -> list[float]:
        """Return the number a hundred times, because an interval needs more than one value."""
        return [self.value] * 100

    def shown(self, _found: Found, times: float = 1.0) -> str:
        """Return the factor `times`, the title if there is one, and the number as text."""
        return f"{_factor(times)}{self.title}{' ' if self.title else ''}{self.value:.3g}"


@dataclass(frozen=True)
class Relation:
    """Relate the mean of `left` to the mean of `right` multiplied by `times`."""

    left: Quantity
    operator: Operator
    right: Quantity
    times: float = 1.0

    def verdict(self, found: Found) -> Verdict:
        """Return `holds`, `fails` or `open`, by the rules in the module docstring."""
        left, right = self.left.of(found), [each * self.times for each in self.right.of(found)]
        if self.operator == "~":
            difference, larger = abs(mean(left) - mean(right)), max(mean(left), mean(right))
            return "holds" if difference <= ABOUT * larger else "fails"
        low, high = ratio_interval(right, left) if min(len(left), len(right)) > 1 else (-1.0, 1.0)
        if high < 0:
            return "holds" if self.operator == "<=" else "fails"
        if low > 0:
            return "fails" if self.operator == "<=" else "holds"
        return "open" if self.operator == ">" else "holds"

    def shown(self, found: Found) -> str:
        """Return the relation with both means as text."""
        right = self.right.shown(found, self.times)
        return f"{self.left.shown(found)} {self.operator} {right}"


@dataclass(frozen=True)
class Every:
    """Compare the value of every single run with a limit."""

    value: Value
    operator: Literal[">=", "<="]
    limit: float

    def _worst(self, found: Found) -> float:
        values = self.value.of(found)
        return min(values) if self.operator == ">=" else max(values)

    def verdict(self, found: Found) -> Verdict:
        """Return `holds` if the values of all runs are within the limit, else `fails`."""
        worst = self._worst(found)
        kept = worst >= self.limit if self.operator == ">=" else worst <= self.limit
        return "holds" if kept else "fails"

    def shown(self, found: Found) -> str:
        """Return as text the value of the worst run, and the limit."""
        worst = self._worst(found)
        return f"every {self.value.title}, {worst:.3g} at worst, {self.operator} {self.limit:.3g}"


def within(
    value: Value, base: Value | Constant, least: float, most: float
) -> tuple[Relation, Relation]:
    """Claim that `value` is between `least` and `most` times `base`, as two relations."""
    return Relation(value, ">=", base, least), Relation(value, "<=", base, most)


def _factor(times: float) -> str:
    return f"{times:g} x " if times != 1 else ""
