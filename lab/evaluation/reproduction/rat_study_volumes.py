"""List the claims of the RAT study (RAT: radio access technology) about the volume of data and the
receive buffer."""

from __future__ import annotations

from dataclasses import replace

from lab.evaluation.reproduction.base import Claim
from lab.evaluation.reproduction.rat_study_relations import (
    SETUP_1,
    VOLUMES_MB,
    changed,
    each_pair,
    growing,
    highest,
    together,
)
from lab.evaluation.reproduction.rat_study_runs import CUBIC, LIA, OLIA, Cell

SETUP_3_10 = Cell(3, "11n5", 10)
AT_800_KB = replace(SETUP_3_10, buffer_kb=800)
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
        "B4",
        "M",
        "Setup III, 10 connections: with 800 KB, Cubic carries most by WiFi and by LTE, and LIA "
        "by WiFi",
        together(highest(changed(AT_800_KB, cc), "W") for cc in (CUBIC, LIA))
        + highest(changed(AT_800_KB, CUBIC), "L"),
    ),
    Claim(
        "B5",
        "M",
        "Setup III, 10 connections: LIA is fastest with 1000 KB",
        highest(changed(SETUP_3_10, LIA), "T"),
    ),
)
