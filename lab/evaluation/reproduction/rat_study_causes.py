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
BEFORE = (
    "The study states neither the buffer of the base station nor what the time of a transfer "
    "includes. With 300 kB, and half a second before the first packet, the claim agrees "
    "(sensitivity page)"
)
HALF_A_SECOND = (
    "The study does not say what the time of a transfer includes. With half a second before the "
    "first packet {} (sensitivity page)"
)
AS_CLAIMED = (
    "WiFi grows for OLIA and Cubic, but LIA's WiFi and OLIA's LTE, which should fall, grow by 1 to "
    "4 %"
)
LATER = (
    "The study gives neither the number of connections nor a figure. LTE carries more for all with "
    "64 connections too, the most that a user opens here, and with a round trip of LTE of 400 ms "
    "(two seeds)"
)
EACH_PART = (
    "With an LTE buffer of 300 kB, LIA's WiFi falls; with half a second before the first packet "
    "too, Cubic's and OLIA's grow, and LIA's stays the same (sensitivity page)"
)
ITSELF = (
    "The study says of the same figure that Cubic is best; OLIA carries more than LIA if WiFi "
    "loses 1 % or more (sensitivity page)"
)
NO_LIMIT = (
    "The buffer never fills: less than 500 kB wait in one (ten seeds), so runs with 640 to 1200 kB "
    "are the same. Nor does it if LTE's buffer holds 10 MB. If a node's ten connections divide the "
    "buffer, all four sizes carry the same within 1 % in total (sensitivity page)"
)
SELDOM = (
    "640 kB fill up in 20 % of the connections in Setup I and in 1 % in Setup II, 1000 kB in 2 and "
    "0 %, so the four sizes differ by less than ten seeds can tell. No relation fails"
)
SUM = (
    "The study does not say whether the time ends with the last of ten connections or the rates of "
    "the connections are added. If they are added, {} (sensitivity page)"
)
IF_ADDED = (
    "For WiFi it agrees if the cell loses 3 %; if the rates of the connections are added, nothing "
    "contradicts it for either (sensitivity page)"
)
FASTER = (
    "The study states no rates. Those of the page are filled with every congestion control. With "
    "three times the rates {} (sensitivity page)"
)
ALONE = (
    "Alone, neither WiFi nor LTE fills a buffer (at most 330 kB wait in one), so runs with 640 to "
    "1200 kB are the same"
)
LIA_ONLY = (
    "LIA's WiFi grows if the cells lose 3 %, but then Cubic's does too (sensitivity page). The "
    "study states no loss"
)
ALIKE = (
    "With five and ten connections OLIA, LIA and Cubic are within 7 % of each other here, and no "
    "loss, no rate and no way to measure several connections that was tried puts OLIA first "
    "(sensitivity page). The study says it in its conclusion only, without a figure"
)
EQUAL = (
    "OLIA and LIA carry more than Cubic in every network with the papers' kernel, and differ by "
    "less than 1 %; with 802.11a OLIA carries less (5.15 and 5.18 Mb/s). The study does not say "
    "what the throughput of several connections is: if their rates are added, OLIA and LIA are "
    "equal there (5.43 and 5.45, standard deviation 0.05). With today's Linux LIA carries more "
    "than OLIA either way (both from the ten seeds of this page)"
)
CAUSES = {  # claim: where the disagreement comes from, and why
    **dict.fromkeys(("N2", "N6", "N10", "N14"), ("setting", FULL)),
    "N3": ("setting", SUM.format("the claim agrees")),
    "N4": ("setting", FASTER.format("the claim agrees")),
    "N9": ("here", ALIKE),
    "S2": ("setting", FASTER.format("the claim agrees")),
    "S5": ("setting", EQUAL),
    "S3": ("setting", FASTER.format("Cubic is fastest, and only OLIA > LIA is open")),
    "N5": ("paper", ITSELF),
    "N7": ("setting", LIA_ONLY),
    "N12": ("setting", ORDER),
    "N13": ("here", LATER),
    "V1": ("setting", BEFORE),
    "V2": ("setting", EACH_PART),
    "V3": ("setting", HALF_A_SECOND.format("the claim agrees")),
    "V4": ("here", HALF_A_SECOND.format(AS_CLAIMED)),
    "V5": (
        "setting",
        HALF_A_SECOND.format("all but the fall of LIA's WiFi (by less than 1 %) hold"),
    ),
    **dict.fromkeys(("B1", "B2", "B3"), ("here", SELDOM)),
    "B4": ("here", NO_LIMIT),
    "B5": ("here", NO_LIMIT),
    "H4": ("here", ALONE),
    "H3": ("setting", DEEP),
    "H5": ("setting", IF_ADDED),
}


def explained(claim: Claim) -> Claim:
    """Return the claim with the cause of its disagreement, if one is known."""
    cause, why = CAUSES.get(claim.name, ("", ""))
    return replace(claim, cause=cause, why=why)
