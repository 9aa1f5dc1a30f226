"""An LTE-like cell: what a signal allows a user when alone, proportional-fair shares, recomputed ten times a second, and HARQ. Pure.

A cell's resources are shared in proportion to weight among the users that have something waiting; what the others leave
unused is shared out again (MP-SDN, section III, eq (3): user i gets w_i r_i / sum_j w_j when all are backlogged).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, log2

SMALLEST_BPS = 64_000  # what a user may send at the least
SPARE = 1.25  # a user below its share may grow by this much before the next look

# bit per symbol of CQI 1 to 15 (3GPP TS 36.213, Table 7.2.3-1)
EFFICIENCIES = (
    0.1523,
    0.2344,
    0.3770,
    0.6016,
    0.8770,
    1.1758,
    1.4766,
    1.9141,
    2.4063,
    2.7305,
    3.3223,
    3.9023,
    4.5234,
    5.1152,
    5.5547,
)
GAP = (
    -log(5 * 0.00005) / 1.5
)  # between Shannon's bound and a bit error rate of 0.00005 (Piro et al., WNS3 2011)
FOR_DATA = 0.75  # of all symbols; the others carry control and reference signals
BLOCK_HZ = 180_000
BLOCK_ERROR = 0.1  # for which link adaptation aims (3GPP TS 36.213, section 7.2.3)
HARQ_TTIS = 8  # from one attempt to the next
ATTEMPTS = 4  # for a block at most
BLOCKS = {
    5: 25,
    10: 50,
    20: 100,
}  # resource blocks by bandwidth in MHz (3GPP TS 36.101, Table 5.6-1)


def cqi(snr_db: float) -> int:
    """The channel quality a user reports, 1 to 15: the best whose efficiency log2(1 + SNR / gap) covers; at least 1."""
    reached = log2(1 + 10 ** (snr_db / 10) / GAP)
    return max(1, sum(each <= reached for each in EFFICIENCIES))


def rate_bps(quality: int, blocks: int) -> float:
    """What a user with this CQI gets when alone on the cell."""
    return EFFICIENCIES[quality - 1] * blocks * BLOCK_HZ * FOR_DATA


def on_air_bps(alone_bps: int) -> int:
    """What first attempts must carry so that a user alone gets its rate, as every attempt takes as much of the air as the first."""
    attempts = (1 - BLOCK_ERROR**ATTEMPTS) / (1 - BLOCK_ERROR)
    return round(max(SMALLEST_BPS, alone_bps) * attempts)


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
    used = {
        user: min(1.0, each.used_bps / each.rate_bps)
        for user, each in bearers.items()
        if not each.backlogged
    }  # 1
    waiting = {user: each.weight for user, each in bearers.items() if each.backlogged}
    everyone = sum(each.weight for each in bearers.values())
    fair = {user: each.weight / everyone for user, each in bearers.items()}
    left = 1.0 - sum(min(used[user], fair[user]) for user in used)
    granted = {user: left * weight / sum(waiting.values()) for user, weight in waiting.items()}  # 2
    for user, fraction in used.items():  # 3
        joined = bearers[user].weight / (sum(waiting.values()) + bearers[user].weight)
        granted[user] = min(joined, max(fraction * SPARE, fair[user]))
    return {user: granted[user] * bearers[user].rate_bps for user in bearers}
