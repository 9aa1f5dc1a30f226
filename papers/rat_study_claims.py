"""The claims of the RAT study (RAT: radio access technology). Each claim consists of relations
between numbers that were measured in experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from papers.base import Claim
from papers.rat_study_relations import (
    BUFFERS_KB,
    CONGESTION_CONTROLS,
    CONNECTIONS,
    SETUP_1,
    SETUP_2,
    SETUP_2_11G,
    VOLUMES_MB,
    Relations,
    alike,
    changed,
    each_cell,
    each_pair,
    growing,
    highest,
    ordered,
    share,
    together,
    value,
    with_connections,
)
from papers.rat_study_runs import CUBIC, LIA, OLIA, Cell
from papers.relations import Quotient, Relation

# Why claims do not agree


FULL = (
    "Without loss, one connection of each node already fills both cells; with more, the last one "
    "ends later. If WiFi cells lose 1 to 3 % although they retransmit, five connections carry more "
    "than one: in N10 with 1 and 3 %, in N14 with 3 %, in N2 for WiFi with 3 %; N6's LTE grows. "
    "Collisions alone do not cause this: with `air: dcf`, in which stations draw backoffs and "
    "send a frame that collided again, N2, N10 and N14 disagree as before, and no relation of N6 "
    "fails (sensitivity page)"
)
ORDER = (
    "Without loss, both paths are full with every congestion control. If WiFi cells lose 1 %, "
    "Cubic carries more than OLIA and LIA in every comparison (sensitivity page); then LTE > WiFi "
    "fails with one connection, because the second WiFi cell on its way loses packets too"
)
DEEP = (
    "The last segments of a small transfer wait in LTE's buffer of 1000 kB (2 s at 4 Mb/s). With "
    "300 kB no relation fails (sensitivity page)"
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
    "With an LTE buffer of 300 kB and half a second before the first packet, Cubic's and OLIA's "
    "WiFi grow from 10 to 15 MB, and LIA's stays the same (sensitivity page)"
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
    "0 %, so the four sizes differ by less than ten seeds can tell, or not at all"
)
COLLIDING = (
    "The study does not say how much air the stations lose to each other. If they draw backoffs "
    "and collide (`air: dcf`), no relation fails (sensitivity page)"
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
    "With the papers' kernel no relation fails: OLIA and LIA carry more than Cubic in every "
    "network, and differ by less than 1 % (5.20 and 5.17 Mb/s with 802.11a). With today's Linux "
    "LIA carries more than OLIA (13.8 and 13.1 Mb/s with 802.11n). The study does not say what the "
    "throughput of several connections is; if their rates are added, OLIA and LIA are equal with "
    "the papers' kernel (sensitivity page)"
)
CAUSES = {  # claim: where the disagreement comes from, and why
    **dict.fromkeys(("N2", "N6", "N10", "N14"), ("setting", FULL)),
    "N3": ("setting", COLLIDING),
    "N4": ("setting", COLLIDING),
    "N9": ("here", ALIKE),
    "S2": ("setting", FASTER.format("Cubic carries more than OLIA, and LIA > OLIA is open")),
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
    """Return the claim with the cause of its disagreement, if a cause is known."""
    cause, why = CAUSES.get(claim.name, ("", ""))
    return replace(claim, cause=cause, why=why)


# Claims about the volume of data and the receive buffer


SETUP_1_10, SETUP_2_10, SETUP_2_11G_10 = (
    with_connections(each, 10) for each in (SETUP_1, SETUP_2, SETUP_2_11G)
)
SETUP_2_11A_10, SETUP_3_10 = Cell(2, "11a", 10), Cell(3, "11n5", 10)
AT_800_KB = replace(SETUP_3_10, buffer_kb=800)
FROM_800_KB = BUFFERS_KB[1:]
VOLUME_AND_BUFFER = (
    Claim(
        "V1",
        "S",
        "Setup I: LTE carries more of larger volumes, for all",
        growing(SETUP_1, "L", "volume_mb", VOLUMES_MB),
        True,
    ),
    Claim(
        "V2",
        "M",
        "Setup I: WiFi carries more of 15 than of 10 MB for Cubic and OLIA, less for LIA, and "
        "Cubic not less of 10 than of 5 MB",
        growing(SETUP_1, "W", "volume_mb", (10, 15), (CUBIC, OLIA))
        + growing(SETUP_1, "W", "volume_mb", (15, 10), (LIA,))
        + each_pair(
            [(changed(SETUP_1, CUBIC, volume_mb=10), changed(SETUP_1, CUBIC, volume_mb=5))],
            "W",
            ">=",
        ),
    ),
    Claim(
        "V3",
        "M",
        "Setup II, 10 connections: WiFi and LTE carry more of 15 than of 10 MB for LIA and OLIA",
        growing(SETUP_2_10, "W", "volume_mb", (10, 15), (LIA, OLIA))
        + growing(SETUP_2_10, "L", "volume_mb", (10, 15), (LIA, OLIA)),
    ),
    Claim(
        "V4",
        "M",
        "Setup II, 10 connections, 20 instead of 15 MB: WiFi carries more for OLIA and Cubic and "
        "less for LIA, LTE less for OLIA",
        growing(SETUP_2_10, "W", "volume_mb", (15, 20), (OLIA, CUBIC))
        + growing(SETUP_2_10, "W", "volume_mb", (20, 15), (LIA,))
        + growing(SETUP_2_10, "L", "volume_mb", (20, 15), (OLIA,)),
    ),
    Claim(
        "V5",
        "M",
        "Setup II, 802.11g, 10 connections: from 10 to 15 MB, LTE grows for all and WiFi for Cubic "
        "and LIA; from 15 to 20 MB, LIA's LTE grows and its WiFi falls",
        growing(SETUP_2_11G_10, "L", "volume_mb", (10, 15))
        + growing(SETUP_2_11G_10, "W", "volume_mb", (10, 15), (CUBIC, LIA))
        + growing(SETUP_2_11G_10, "L", "volume_mb", (15, 20), (LIA,))
        + growing(SETUP_2_11G_10, "W", "volume_mb", (20, 15), (LIA,)),
    ),
    Claim(
        "V6",
        "S",
        "Long connections: Cubic and OLIA carry as much of 15 as of 20 MB (Setup II, 10 "
        "connections, 802.11n and 802.11g)",
        alike(SETUP_2_10, "T", "volume_mb", (15, 20), (CUBIC, OLIA))
        + alike(SETUP_2_11G_10, "T", "volume_mb", (15, 20), (CUBIC, OLIA)),
    ),
    Claim(
        "V7",
        "W",
        "Setup II, a very small volume (5 MB over 10 connections): Cubic > OLIA",
        ordered(replace(SETUP_2_10, volume_mb=5), "cubic > olia"),
    ),
    Claim(
        "B1",
        "M",
        "Setup I, 10 connections: WiFi carries more with 800 than with 640 KB for Cubic and OLIA, "
        "and as much with more; less the larger the buffer for LIA; LTE carries the same for all",
        growing(SETUP_1_10, "W", "buffer_kb", (640, 800), (CUBIC, OLIA))
        + alike(SETUP_1_10, "W", "buffer_kb", FROM_800_KB, (CUBIC, OLIA))
        + growing(SETUP_1_10, "W", "buffer_kb", BUFFERS_KB[::-1], (LIA,))
        + alike(SETUP_1_10, "L", "buffer_kb", BUFFERS_KB),
    ),
    Claim(
        "B2",
        "M",
        "Setup II, 10 connections: Cubic's LTE grows from 640 to 800 KB, then stays; from 800 to "
        "1000 KB, OLIA's LTE falls and its WiFi grows; Cubic's WiFi falls at 1200 KB; LIA falls",
        growing(SETUP_2_10, "L", "buffer_kb", (640, 800), (CUBIC,))
        + alike(SETUP_2_10, "L", "buffer_kb", FROM_800_KB, (CUBIC,))
        + growing(SETUP_2_10, "L", "buffer_kb", (1000, 800), (OLIA,))
        + growing(SETUP_2_10, "W", "buffer_kb", (800, 1000), (OLIA,))
        + growing(SETUP_2_10, "W", "buffer_kb", (1200, 1000), (CUBIC,))
        + growing(SETUP_2_10, "T", "buffer_kb", BUFFERS_KB[::-1], (LIA,)),
    ),
    Claim(
        "B3",
        "M",
        "Setup II, 802.11a, 10 connections: WiFi carries less the larger the buffer for Cubic and "
        "OLIA; LIA is fastest with 1000 KB",
        growing(SETUP_2_11A_10, "W", "buffer_kb", BUFFERS_KB[::-1], (CUBIC, OLIA))
        + highest(SETUP_2_11A_10, "T"),
    ),
    Claim(
        "B4",
        "M",
        "Setup III, 10 connections: with 800 KB, Cubic carries most by WiFi and by LTE, and OLIA "
        "and LIA carry most by WiFi",
        together(highest(changed(AT_800_KB, cc), "W") for cc in (CUBIC, OLIA, LIA))
        + highest(changed(AT_800_KB, CUBIC), "L"),
    ),
    Claim(
        "B5",
        "M",
        "Setup III, 10 connections: LIA is fastest with 1000 KB",
        highest(changed(SETUP_3_10, LIA), "T"),
    ),
)


STANDARDS = ("11a", "11g", "11n5")
SETUP_1_11A, SETUP_1_11N24, SETUP_1_11N5 = (
    Cell(1, wifi, 5, buffer_kb=800) for wifi in ("11a", "11n24", "11n5")
)
WIFI_ONLY, LTE_ONLY = replace(SETUP_1, interfaces="wifi"), replace(SETUP_1, interfaces="lte")


def _all_of(base: Cell, connections: Iterable[int] = CONNECTIONS) -> list[Cell]:
    """Return copies of an experiment: one for each number of connections in `connections` and each
    congestion control."""
    return [changed(base, cc, parallel=n) for n in connections for cc in CONGESTION_CONTROLS]


def _paired(left: Cell, right: Cell, connections: Iterable[int]) -> list[tuple[Cell, Cell]]:
    numbers = tuple(connections)
    return list(zip(_all_of(left, numbers), _all_of(right, numbers), strict=True))


def _gains() -> Relations:
    """Return relations that say: both interfaces together carry more than WiFi alone and more than
    LTE alone. They cover several buffers, numbers of connections and volumes."""
    both = [
        *(replace(SETUP_1, buffer_kb=kb) for kb in BUFFERS_KB),
        *(replace(SETUP_1, parallel=n) for n in (1, 10)),
        *(replace(SETUP_1, volume_mb=mb) for mb in (5, 10)),
    ]
    pairs = ((cell, replace(cell, interfaces=only)) for cell in both for only in ("wifi", "lte"))
    return each_pair(pairs, "T")


def _gain(volume_mb: int) -> Quotient:
    """Return the goodput of both interfaces divided by the goodput of WiFi alone, for one
    volume."""
    both, alone = (value(replace(each, volume_mb=volume_mb), "T") for each in (SETUP_1, WIFI_ONLY))
    return Quotient(both, alone, f"{both.title} over {alone.title}")


N12 = each_cell(_all_of(SETUP_2_11G), "L", ">", "W") + together(
    ordered(with_connections(SETUP_2_11G, n), f"cubic > {cc}")
    for n in CONNECTIONS
    for cc in (OLIA, LIA)
)
N9 = ordered(with_connections(SETUP_2, 1), "cubic ~ olia") + together(
    ordered(with_connections(SETUP_2, n), order)
    for n in (5, 10)
    for order in ("olia > lia", "olia >= cubic")
)
S3 = together(
    each_pair([(changed(SETUP_1_11N5, cc), changed(other, cc)) for cc in CONGESTION_CONTROLS], "T")
    for other in (SETUP_1_11A, SETUP_1_11N24)
) + ordered(SETUP_1_11N5, "cubic > olia > lia")
S4 = each_pair(
    [
        (Cell(2, wifi, 5, buffer_kb=800, cc=cc), Cell(3, wifi, 5, buffer_kb=800, cc=cc))
        for wifi in STANDARDS
        for cc in CONGESTION_CONTROLS
    ],
    "T",
)
_CLAIMS = (
    Claim(
        "N1",
        "S",
        "Setup I: WiFi carries more than LTE, for all congestion controls and numbers of "
        "connections",
        each_cell(_all_of(SETUP_1), "W", ">", "L"),
        True,
    ),
    Claim(
        "N2",
        "S",
        "Setup I: five connections carry more than one, by WiFi and by LTE, for all",
        growing(SETUP_1, "W", "parallel", (1, 5)) + growing(SETUP_1, "L", "parallel", (1, 5)),
        True,
    ),
    Claim(
        "N3",
        "S",
        "Setup I: from 5 to 10 connections, WiFi falls for LIA and OLIA, LTE falls for none",
        growing(SETUP_1, "W", "parallel", (10, 5), (LIA, OLIA))
        + each_pair(
            [
                (changed(SETUP_1, cc, parallel=10), changed(SETUP_1, cc))
                for cc in CONGESTION_CONTROLS
            ],
            "L",
            ">=",
        ),
    ),
    Claim(
        "N4",
        "S",
        "Setup I, 5 and 10 connections: Cubic > OLIA >= LIA",
        together(ordered(with_connections(SETUP_1, n), "cubic > olia >= lia") for n in (5, 10)),
    ),
    Claim(
        "N5",
        "W",
        "Setup I, one connection: OLIA > Cubic and LIA",
        together(ordered(with_connections(SETUP_1, 1), f"olia > {cc}") for cc in (CUBIC, LIA)),
    ),
    Claim(
        "N6",
        "S",
        "Setup II: LTE carries more with more connections, and more than in Setup I, for all",
        growing(SETUP_2, "L", "parallel", CONNECTIONS)
        + each_pair(_paired(SETUP_2, SETUP_1, CONNECTIONS), "L"),
        True,
    ),
    Claim(
        "N7",
        "M",
        "Setup II: WiFi grows with the connections for LIA, falls from 5 to 10 for OLIA, and is "
        "the same for Cubic",
        growing(SETUP_2, "W", "parallel", CONNECTIONS, (LIA,))
        + growing(SETUP_2, "W", "parallel", (10, 5), (OLIA,))
        + alike(SETUP_2, "W", "parallel", CONNECTIONS, (CUBIC,)),
    ),
    Claim(
        "N8",
        "M",
        "The senders' WiFi has less traffic load in Setup II than in Setup I, with 5 and 10 "
        "connections: it carries less of the volume",
        tuple(
            Relation(share(first, "W"), ">", share(second, "W"))
            for first, second in _paired(SETUP_1, SETUP_2, (5, 10))
        ),
    ),
    Claim(
        "N9",
        "M",
        "Setup II: Cubic ~ OLIA with one connection; with 5 and 10 OLIA > LIA and OLIA >= Cubic",
        N9,
    ),
    Claim(
        "N10",
        "S",
        "Setup II, 802.11g: LTE carries more with more connections, for all",
        growing(SETUP_2_11G, "L", "parallel", CONNECTIONS),
        True,
    ),
    Claim(
        "N11",
        "M",
        "Setup II, 802.11g: WiFi carries less with 5 connections than with one, for all, and less "
        "with 10 than with 5 for OLIA",
        growing(SETUP_2_11G, "W", "parallel", (5, 1))
        + growing(SETUP_2_11G, "W", "parallel", (10, 5), (OLIA,)),
    ),
    Claim(
        "N12",
        "S",
        "Setup II, 802.11g: LTE > WiFi, and Cubic > OLIA and LIA, with 1, 5 and 10 connections "
        "(with 5 also S6)",
        N12,
        True,
    ),
    Claim(
        "N13",
        "M",
        "Setup II, 802.11g, 20 connections: WiFi carries more than LTE, for all",
        each_cell(_all_of(SETUP_2_11G, (20,)), "W", ">", "L"),
    ),
    Claim(
        "N14",
        "S",
        "In every setup five connections carry more in total than one",
        together(
            growing(base, "T", "parallel", (1, 5)) for base in (SETUP_1, SETUP_2, SETUP_2_11G)
        ),
        True,
    ),
    Claim(
        "N14, 10",
        "S",
        "Setup I: LIA and OLIA carry less in total with 10 connections than with five",
        growing(SETUP_1, "T", "parallel", (10, 5), (LIA, OLIA)),
    ),
    *VOLUME_AND_BUFFER,
    Claim(
        "S1",
        "M",
        "Setup I, 802.11a: Cubic ~ OLIA, LIA slightly more",
        ordered(SETUP_1_11A, "cubic ~ olia")
        + ordered(SETUP_1_11A, "lia >= cubic")
        + ordered(SETUP_1_11A, "lia >= olia"),
    ),
    Claim(
        "S2",
        "M",
        "Setup I, 802.11n at 2.4 GHz: Cubic and LIA > OLIA",
        ordered(SETUP_1_11N24, "cubic > olia") + ordered(SETUP_1_11N24, "lia > olia"),
    ),
    Claim(
        "S3",
        "S",
        "Setup I, 802.11n at 5 GHz: more than with 11a and with 11n at 2.4 GHz for all, and Cubic "
        "> OLIA > LIA",
        S3,
    ),
    Claim(
        "S4",
        "S",
        "Setup III carries less than Setup II, for every congestion control and standard",
        S4,
        True,
    ),
    Claim(
        "S5",
        "S",
        "Setup III: OLIA >= LIA > Cubic, for every standard",
        together(
            ordered(Cell(3, wifi, 5, buffer_kb=800), "olia >= lia > cubic") for wifi in STANDARDS
        ),
        True,
    ),
    Claim(
        "H1", "S", "LTE alone: Cubic ~ LIA ~ OLIA", ordered(LTE_ONLY, "cubic ~ lia ~ olia"), True
    ),
    Claim(
        "H2", "M", "WiFi alone: Cubic >= LIA >= OLIA", ordered(WIFI_ONLY, "cubic >= lia >= olia")
    ),
    Claim(
        "H3",
        "S",
        "Both interfaces carry more than either alone, for all buffers, numbers of connections "
        "and volumes (LIA)",
        _gains(),
        True,
    ),
    Claim(
        "H4",
        "M",
        "WiFi alone carries most with 640 KB of receive buffer, LTE alone with 800 KB",
        highest(replace(WIFI_ONLY, buffer_kb=640), "T")
        + highest(replace(LTE_ONLY, buffer_kb=800), "T"),
    ),
    Claim(
        "H5",
        "S",
        "Either interface alone carries more with more connections",
        together(
            growing(base, "T", "parallel", CONNECTIONS, (LIA,)) for base in (WIFI_ONLY, LTE_ONLY)
        ),
    ),
    Claim(
        "H6",
        "S",
        "WiFi alone falls with the volume; LTE alone carries a little more of 10 than of 5 MB",
        growing(WIFI_ONLY, "T", "volume_mb", VOLUMES_MB[::-1], (LIA,))
        + growing(LTE_ONLY, "T", "volume_mb", (5, 10), (LIA,)),
    ),
    Claim(
        "H7",
        "M",
        "Both interfaces gain most over WiFi alone with the largest volume",
        tuple(Relation(_gain(15), ">", _gain(mb)) for mb in (5, 10)),
    ),
)
CLAIMS = tuple(explained(each) for each in _CLAIMS)
