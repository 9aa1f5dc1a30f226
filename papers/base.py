"""The parts of a reproduced paper: its cases (experiments) and its claims.

Each case is run with several random seeds. A claim is checked by relations such as `a > b`, where a
and b are means over the seeds. The claim agrees with our measurements if all its relations hold,
and disagrees if one of them fails. Otherwise it is open, and so is a claim of which some relations
were not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from papers.relations import Found, Judged, Numbers

FRAME_BITS = 8 * 1514  # of a full Ethernet frame
PAYLOAD = 1420 / 1514  # the share of a frame that is data of Multipath TCP
SHOWN = 3  # relations of a claim in the table; those that do not hold come first


@dataclass(frozen=True)
class Case:
    """One experiment: a scenario, and values that replace those of the scenario file.

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
    """A claim of a paper, and relations between measurements that must hold if the claim is true in
    this lab.

    `strength` is "S" if the paper states the claim plainly and confirms it, "M" if the paper states
    it once, and "W" if the paper states it weakly. `judged` is True if the claim counts when the
    lab decides whether the reproduction succeeds. If the measurements do not agree with the claim,
    `why` explains the reason, and `cause` is the kind of reason, a key of `papers.page.CAUSES`.
    `not_run` counts relations of the claim that are not in `relations`, because their cases
    (experiments) are not run.
    """

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""
    cause: str = ""
    not_run: int = 0

    def part(self, fits: Callable[[Judged], bool]) -> Claim:
        """Return the claim with only those relations for which `fits` is True."""
        kept = tuple(each for each in self.relations if fits(each))
        not_run = self.not_run + len(self.relations) - len(kept)
        return replace(self, relations=kept, not_run=not_run)

    def verdict(self, found: Found) -> str:
        """Return "agrees", "disagrees" or "open"."""
        said = {each.judgement(found).said for each in self.relations}
        if "fails" in said:
            return "disagrees"
        return "open" if "open" in said or self.not_run else "agrees"

    def evidence(self, found: Found) -> str:
        """Return how many relations hold, and up to three of them with their measured values.
        Relations that fail are quoted first, then open ones with the number of runs to add."""
        judged = [(each.judgement(found), each) for each in self.relations]
        held = sum(judgement.said == "holds" for judgement, _ in judged)
        order = sorted(judged, key=lambda each: ("fails", "open", "holds").index(each[0].said))
        some = "; ".join(
            f"{each.shown(found)}{'' if judgement.said == 'holds' else f' ({judgement.text})'}"
            for judgement, each in order[:SHOWN]
        )
        instance = ", for instance" if len(judged) > SHOWN else ""
        return f"{held} of {self.size}{instance}: {some}"

    @property
    def size(self) -> str:
        """How many relations the claim has, and how many of them are not run."""
        not_run = f", {self.not_run} not run" if self.not_run else ""
        return f"{len(self.relations) + self.not_run}{not_run}"


@dataclass(frozen=True)
class Paper:
    """A paper that the command `reproduce` can repeat.

    `measure` computes the numbers of one run. `tables` makes Markdown tables from the numbers of
    all runs, which are keyed by the name of the case (experiment). `note` explains the symbols in
    the claims. `quick` is the same paper with fewer cases, or None if the paper has only few cases.
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
    """Return the names of all cases (experiments) whose runs are needed to judge the claims."""
    return frozenset[str]().union(*(each.cases() for claim in claims for each in claim.relations))


def joined(*parts: str) -> str:
    """Join parts of a Markdown page with empty lines."""
    return "\n\n".join(parts)


def average(found: Found, case: str, number: str) -> float:
    """Return the mean over all seeds of a number that was measured in a case (experiment). `number`
    is its name, such as "T"."""
    return mean([each[number] for each in found[case]])
