"""List what the papers say of their results that no claim judges, and why.

Every other result that a paper states in words or in a table is a claim.
"""

from __future__ import annotations

from collections.abc import Mapping

NOT_JUDGED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "mp_sdn": (
        (
            "Figure 3: under plain Multipath TCP, UE1 keeps 0.68 of its rate",
            "The paper contradicts itself. Its equation (2) gives 0.48: two near stations (42 Mb/s "
            "each alone) share 21 Mb/s each, and 10 each with a third station of 19.1 Mb/s, the "
            "rate that explains the total of 30 Mb/s. Claim 4 judges UE1 with MP-SDN",
        ),
        (
            "Figure 6: WiFi loses much and LTE little with each weak station",
            "It plots equations (2) and (3) for rates that the paper does not state. The table of "
            "the equations below shows the same for the networks of claim 1",
        ),
        (
            "Figure 14a: T1-BW-Un is also large, above 1 Mb/s, with an interval of 1 s",
            "A setting that the paper does not state: how the occupancy of the queue is sampled. "
            "The paper explains the figure by samples that miss a full queue. Here the occupancy "
            "is a mean over the interval, and T1-BW-Un is smallest at 1 s (table below). Claim 7 "
            "judges the other intervals",
        ),
        (
            "Figure 17: the rate of one access point over time, with intervals of 5 and 30 s",
            "A curve of one run. Claim 8 judges the same effect by the rate of the network, and "
            "its cause applies here",
        ),
    ),
    "s_mptcp": (
        (
            "Table 6: alpha and beta of the window-based flow control",
            "S-MPTCP limits subflows by their pacing rate here, which has neither. The form by "
            "window is fixed at the recommended values 5 and 1 (row `S-MPTCP by window` below)",
        ),
        (
            "Table 4: how long the maximum flow of a fat tree takes",
            "Cannot be measured here: these are times of another machine and programming language",
        ),
        (
            "Table 10: between connections, hashing carries more (30.9 Mb/s) than disjoint paths "
            "(27.3)",
            "The paper's ten runs do not show it. Either loses 10 Mb/s in a collision and expects "
            "one collision in each run, so both carry 28.3 Mb/s on average, and a mean of ten runs "
            "scatters by 2.1. Here both carry the same (table below)",
        ),
        (
            "Section 6: S-MPTCP works if less than 1 % is lost",
            "The paper states no figure with which a run could be compared",
        ),
    ),
    "mptcp_la": (
        (
            "Section 4.3.1: leaving a slow WiFi path saves power",
            "Cannot be measured here: nothing models the power of a radio",
        ),
    ),
    "dtmc": (
        (
            "Figure 4: the forecast receive buffer is that of the emulation",
            "The paper contradicts itself. By its equation (17) paths of the same round trip need "
            "no buffer, and its three paths have the same links",
        ),
        (
            "Figures 9 and 10: windows settle faster with the chosen paths",
            "The paper does not say when a window has settled; it shows one run",
        ),
    ),
    "rat_study": (
        (
            "Figure 7c: LTE carries a little more with one of the receive buffers (Setup II, "
            "802.11a)",
            "The study does not say with which. Claim B3 judges the rest of the figure",
        ),
        (
            "Why the orders are as they are: round trips, collisions, windows",
            "The study explains its results by them and states no figures. The claims judge the "
            "results",
        ),
    ),
}
