"""The claims of each paper that are checked in the emulation.

Runs in the emulation take real time, so only some claims are checked there. Of such a claim, only
those relations are checked whose cases (experiments) fit into the emulation. The claims were chosen
before the runs were made; none was left out because of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from controller.command import LOWEST_LIMIT_BPS
from controller.units import mbps_from_bps
from lab.errors import RequestError, unknown
from lab.scenario import loading
from papers import dtmc, mp_sdn, mptcp_la, rat_study_claims, s_mptcp
from papers.base import Case, Claim, Paper, cases_of
from papers.list import PAPERS
from papers.relations import Constant, Judged, Relation

START_S = 30  # about the time that the emulation needs before and after a run
SHARES = ("0", "40", "80")  # percent of multipath users in thirty_users


@dataclass(frozen=True)
class Emulation:
    """The names of a paper's claims that are checked in the emulation. `fits(name)` is True if the
    case (experiment) with this name is run in the emulation."""

    claims: tuple[str, ...]
    fits: Callable[[str], bool] = lambda _case: True


@dataclass(frozen=True)
class Restricted:
    """A claim, and the part of the claim that is checked in the emulation.

    `part` has only those relations of `claim` whose cases (experiments) fit into the emulation.
    `refused` says why the emulation refuses some of these cases. It is empty if none is refused.
    """

    claim: Claim
    part: Claim
    refused: str = ""

    @property
    def cases(self) -> frozenset[str]:
        """The names of the cases (experiments) that must be run to judge `part`."""
        return cases_of([self.part])

    @property
    def not_run(self) -> list[str]:
        """The names of those cases (experiments) of the claim that are not run for `part`."""
        return sorted(cases_of([self.claim]) - self.cases)


def _mp_sdn_fits(case: str) -> bool:
    kind, *parts = case.split("-")
    return kind == "testbed" or (kind == "down" and parts[0] in SHARES)


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "mp_sdn": mp_sdn.CLAIMS,
    "s_mptcp": s_mptcp.CLAIMS,
    "mptcp_la": mptcp_la.CLAIMS,
    "dtmc": dtmc.CLAIMS,
    "rat_study": rat_study_claims.CLAIMS,
}
EMULATION = {
    "mp_sdn": Emulation(("1", "2", "3", "4", "5"), _mp_sdn_fits),
    "s_mptcp": Emulation(
        tuple(each.name for each in s_mptcp.CLAIMS if each.name.startswith(("T7", "T9", "T10")))
    ),
    "mptcp_la": Emulation(
        tuple(each.name for each in mptcp_la.CLAIMS if each.name.startswith(("5", "6")))
    ),
    "dtmc": Emulation(("5, chosen",)),
    "rat_study": Emulation(("S4", "S5", "H1")),
}


def chosen(paper: str, names: Sequence[str]) -> list[Claim]:
    """Return the named claims of a paper. If no claims are named, return all that are checked in
    the emulation.

    Raise `RequestError` for an unknown name, or for a claim that is not checked in the emulation.
    """
    claims = {each.name: each for each in CLAIMS[paper]}
    for name in names:
        if name not in claims:
            raise RequestError(f"--claim: claim {unknown(name, claims)}")
        if name not in EMULATION[paper].claims:
            raise RequestError(
                f"--claim: '{name}' is not checked in the emulation: "
                f"{reason_against(paper, claims[name])}. "
                f"Choose from {', '.join(map(repr, EMULATION[paper].claims))}"
            )
    return [each for each in CLAIMS[paper] if each.name in (names or EMULATION[paper].claims)]


def not_chosen(paper: str) -> list[tuple[Claim, str]]:
    """Return the claims of a paper that are not checked in the emulation, each with the reason why
    not."""
    able = EMULATION[paper].claims
    return [(each, reason_against(paper, each)) for each in CLAIMS[paper] if each.name not in able]


def reason_against(paper: str, claim: Claim) -> str:
    """Return why a claim is not checked in the emulation. The text has the number of its cases
    (experiments) and the real time that they would take."""
    needed = cases_of([claim])
    cases = [case for case in PAPERS[paper].cases if case.name in needed]
    hours = sum(_length_s(case) + START_S for case in cases) / 3600
    return f"outside the chosen set; its {len(cases)} cases take {hours:.1f} h for each seed"


def restricted(
    paper: str, claim: Claim, refusals: Mapping[str, str], scales: Mapping[str, float]
) -> Restricted:
    """Return a claim, and a copy of it with only the relations that the emulation can check.

    A relation is left out if one of its cases (experiments) does not fit into the emulation or is
    refused. `refusals` maps each refused case to the reason. `scales` maps each other case to its
    rate scale.
    """
    fits = EMULATION[paper].fits
    fitting = claim.part(lambda each: all(map(fits, each.cases())))
    kept = fitting.part(lambda each: not each.cases() & refusals.keys())
    why = {
        refusals[case] for each in fitting.relations for case in each.cases() if case in refusals
    }
    scaled = tuple(_with_effective_floor(each, scales) for each in kept.relations)
    return Restricted(claim, replace(kept, relations=scaled), "; ".join(sorted(why)))


def _with_effective_floor(relation: Judged, scales: Mapping[str, float]) -> Judged:
    """Return the relation in a version that the emulation can check. If the right side is MP-SDN's
    minimum rate for secondary (Tier 2) subflows, this rate is replaced by the lowest rate that
    the emulation can enforce, if that is higher. Any other relation is returned unchanged.

    The lowest rate that a meter can enforce is fixed in the running network. In the rates of the
    scenario, it is this fixed rate divided by the rate scale.
    """
    if not isinstance(relation, Relation) or relation.right is not mp_sdn.FLOOR:
        return relation
    lowest_mbps = max(
        mbps_from_bps(LOWEST_LIMIT_BPS) / scales.get(case, 1.0) for case in relation.cases()
    )
    floor = Constant(max(mp_sdn.FLOOR.value, lowest_mbps), "the floor at this scale")
    return replace(relation, right=floor)


def fitting_cases(paper: Paper, claims: Sequence[Claim]) -> list[Case]:
    """Return the cases (experiments) of these claims that fit into the emulation, in the paper's
    order."""
    fits = EMULATION[paper.name].fits
    relations = (relation.cases() for claim in claims for relation in claim.relations)
    needed = frozenset[str]().union(*(each for each in relations if all(map(fits, each))))
    return [case for case in paper.cases if case.name in needed]


def _length_s(case: Case) -> float:
    return case.duration_s or _scenario_length_s(case.scenario)


@cache
def _scenario_length_s(scenario: str) -> float:
    return loading.load(scenario).duration_s
