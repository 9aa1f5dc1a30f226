"""List the claims of the RAT study (RAT: radio access technology) about the volume of data and the
receive buffer."""

from __future__ import annotations

from dataclasses import replace

from lab.evaluation.reproduction.base import Claim
from lab.evaluation.reproduction.rat_study_relations import (
    BUFFERS_KB,
    SETUP_1,
    SETUP_2,
    SETUP_2_11G,
    VOLUMES_MB,
    alike,
    changed,
    each_pair,
    growing,
    highest,
    ordered,
    together,
    with_connections,
)
from lab.evaluation.reproduction.rat_study_runs import CUBIC, LIA, OLIA, Cell

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
