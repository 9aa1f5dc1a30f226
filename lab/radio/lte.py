"""Proportional-fair shares of an LTE-like cell, recomputed ten times a second. Pure.

A cell's resources are shared in proportion to weight among the users that have something waiting; what the others leave
unused is shared out again (MP-SDN, section III, eq (3): user i gets w_i r_i / sum_j w_j when all are backlogged).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SMALLEST_BPS = 64_000  # what a user may send at the least
SPARE = 1.25  # a user below its share may grow by this much before the next look


@dataclass(frozen=True)
class Bearer:
    """A user on the cell: its rate when alone, its weight, and what it did since the last look."""

    rate_bps: float
    weight: float
    backlogged: bool
    used_bps: float


def shares_bps(bearers: Mapping[str, Bearer]) -> dict[str, float]:
    """The rate each user may send at until the next look [bit/s].

    1) a user with nothing waiting keeps the resources it used  2) the backlogged ones share the rest by weight
    3) a user with nothing waiting may grow up to the share it would have if it were backlogged.
    """
    used = {user: min(1.0, each.used_bps / each.rate_bps) for user, each in bearers.items() if not each.backlogged}  # 1
    waiting = {user: each.weight for user, each in bearers.items() if each.backlogged}
    everyone = sum(each.weight for each in bearers.values())
    fair = {user: each.weight / everyone for user, each in bearers.items()}
    left = 1.0 - sum(min(used[user], fair[user]) for user in used)
    granted = {user: left * weight / sum(waiting.values()) for user, weight in waiting.items()}  # 2
    for user, fraction in used.items():  # 3
        joined = bearers[user].weight / (sum(waiting.values()) + bearers[user].weight)
        granted[user] = min(joined, max(fraction * SPARE, fair[user]))
    return {user: granted[user] * bearers[user].rate_bps for user in bearers}
