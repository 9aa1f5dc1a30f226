"""A model of an LTE cell: rates of users, proportional-fair shares and retransmissions (HARQ).

A user is backlogged if packets wait for it all the time. Backlogged users share the resources of
the cell in proportion to their weights. They also share what the other users do not need. If all
users are backlogged, user i gets the rate w_i r_i / sum_j w_j, where w is the weight and r the rate
without other users (MP-SDN, section III, eq (3)). Shares are computed ten times a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, log2

from lab.radio.occupancy import FRAME_BITS

SMALLEST_BPS = 64_000  # least rate of a user that is alone
GROWTH = 1.25  # a user without backlog may use this many times as much until the next computation
BUSY = 0.9  # fraction of a user's rate: a queue that sent less was empty in between

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
# between Shannon's bound and a bit error rate of 0.00005 (Piro et al., WNS3 2011)
GAP = -log(5 * 0.00005) / 1.5
FOR_DATA = 0.75  # of all symbols; the others carry control and reference signals
BLOCK_HZ = 180_000
BLOCK_ERROR = 0.1  # the target of link adaptation (3GPP TS 36.213, section 7.2.3)
HARQ_TTIS = 8  # from one attempt to the next
ATTEMPTS = 4  # of a block, at most
BLOCKS = {5: 25, 10: 50, 20: 100}  # resource blocks by MHz (3GPP TS 36.101, Table 5.6-1)


def cqi(snr_db: float) -> int:
    """Return the channel quality indicator (CQI, 1 to 15) that a user with this SNR reports.

    This is the largest CQI whose efficiency [bit per symbol] is at most log2(1 + SNR / GAP). It is
    1 if no CQI satisfies this. GAP is the distance of real modulation from Shannon's bound.
    """
    reached = log2(1 + 10 ** (snr_db / 10) / GAP)
    return max(1, sum(each <= reached for each in EFFICIENCIES))


def rate_bps(quality: int, blocks: int) -> float:
    """Return the rate of a user that is alone in a cell [bit/s].

    `quality` is the channel quality indicator of the user (CQI, 1 to 15). `blocks` is the number of
    resource blocks of the cell.
    """
    return EFFICIENCIES[quality - 1] * blocks * BLOCK_HZ * FOR_DATA


def on_air_bps(alone_bps: int) -> int:
    """Return the rate at which a base station sends, including HARQ retransmissions [bit/s].

    `alone_bps` is the rate at which a user that is alone in the cell receives data. The result is
    larger by the mean number of attempts, because a retransmission takes as much airtime as the
    first attempt.
    """
    attempts = (1 - BLOCK_ERROR**ATTEMPTS) / (1 - BLOCK_ERROR)
    return round(max(SMALLEST_BPS, alone_bps) * attempts)


@dataclass(frozen=True)
class Bearer:
    """A user of an LTE cell, as `shares_bps` needs it.

    `rate_bps` is the user's rate when it is alone in the cell. `used_bps` is the rate that the user
    had since the last call of `shares_bps`. `backlogged` is the result of `is_backlogged` for the
    same period.
    """

    rate_bps: float
    weight: float
    backlogged: bool
    used_bps: float


def is_backlogged(
    waiting_packets: int, used_bps: float, granted_bps: float, elapsed_s: float
) -> bool:
    """Return True if a user could have sent more at a higher rate.

    The user had `granted_bps` for the last `elapsed_s`, and used `used_bps` of it. Now
    `waiting_packets` wait. A user is backlogged if packets wait and one of two conditions holds:

    - It sent at least the fraction `BUSY` of what its rate allows, minus one full frame.
    - At least as many packets wait as its rate sends in `elapsed_s`.

    A waiting packet alone proves nothing: a user that needs 75 % of its rate has one in its queue
    three quarters of the time.
    """
    sent_bits, room_bits = used_bps * elapsed_s, granted_bps * elapsed_s
    is_busy = sent_bits + FRAME_BITS >= BUSY * room_bits
    return waiting_packets > 0 and (is_busy or waiting_packets * FRAME_BITS >= room_bits)


def shares_bps(bearers: Mapping[str, Bearer]) -> dict[str, float]:
    """Return the rate at which each user may send until the next computation [bit/s].

    1) For a user without backlog, the resources that it used are set aside, up to its share by
    weight among all users.

    2) The users with backlog share the rest in proportion to their weights.

    3) A user without backlog may use more than is set aside, so that it can grow. The limit is the
    share that it would have with a backlog. If nobody has one, it may also use what all leave free:
    a short answer in an idle cell has the whole rate at once. Two that begin between two
    computations have more than the cell together, until the next one.
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
    free = 0.0 if waiting else max(0.0, 1.0 - sum(used.values()))
    for user, fraction in used.items():  # 3
        joined = bearers[user].weight / (sum(waiting.values()) + bearers[user].weight)
        granted[user] = min(joined, max(fraction * GROWTH, fair[user], fraction + free))
    return {user: granted[user] * bearers[user].rate_bps for user in bearers}
