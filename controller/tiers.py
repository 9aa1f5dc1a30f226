"""Divide the associations of users into Tier 1 and Tier 2, the same for every strategy.

Source: MP-SDN, section IV, Algorithm 1.

An association is a user at an access point. Every association of a single-path user is Tier 1. Of a
multipath user the primary association is Tier 1 and the others are Tier 2. The primary is the one
with the largest achievable throughput, estimated with eq (2) for WiFi and eq (3) for LTE.

Priority-based selection:
1) Sort all associations by their rate when alone, the fastest first. Ties go by user and access
   point.
2) Take the next association. If its user has a primary, skip it.
3) Estimate for each association of the user the rate it would get if it joined the primaries chosen
   so far. The best one is the primary.
With `preseed`, the single association of each single-path user counts as chosen from the start; it
is Tier 1 anyway.

Connection filtering:
1) At each access point drop the given share of the associations, the weakest signal first, but
   never the last association of a user.
2) Estimate with all remaining associations. The best one of each user is its primary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Literal

from controller.observation import Association, Observation

Selection = Literal["priority", "filtering"]
# IEEE 802.11, best effort: contention window of 16 slots, doubled at most 6 times
CW_MIN, BACKOFF_STAGES = 16, 6


@dataclass(frozen=True)
class Settings:
    """Hold how primaries are chosen.

    `contention` is the model of WiFi collisions: "none" sends each packet once, "bianchi" as often
    as Bianchi's model.
    """

    selection: Selection = "priority"
    preseed: bool = True
    contention: Literal["none", "bianchi"] = "none"


def categorise(
    observation: Observation, settings: Settings = Settings()
) -> dict[tuple[str, str], int]:
    """Return the tier, 1 or 2, of every association (user, access point)."""
    chosen = primaries(observation, settings)
    return {
        (each.user, each.ap): 1 if chosen.get(each.user, each.ap) == each.ap else 2
        for each in observation.associations
    }


def tier1_mean(occupancies: Mapping[str, float], tiers: Mapping[str, int]) -> float:
    """Return the MAC occupancy of an LTE base station: the mean over the bearers that carry Tier 1.

    `occupancies` has that of each user's bearer, `tiers` the tier of each user there, by default 1.
    If no bearer carries Tier 1, all of them count; without a bearer the result is 0.
    """
    primary = [each for user, each in occupancies.items() if tiers.get(user, 1) == 1]
    counted = primary or list(occupancies.values())
    return sum(counted) / max(1, len(counted))


def primaries(observation: Observation, settings: Settings = Settings()) -> dict[str, str]:
    """Return the primary access point of every multipath user that has more than one."""
    choose = by_priority if settings.selection == "priority" else by_filtering
    multipath = {user for user in observation.multipath if len(observation.of_user(user)) > 1}
    chosen = choose(observation, multipath, settings)
    return {user: ap for user, ap in chosen.items() if user in multipath}


def by_priority(
    observation: Observation, multipath: set[str], settings: Settings
) -> dict[str, str]:
    """Choose primaries by priority, as the steps above say.

    Return the access point of each user.
    """
    kinds = {ap.id: ap.kind for ap in observation.access_points}
    order = sorted(
        observation.associations, key=lambda each: (-each.rate_bps, each.user, each.ap)
    )  # 1
    joined = [each for each in order if each.user not in multipath] if settings.preseed else []
    chosen: dict[str, str] = {}
    for association in order:
        user = association.user
        if user in chosen:  # 2
            continue
        if user not in multipath:
            if not settings.preseed:
                joined.append(association)
            continue
        candidates = observation.of_user(user)
        best = max(
            candidates, key=lambda each: share_bps(each, joined, kinds[each.ap], settings)
        )  # 3
        chosen[user] = best.ap
        joined.append(best)
    return chosen


def by_filtering(
    observation: Observation, multipath: set[str], settings: Settings
) -> dict[str, str]:
    """Choose primaries by connection filtering, the paper's baseline, as the steps above say."""
    kinds = {ap.id: ap.kind for ap in observation.access_points}
    left = filtered(observation.associations, [ap.id for ap in observation.access_points])  # 1
    chosen = {}
    for user in sorted(multipath):
        mine = [each for each in left if each.user == user]
        best = max(mine, key=lambda each: share_bps(each, left, kinds[each.ap], settings))  # 2
        chosen[user] = best.ap
    return chosen


def filter_fraction(users: int, associations: int) -> float:
    """Return B_f = 1 - N_d / N_c, the share of associations that connection filtering drops.

    Source: MP-SDN, section IV.
    """
    return 1 - users / associations if associations else 0.0


def filtered(associations: Iterable[Association], aps: Iterable[str]) -> list[Association]:
    """Return the associations that connection filtering keeps.

    Access points go by name, weakest signals first.
    """
    left = list(associations)
    fraction = filter_fraction(len({each.user for each in left}), len(left))
    for ap in sorted(aps):
        here = [each for each in left if each.ap == ap]
        to_drop = floor(fraction * len(here) + 1e-9)
        for weakest in sorted(here, key=_signal):
            alone = sum(each.user == weakest.user for each in left) == 1
            if to_drop and not alone:
                left.remove(weakest)
                to_drop -= 1
    return left


def share_bps(
    association: Association, others: Iterable[Association], kind: str, settings: Settings
) -> float:
    """Return the rate in bit/s of an association that shares its access point with `others`."""
    rest = [each for each in others if each.ap == association.ap and each.user != association.user]
    if kind == "wifi":
        return wifi_share_bps(
            [association.rate_bps, *(each.rate_bps for each in rest)], settings.contention
        )
    return lte_share_bps(association, rest)


def wifi_share_bps(rates_bps: list[int], contention: str = "none") -> float:
    """Return the equal share of each station in bit/s: T_w / N = 1 / (k sum 1/r) (MP-SDN, eq (2)).

    k is the mean number of transmissions of a packet; the stations are the contenders.
    """
    k = transmissions(len(rates_bps)) if contention == "bianchi" else 1.0
    return 1 / (k * sum(1 / rate for rate in rates_bps))


def lte_share_bps(association: Association, others: Iterable[Association]) -> float:
    """Return the proportional-fair share of one station in bit/s: w r / sum w (MP-SDN, eq (3))."""
    return (
        association.weight
        * association.rate_bps
        / (association.weight + sum(each.weight for each in others))
    )


def transmissions(contenders: float) -> float:
    """Return the mean number of transmissions per delivered WiFi packet, 1 / (1 - p).

    Source: the saturation model of G. Bianchi, IEEE JSAC 18(3), 2000, eqs (7) and (9).
    """
    return 1 / (1 - collision_probability(contenders))


def collision_probability(contenders: float) -> float:
    """Return Bianchi's p, the probability that a transmission collides, found by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        if 1 - (1 - _attempt_probability(p)) ** (contenders - 1) > p:
            low = p
        else:
            high = p
    return (low + high) / 2


def _attempt_probability(p: float) -> float:
    """Return Bianchi's tau, in the form without the singularity at p = 1/2."""
    return 2 / (1 + CW_MIN + p * CW_MIN * sum((2 * p) ** stage for stage in range(BACKOFF_STAGES)))


def _signal(association: Association) -> tuple[float, str, str]:
    """Sort weak signals first; where no signal strength is known, sort by rate."""
    strength = (
        association.rate_bps / 1e9 - 1000 if association.rssi_dbm is None else association.rssi_dbm
    )
    return strength, association.user, association.ap
