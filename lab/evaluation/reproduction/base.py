"""Describe and judge a paper's reproduction: cases, numbers of each run, and claims.

A claim is a list of relations between means over the seeds, or of other `Judged` objects:
    a > b       holds if the 95 % interval of the ratio (`lab.results.statistics`) is above 1,
                fails if it is below 1, and is open otherwise
    a >= b      holds unless the interval is below 1; a <= b, unless it is above 1
    a ~ b       holds if the means are within 5 %
    every a >= b, every a <= b      compare each single run
A claim agrees if all its relations hold, disagrees if one fails, and is not significant otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from lab.results.statistics import mean, ratio_interval
from lab.results.tables import markdown_table

Numbers = Mapping[str, float]
Found = Mapping[str, Sequence[Numbers]]  # case -> the numbers of each seed
Operator = Literal[">", ">=", "<=", "~"]
Verdict = Literal["holds", "open", "fails"]
ABOUT = 0.05
FRAME_BITS = 8 * 1514  # of a full Ethernet frame
PAYLOAD = 1420 / 1514  # the share of a frame that is data of Multipath TCP
SHOWN = 3  # relations of a claim in the table; those that do not hold come first


@dataclass(frozen=True)
class Case:
    """Describe one experiment: a scenario, and what differs from its file."""

    name: str
    scenario: str
    settings: tuple[str, ...] = ()
    cc: str | None = None
    strategy: str | None = None
    duration_s: float | None = None


class Quantity(Protocol):
    """Describe something that has a value for each seed."""

    def of(self, found: Found) -> list[float]:
        """Return the value of each seed."""

    def shown(self, found: Found, times: float = 1.0) -> str:
        """Return `times`, the name and the mean as text."""


class Judged(Protocol):
    """Describe something that holds, fails or is open."""

    def verdict(self, found: Found) -> Verdict:
        """Return whether it holds."""

    def shown(self, found: Found) -> str:
        """Return it as text, with its figures."""


@dataclass(frozen=True)
class Value:
    """Name a number of a case; `title` is its name in tables."""

    case: str
    number: str
    title: str

    def of(self, found: Found) -> list[float]:
        """Return the number of each seed."""
        return [numbers[self.number] for numbers in found[self.case]]

    def shown(self, found: Found, times: float = 1.0) -> str:
        """Return the factor, the title and the mean as text."""
        return f"{_factor(times)}{self.title} {mean(self.of(found)):.3g}"


@dataclass(frozen=True)
class Constant:
    """Hold a number that is known without a run."""

    value: float
    title: str = ""

    def of(self, _found: Found) -> list[float]:
        """Return the number as often as an interval needs it."""
        return [self.value] * 100

    def shown(self, _found: Found, times: float = 1.0) -> str:
        """Return the factor, the title if there is one, and the number as text."""
        return f"{_factor(times)}{self.title}{' ' if self.title else ''}{self.value:.3g}"


@dataclass(frozen=True)
class Relation:
    """Relate the means of two quantities; the right one is multiplied by `times`."""

    left: Quantity
    operator: Operator
    right: Quantity
    times: float = 1.0

    def verdict(self, found: Found) -> Verdict:
        """Return whether the relation holds."""
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
    """Relate the value of every single run to a limit."""

    value: Value
    operator: Literal[">=", "<="]
    limit: float

    def _worst(self, found: Found) -> float:
        values = self.value.of(found)
        return min(values) if self.operator == ">=" else max(values)

    def verdict(self, found: Found) -> Verdict:
        """Return whether all runs keep the limit."""
        worst = self._worst(found)
        kept = worst >= self.limit if self.operator == ">=" else worst <= self.limit
        return "holds" if kept else "fails"

    def shown(self, found: Found) -> str:
        """Return the worst run and the limit as text."""
        worst = self._worst(found)
        return f"every {self.value.title}, {worst:.3g} at worst, {self.operator} {self.limit:.3g}"


@dataclass(frozen=True)
class Claim:
    """Hold one claim of a paper.

    `strength` is S (the paper states it plainly and confirms it), M (once) or W (weakly). `judged`:
    the claim decides whether a reproduction succeeds. `why` gives the reason for a difference.
    """

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""

    def verdict(self, found: Found) -> str:
        """Return `agrees`, `disagrees` or `not significant`."""
        verdicts = {each.verdict(found) for each in self.relations}
        if "fails" in verdicts:
            return "disagrees"
        return "not significant" if "open" in verdicts else "agrees"

    def evidence(self, found: Found) -> str:
        """Return how many relations hold, and some with their figures, failed ones first."""
        verdicts = [(each.verdict(found), each) for each in self.relations]
        held = sum(verdict == "holds" for verdict, _ in verdicts)
        order = sorted(verdicts, key=lambda each: ("fails", "open", "holds").index(each[0]))
        some = "; ".join(
            f"{each.shown(found)}{'' if verdict == 'holds' else f' ({verdict})'}"
            for verdict, each in order[:SHOWN]
        )
        instance = ", for instance" if len(verdicts) > SHOWN else ""
        return f"{held} of {len(verdicts)}{instance}: {some}"


@dataclass(frozen=True)
class Paper:
    """Describe a paper by its name on the command line.

    `measure` returns the numbers of a run from its case, its result and its folder.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    measure: Callable[[Case, Mapping[str, Any], Path], Numbers]
    page: Callable[[Found], str]


def within(
    value: Value, base: Value | Constant, least: float, most: float
) -> tuple[Relation, Relation]:
    """Return the relations that a value is between `least` and `most` times the base."""
    return Relation(value, ">=", base, least), Relation(value, "<=", base, most)


def claims_section(claims: Sequence[Claim], found: Found, note: str) -> str:
    """Return how many judged claims agree, a note, and the table of all claims."""
    judged = [each for each in claims if each.judged]
    agree = sum(each.verdict(found) == "agrees" for each in judged)
    return f"{agree} of {len(judged)} judged claims agree. {note}\n\n{_claims_table(claims, found)}"


def average(found: Found, case: str, number: str) -> float:
    """Return the mean of a number of a case over the seeds."""
    return mean([each[number] for each in found[case]])


def _claims_table(claims: Sequence[Claim], found: Found) -> str:
    rows = []
    for claim in claims:
        verdict = claim.verdict(found)
        strength = f"{claim.strength}, judged" if claim.judged else claim.strength
        why = f". {claim.why}" if claim.why and verdict != "agrees" else ""
        evidence = f"{claim.evidence(found)}{why}"
        rows.append([claim.name, strength, claim.text, verdict, evidence])
    head = ("claim", "strength", "the paper says", "verdict", "relations that hold, and figures")
    return markdown_table(head, rows)


def _factor(times: float) -> str:
    return f"{times:g} x " if times != 1 else ""
