"""List the claims of the RAT study (RAT: radio access technology), each as relations between
experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lab.evaluation.reproduction.base import Claim
from lab.evaluation.reproduction.rat_study_causes import explained
from lab.evaluation.reproduction.rat_study_relations import (
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
from lab.evaluation.reproduction.rat_study_runs import CUBIC, LIA, OLIA, Cell
from lab.evaluation.reproduction.rat_study_volumes import VOLUME_AND_BUFFER
from lab.evaluation.reproduction.relations import Quotient, Relation

STANDARDS = ("11a", "11g", "11n5")
SETUP_1_11A, SETUP_1_11N24, SETUP_1_11N5 = (
    Cell(1, wifi, 5, buffer_kb=800) for wifi in ("11a", "11n24", "11n5")
)
WIFI_ONLY, LTE_ONLY = replace(SETUP_1, interfaces="wifi"), replace(SETUP_1, interfaces="lte")


def _all_of(base: Cell, connections: Iterable[int] = CONNECTIONS) -> list[Cell]:
    """Return copies of an experiment, one for each number of connections and congestion control."""
    return [changed(base, cc, parallel=n) for n in connections for cc in CONGESTION_CONTROLS]


def _paired(left: Cell, right: Cell, connections: Iterable[int]) -> list[tuple[Cell, Cell]]:
    numbers = tuple(connections)
    return list(zip(_all_of(left, numbers), _all_of(right, numbers), strict=True))


def _gains() -> Relations:
    """Return relations that state: both interfaces together carry more than WiFi alone and than LTE
    alone, for several buffers, numbers of connections and volumes."""
    both = [
        *(replace(SETUP_1, buffer_kb=kb) for kb in BUFFERS_KB),
        *(replace(SETUP_1, parallel=n) for n in (1, 10)),
        *(replace(SETUP_1, volume_mb=mb) for mb in (5, 10)),
    ]
    pairs = ((cell, replace(cell, interfaces=only)) for cell in both for only in ("wifi", "lte"))
    return each_pair(pairs, "T")


def _gain(volume_mb: int) -> Quotient:
    """Return how much more both interfaces carry of a volume than WiFi alone."""
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
