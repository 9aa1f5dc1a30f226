"""What a paper's reproduction is made of: cases, numbers of each run, claims, and the page that judges them. Pure.

A claim is a list of relations between means over seeds, or of what else is `Judged`:
    a > b       the 95 % interval of the ratio (`lab.results.compare`) is above 1; below 1 it fails, around 1 it is open
    a >= b      the interval is not below 1; a <= b, not above it
    a ~ b       the means are within 5 %
    every a >= b, every a <= b      so it is in every single run
It agrees if all its relations hold, disagrees if one fails, and is not significant otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from lab.results.statistics import ratio_interval
from lab.results.tables import markdown_table

Numbers = Mapping[str, float]
Found = Mapping[str, Sequence[Numbers]]  # by case: the numbers of every seed
Operator = Literal[">", ">=", "<=", "~"]
Verdict = Literal["holds", "open", "fails"]
ABOUT = 0.05
FRAME_BITS = 8 * 1514  # of a full Ethernet frame
PAYLOAD = 1420 / 1514  # of a frame that Multipath TCP carries
SHOWN = 3  # relations of a claim, those that do not hold first


@dataclass(frozen=True)
class Case:
    """One experiment: what differs from a scenario as it is written."""

    name: str
    scenario: str
    settings: tuple[str, ...] = ()
    cc: str | None = None
    strategy: str | None = None
    duration_s: float | None = None


class Quantity(Protocol):
    """Something with a value for every seed, and what it is called."""

    @property
    def title(self) -> str: ...

    def of(self, found: Found) -> list[float]: ...


class Judged(Protocol):
    """Something that holds or does not, shown with its figures."""

    def verdict(self, found: Found) -> Verdict: ...

    def shown(self, found: Found) -> str: ...


@dataclass(frozen=True)
class Value:
    """A number of a case, and what it is called in a table."""

    case: str
    number: str
    title: str

    def of(self, found: Found) -> list[float]:
        return [numbers[self.number] for numbers in found[self.case]]


@dataclass(frozen=True)
class Constant:
    """A number that needs no run."""

    value: float
    title: str = "what is"

    def of(self, _found: Found) -> list[float]:
        return [self.value] * 100


@dataclass(frozen=True)
class Relation:
    """Two values and how they should be to each other; the right one `times` a factor."""

    left: Quantity
    operator: Operator
    right: Quantity
    times: float = 1.0

    def verdict(self, found: Found) -> Verdict:
        left, right = self.left.of(found), [each * self.times for each in self.right.of(found)]
        if self.operator == "~":
            return (
                "holds"
                if abs(mean(left) - mean(right)) <= ABOUT * max(mean(left), mean(right))
                else "fails"
            )
        low, high = ratio_interval(right, left) if min(len(left), len(right)) > 1 else (-1.0, 1.0)
        if high < 0:
            return "holds" if self.operator == "<=" else "fails"
        if low > 0:
            return "fails" if self.operator == "<=" else "holds"
        return "open" if self.operator == ">" else "holds"

    def shown(self, found: Found) -> str:
        factor = f"{self.times:g} x " if self.times != 1 else ""
        left, right = mean(self.left.of(found)), mean(self.right.of(found))
        return (
            f"{self.left.title} {left:.3g} {self.operator} {factor}{self.right.title} {right:.3g}"
        )


@dataclass(frozen=True)
class Every:
    """What holds in every single run."""

    value: Value
    operator: Literal[">=", "<="]
    limit: float

    def verdict(self, found: Found) -> Verdict:
        values = self.value.of(found)
        return (
            "holds"
            if (min(values) >= self.limit if self.operator == ">=" else max(values) <= self.limit)
            else "fails"
        )

    def shown(self, found: Found) -> str:
        values = self.value.of(found)
        worst = min(values) if self.operator == ">=" else max(values)
        return f"every {self.value.title}, {worst:.3g} at worst, {self.operator} {self.limit:.3g}"


@dataclass(frozen=True)
class Claim:
    """What a paper says. `strength` is S (plainly, and confirmed), M (once) or W (weakly); `judged` says that a reproduction
    stands or falls with it; `why` is the reason for a difference."""

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""

    def verdict(self, found: Found) -> str:
        verdicts = {each.verdict(found) for each in self.relations}
        if "fails" in verdicts:
            return "disagrees"
        return "not significant" if "open" in verdicts else "agrees"

    def evidence(self, found: Found) -> str:
        """How many of its relations hold; some of them with their figures, first those that do not."""
        verdicts = [(each.verdict(found), each) for each in self.relations]
        held = sum(verdict == "holds" for verdict, _ in verdicts)
        order = sorted(verdicts, key=lambda each: ("fails", "open", "holds").index(each[0]))
        some = "; ".join(
            f"{each.shown(found)}{'' if verdict == 'holds' else f' ({verdict})'}"
            for verdict, each in order[:SHOWN]
        )
        return (
            f"{held} of {len(verdicts)}{', for instance' if len(verdicts) > SHOWN else ''}: {some}"
        )


@dataclass(frozen=True)
class Paper:
    """A paper by its name on the command line. `measure` makes numbers of a result and of what is in its folder."""

    name: str
    title: str
    cases: tuple[Case, ...]
    measure: Callable[[Case, Mapping[str, Any], Path], Numbers]
    page: Callable[[Found], str]


def claims_table(claims: Sequence[Claim], found: Found) -> str:
    """Every claim with its verdict, the figures behind it, and why it differs."""
    rows = []
    for claim in claims:
        verdict = claim.verdict(found)
        why = f". {claim.why}" if claim.why and verdict != "agrees" else ""
        rows.append(
            [
                claim.name,
                f"{claim.strength}, judged" if claim.judged else claim.strength,
                claim.text,
                verdict,
                f"{claim.evidence(found)}{why}",
            ]
        )
    return markdown_table(
        ("claim", "strength", "the paper says", "verdict", "relations that hold, and figures"), rows
    )


def score(claims: Sequence[Claim], found: Found) -> str:
    """'k of n' of the claims that are judged."""
    judged = [each for each in claims if each.judged]
    return f"{sum(each.verdict(found) == 'agrees' for each in judged)} of {len(judged)}"


def average(found: Found, case: str, number: str) -> float:
    """The mean of a case's number over the seeds."""
    return mean([each[number] for each in found[case]])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
