"""Say why claims of the RAT study (RAT: radio access technology) do not agree."""

from __future__ import annotations

from dataclasses import replace

from lab.evaluation.reproduction.base import Claim

FULL = (
    "One connection of each pair already fills both cells here (alone, WiFi carries 12.1 of the "
    "12 Mb/s per node that are deduced from the study, LTE 3.7 of 4); with more connections, the "
    "last one ends later"
)
EVEN = "Both paths are full with every congestion control, so T differs by a few percent only"
DEEP = (
    "The last segments of a small transfer wait in LTE's buffer (1 MB takes 2 s at 4 Mb/s; its "
    "mean RTT is 1 to 2 s), where the scheduler puts them while WiFi is full"
)
CAUSES = {  # claim: where the disagreement comes from, and why
    **dict.fromkeys(("N2", "N6", "N10", "N14", "H5"), ("setting", FULL)),
    **dict.fromkeys(("N4", "N12", "S3"), ("setting", EVEN)),
    "H3": ("setting", DEEP),
    "V1": ("setting", "LTE is full from the first second"),
}


def explained(claim: Claim) -> Claim:
    """Return the claim with the cause of its disagreement, if one is known."""
    cause, why = CAUSES.get(claim.name, ("", ""))
    return replace(claim, cause=cause, why=why)
