"""Compute Ben(M), the benefit of multipath over the best single path (MPTCP-LA, eq (1))."""

from __future__ import annotations

from collections.abc import Sequence

NOISE = 1e-9  # relative difference below which two throughputs count as equal


def benefit(multipath_mbps: float, single_mbps: Sequence[float]) -> float | None:
    """Return Ben(M) (MPTCP-LA, section 3.3): 0 is the best path alone, 1 the sum of all paths.

    `single_mbps` is the throughput of plain TCP over each path alone, under the same conditions. -1
    means that multipath carries nothing; measured values may exceed 1. The result is None if no
    path alone carries anything. If only one path does, the sum equals the best path, and any gain
    counts as 1.
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
