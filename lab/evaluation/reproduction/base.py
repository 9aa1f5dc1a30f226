"""Describe how a paper is reproduced: its cases, the numbers measured in each run, and its claims.

A claim is a list of relations, such as `a > b` between two means over the seeds. It agrees with the
paper if all relations hold, disagrees if one fails, and is not significant otherwise.
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
    """Describe one experiment: a scenario, and the settings that differ from its file."""

    name: str
    scenario: str
    settings: tuple[str, ...] = ()
    cc: str | None = None
    strategy: str | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Claim:
    """Hold one claim of a paper, with the relations that decide whether it holds here.

    `strength` is S if the paper states the claim plainly and confirms it, M if it states it once, W
    if weakly. `judged` claims decide whether the reproduction succeeds. `why` explains a
    disagreement.
    """

    name: str
    strength: str
    text: str
    relations: tuple[Judged, ...]
    judged: bool = False
    why: str = ""

    def verdict(self, found: Found) -> str:
        """Return `agrees`, `disagrees` or `not significant`.

        `found` holds the numbers of all runs.
        """
        verdicts = {each.verdict(found) for each in self.relations}
        if "fails" in verdicts:
            return "disagrees"
        return "not significant" if "open" in verdicts else "agrees"

    def evidence(self, found: Found) -> str:
        """Return as text how many relations hold, and SHOWN of them, failed ones first."""
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
    """Describe a paper: its experiments, how to measure a run, and how to write the page.

    `name` is its name on the command line. `measure` returns the numbers of a finished run of a
    case, and `page` the Markdown text for all numbers.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    measure: Callable[[Case, FinishedRun], Numbers]
    page: Callable[[Found], str]


def joined(*parts: str) -> str:
    """Join the parts of a page with empty lines between them."""
    return "\n\n".join(parts)


def claims_section(claims: Sequence[Claim], found: Found, note: str) -> str:
    """Return Markdown: how many judged claims agree, then `note`, then a table of all claims."""
    judged = [each for each in claims if each.judged]
    agree = sum(each.verdict(found) == "agrees" for each in judged)
    return f"{agree} of {len(judged)} judged claims agree. {note}\n\n{_claims_table(claims, found)}"


def average(found: Found, case: str, number: str) -> float:
    """Return the mean over the seeds of one number (such as "T") of one case."""
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
