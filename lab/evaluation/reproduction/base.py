"""Describe a paper's reproduction: its cases, the numbers of each run, and its claims.

A claim is a list of relations between means over the seeds, or of other `Judged` objects. It agrees
if all of them hold, disagrees if one fails, and is not significant otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.evaluation.reproduction.relations import Found, Judged, Numbers
from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from lab.results.tables import markdown_table

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

    `measure` returns the numbers of a finished run of a case.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    measure: Callable[[Case, FinishedRun], Numbers]
    page: Callable[[Found], str]


def joined(*parts: str) -> str:
    """Return the parts of a page with empty lines between them."""
    return "\n\n".join(parts)


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
