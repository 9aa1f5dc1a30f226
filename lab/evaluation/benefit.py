"""What several paths bring over the best one alone: Ben(M) of MPTCP-LA, section 3.3, eq (1)."""

from __future__ import annotations

from collections.abc import Sequence

NOISE = 1e-9  # relative difference below which two throughputs are the same


def benefit(multipath_mbps: float, single_mbps: Sequence[float]) -> float | None:
    """0: as good as the best path alone; 1: the sum of all; -1: nothing arrives. None if no path carries anything alone.

    `single_mbps` is what plain TCP gets over each path under the same conditions, all in one unit. Measured values may lie
    above 1. Where only one path carries anything, all above it counts as 1, because there is no sum to divide by.
    """
    best = max(single_mbps, default=0.0)
    if best <= 0:
        return None
    gained = multipath_mbps - best
    if gained < 0:
        return gained / best
    others = sum(single_mbps) - best
    if others > 0:
        return gained / others
    return 1.0 if gained > NOISE * best else 0.0
