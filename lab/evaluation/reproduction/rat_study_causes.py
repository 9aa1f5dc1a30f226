"""Say why claims of the RAT study (RAT: radio access technology) do not agree."""

from __future__ import annotations

from dataclasses import replace

from lab.evaluation.reproduction.base import Claim

FULL = (
    "Without loss, one connection of each node already fills both cells; with more, the last one "
    "ends later. If WiFi cells lose 1 to 3 % although they retransmit, five connections carry more "
    "than one: N10 agrees with 1 and 3 %, N14 with 3 %, N2 for WiFi with 3 %, and N6's LTE grows "
    "(sensitivity page)"
)
ORDER = (
    "Without loss, both paths are full with every congestion control. If WiFi cells lose 1 %, "
    "Cubic carries more than OLIA and LIA in every comparison (sensitivity page); then LTE > WiFi "
    "fails with one connection, because the second WiFi cell on its way loses packets too"
)
DEEP = (
    "The last segments of a small transfer wait in LTE's buffer of 1000 kB (2 s at 4 Mb/s). With "
    "300 kB the claim agrees (sensitivity page)"
)
FLAT = (
    "LTE is full from the first second. With an LTE buffer of 300 kB its part no longer falls with "
    "the volume, but does not grow either; with a round trip of 400 ms it falls (sensitivity page)"
)
ITSELF = (
    "The study says of the same figure that Cubic is best; OLIA carries more than LIA if WiFi "
    "loses 1 % or more (sensitivity page)"
)
NO_LIMIT = (
    "Ten connections with 1.5 MB each never fill 640 kB, and hardly the 64 kB that each has if the "
    "buffer is that of a node (sensitivity page)"
)
LAST = (
    "T counts until the last of ten connections has ended, and LTE's part falls with T by 1 to 5 %"
)
CAUSES = {  # claim: where the disagreement comes from, and why
    **dict.fromkeys(("N2", "N6", "N10", "N14"), ("setting", FULL)),
    "N3": ("tried", LAST),
    **dict.fromkeys(("N4", "N8", "N9"), ("tried", "No loss of WiFi decides it (sensitivity page)")),
    "S2": ("tried", "Here 802.11n at 2.4 GHz loses 1 %; as in N4, no loss decides the order"),
    "S3": ("tried", "As in N4: both paths are full, and no loss of WiFi decides the order"),
    "N5": ("paper", ITSELF),
    "N7": ("setting", "LIA's WiFi grows if the cells lose 3 % (sensitivity page)"),
    "N12": ("setting", ORDER),
    "V1": ("tried", FLAT),
    "V2": ("tried", "Neither LTE's buffer nor its round trip decides it (sensitivity page)"),
    "B4": ("tried", NO_LIMIT),
    "B5": ("tried", NO_LIMIT),
    "H3": ("setting", DEEP),
    "H5": ("setting", "For WiFi it agrees if the cell loses 3 % (sensitivity page)"),
}


def explained(claim: Claim) -> Claim:
    """Return the claim with the cause of its disagreement, if one is known."""
    cause, why = CAUSES.get(claim.name, ("", ""))
    return replace(claim, cause=cause, why=why)
