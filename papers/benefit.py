"""Compute the benefit Ben(M) of Multipath TCP over the best single path (MPTCP-LA, eq (1))."""

from __future__ import annotations

from collections.abc import Sequence

NOISE = 1e-9  # relative difference below which two throughputs count as equal


def benefit(multipath_mbps: float, single_mbps: Sequence[float]) -> float | None:
    """Return Ben(M) (MPTCP-LA, section 3.3). It is 0 if multipath carries as much as the best path
    alone, 1 if it carries the sum of all paths, and -1 if it carries nothing. A measured value can
    exceed 1.

    `multipath_mbps` is the throughput of Multipath TCP. `single_mbps` holds the throughput of plain
    TCP over each path alone, under the same conditions. Return None if no path carries anything
    alone. If only one path does, the sum equals the best path; any gain then counts as 1.
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
