"""The parts of a reproduced paper: its cases (experiments) and its claims.

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
    """One experiment: a scenario, and what replaces the values of its file.

    Each of `settings` is written as `key.path=value`. A field that is None keeps the value of the
    file.
    """

    name: str
    scenario: str
    settings: tuple[str, ...] = ()
    cc: str | None = None
    strategy: str | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and the relations between measurements that must hold if it is true here.

    `strength` is "S" if the paper states the claim plainly and confirms it, "M" if it states it
    once, "W" if it states it weakly. The claims with `judged` decide whether the reproduction
    succeeds. If the claim does not agree, `why` explains it and `cause` classifies the reason by a
    key of `papers.page.CAUSES`.
    """

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""
    cause: str = ""

    def verdict(self, found: Found) -> str:
        """Return "agrees", "disagrees" or "not significant"."""
        verdicts = {each.verdict(found) for each in self.relations}
        if "fails" in verdicts:
            return "disagrees"
        return "not significant" if "open" in verdicts else "agrees"

    def evidence(self, found: Found) -> str:
        """Return how many relations hold, and quote up to three with their figures, failed ones
        first."""
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
    """A paper as the command `reproduce` knows it.

    `measure` computes the numbers of one run. `tables` makes Markdown from the numbers of all runs
    by case. `note` explains the symbols in the claims. `quick` is the same paper with fewer cases,
    or None if it has few enough.
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
    """Return the names of all cases whose runs are needed to judge the claims."""
    return frozenset[str]().union(*(each.cases() for claim in claims for each in claim.relations))


def joined(*parts: str) -> str:
    """Join parts of a Markdown page with empty lines."""
    return "\n\n".join(parts)


def average(found: Found, case: str, number: str) -> float:
    """Return the mean over all seeds of a measured number, such as "T", in a case."""
    return mean([each[number] for each in found[case]])
