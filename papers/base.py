"""Define how a paper is reproduced: its cases (experiments), the numbers measured in each run, and
its claims.

Each case is run with several random seeds. A claim is a list of relations, such as `a > b` between
two means over the seeds. A claim agrees with the paper if all its relations hold, and disagrees if
one fails. Otherwise it is not significant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from papers.relations import Found, Judged, Numbers

FRAME_BITS = 8 * 1514  # of a full Ethernet frame
PAYLOAD = 1420 / 1514  # the share of a frame that is data of Multipath TCP
SHOWN = 3  # relations of a claim in the table; those that do not hold come first


@dataclass(frozen=True)
class Case:
    """One experiment: a scenario, and what replaces the values of its file. Each of
    `settings` is written as `key.path=value`. A field that is None keeps the value of the file."""

    name: str
    scenario: str
    settings: tuple[str, ...] = ()
    cc: str | None = None
    strategy: str | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and the relations that must hold if the claim is true here.

    `strength` is "S" if the paper states the claim plainly and confirms it, "M" if it states it
    once, "W" if it states it weakly. If `judged` is True, the claim is one of those that decide
    whether the reproduction succeeds. `why` explains a disagreement, and `cause` says where it
    comes from, as one of the keys of `papers.page.CAUSES`.
    """

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""
    cause: str = ""

    def verdict(self, found: Found) -> str:
        """Return "agrees", "disagrees" or "not significant". `found` holds the numbers of all runs
        by case."""
        verdicts = {each.verdict(found) for each in self.relations}
        if "fails" in verdicts:
            return "disagrees"
        return "not significant" if "open" in verdicts else "agrees"

    def evidence(self, found: Found) -> str:
        """Return a text that says how many relations hold and quotes up to three of them with their
        figures; relations that fail come first."""
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
    """A paper: its name on the command line, its cases (experiments), and two functions.

    `measure` returns the numbers of a finished run of a case. `tables` returns Markdown with tables
    of what was measured; its argument holds the numbers of all runs by case. `note` explains the
    symbols in the claims. `quick` is the same paper with fewer cases, if it has so many that a
    quick look needs that.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    measure: Callable[[Case, FinishedRun], Numbers]
    tables: Callable[[Found], str]
    claims: tuple[Claim, ...] = ()
    note: str = ""
    quick: Paper | None = None


def cases_of(claims: Iterable[Claim]) -> frozenset[str]:
    """Return the names of all cases whose runs the claims need."""
    return frozenset[str]().union(*(each.cases() for claim in claims for each in claim.relations))


def joined(*parts: str) -> str:
    """Join the parts of a Markdown page, with an empty line between two parts."""
    return "\n\n".join(parts)


def average(found: Found, case: str, number: str) -> float:
    """Return the mean over all seeds of the number with the name `number`, such as "T", in a
    case."""
    return mean([each[number] for each in found[case]])
