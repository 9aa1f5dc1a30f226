"""Classify each association, a user at an access point, as Tier 1 or Tier 2 (MP-SDN, section IV).

Every association of a single-path user is Tier 1. Each multipath user has one primary association,
which is Tier 1; its other associations are Tier 2. The primary is the association with the largest
achievable throughput, estimated with eq (2) for WiFi and eq (3) for LTE.

Priority-based selection (Algorithm 1):
1) Sort all associations by the rate of their user when alone there, the fastest first. Break ties
   by user and access point.
2) Take the next association. If its user has a primary, skip it.
3) For each association of its user, estimate the rate the user would get there if the primaries
   chosen so far share the access point. The association with the largest rate is the primary.
With `preseed`, the associations of single-path users count as chosen primaries from the start.

Connection filtering, the baseline of the paper:
1) At each access point drop the share `filter_fraction` of its associations, the weakest signal
   first, but never the last association of a user.
2) Estimate the rates while all remaining associations share the access points. The association
   of a user with the largest rate is its primary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from controller.observation import Arc, Association, Observation

# IEEE 802.11, best effort: contention window of 16 slots, doubled at most 6 times
CW_MIN, BACKOFF_STAGES = 16, 6


@dataclass(frozen=True)
class Settings:
    """How to choose the primary access point of each multipath user (MP-SDN, section IV).

    `selection` is the method (see the module's docstring). Priority-based selection treats the
    associations in order, the fastest first. With `preseed`, it counts all single-path users at
    their access points from the start; otherwise it adds them in this order too. `contention`
    "bianchi" takes the mean number of transmissions of a WiFi packet from Bianchi's collision
    model; "none" assumes one.
    """

    selection: Selection = "priority"
    preseed: bool = True
    contention: Literal["none", "bianchi"] = "none"


def categorise(
    observation: Observation, settings: Settings = Settings()
) -> dict[tuple[str, str], int]:
    """Map (user, access point) of every association to its tier, 1 or 2.

    A multipath user is in Tier 1 at its primary access point, and in Tier 2 at all others. All
    other users are in Tier 1 everywhere.
    """
    chosen = primaries(observation, settings)
    return {
        (each.user, each.ap): 1 if chosen.get(each.user, each.ap) == each.ap else 2
        for each in observation.associations
    }


def _within_reach(observation: Observation) -> Observation:
    """Return the observation without the associations that the server cannot reach (`cut_off`).

    If the server can reach none of a user's associations, the user keeps all of them.
    """
    gone = cut_off(observation)
    kept = {each.user for each in observation.associations if (each.user, each.ap) not in gone}
    return replace(
        observation,
        associations=tuple(
            each
            for each in observation.associations
            if each.user not in kept or (each.user, each.ap) not in gone
        ),
    )


def tier1_mean(occupancies: Mapping[str, float], tiers: Mapping[str, int]) -> float:
    """Return the mean MAC occupancy, from 0 to 1, of the LTE queues of users in Tier 1.

    An LTE base station has one queue per user, a bearer. `occupancies` maps each user to the
    occupancy of this queue. `tiers` maps each user to 1 if this is the user's primary access point,
    else to 2; a missing user counts as 1. If no user is in Tier 1, the mean is over all queues.
    Without any queue it is 0.
    """
    primary = [each for user, each in occupancies.items() if tiers.get(user, 1) == 1]
    counted = primary or list(occupancies.values())
    return sum(counted) / max(1, len(counted))


def primaries(observation: Observation, settings: Settings = Settings()) -> dict[str, str]:
    """Map every multipath user with more than one association to its primary access point.

    This is the access point with the largest expected rate among those that the user's server can
    reach.
    """
    choose = by_priority if settings.selection == "priority" else by_filtering
    multipath = {user for user in observation.multipath if len(observation.of_user(user)) > 1}
    chosen = choose(_within_reach(observation), multipath, settings)
    return {user: ap for user, ap in chosen.items() if user in multipath}


def by_priority(
    observation: Observation, multipath: set[str], settings: Settings
) -> dict[str, str]:
    """Map each user in `multipath` to its primary access point by priority-based selection.

    Associations are treated in the order of their rates, the fastest first (MP-SDN, Algorithm 1).
    At the first association of a user, the user's primary access point is chosen: the one that
    would give the user the largest rate. Only users that were treated earlier share the access
    points in this comparison. With `settings.preseed`, all single-path users count as treated
    earlier.
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
    """Map each user in `multipath` to its primary access point by connection filtering.

    Associations with a weak signal are dropped first. The remaining ones share the access points.
    The primary access point of a user is then the one with the largest rate for this user.
    """
    kinds = {ap.id: ap.kind for ap in observation.access_points}
    left = filtered(observation.associations, [ap.id for ap in observation.access_points])  # 1
    chosen = {}
    for user in sorted(multipath):
        mine = [each for each in left if each.user == user]
        best = max(mine, key=lambda each: share_bps(each, left, kinds[each.ap], settings))  # 2
        chosen[user] = best.ap
    return chosen


def filter_fraction(users: int, associations: int) -> float:
    """Return the fraction of associations to drop (B_f in MP-SDN, section IV).

    It is 1 - users / associations.
    """
    return 1 - users / associations if associations else 0.0


def filtered(associations: Iterable[Association], aps: Iterable[str]) -> list[Association]:
    """Return the associations that connection filtering keeps.

    Access points are treated in the order of their names. At each, the fraction `filter_fraction`
    of the associations is dropped, those with the weakest signals first. The last association of a
    user is never dropped.
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
    """Return the rate in bit/s that a user gets if it shares its access point with `others`.

    `others` may also contain associations of the same user or at other access points; they are
    ignored. `kind` is "wifi" or "lte".
    """
    rest = [each for each in others if each.ap == association.ap and each.user != association.user]
    if kind == "wifi":
        return wifi_share_bps(
            [association.rate_bps, *(each.rate_bps for each in rest)], settings.contention
        )
    return lte_share_bps(association, rest)


def wifi_share_bps(rates_bps: list[int], contention: str = "none") -> float:
    """Return the rate in bit/s that each station of a WiFi access point gets.

    `rates_bps` lists for each station the rate r that it would have if it alone were sending. All
    get the same rate, 1 / (k sum(1/r)) (MP-SDN, eq (2)), where k is the mean number of
    transmissions of a packet: 1 with `contention` "none", the number from Bianchi's collision model
    with "bianchi".
    """
    k = transmissions(len(rates_bps)) if contention == "bianchi" else 1.0
    return 1 / (k * sum(1 / rate for rate in rates_bps))


def lte_share_bps(association: Association, others: Iterable[Association]) -> float:
    """Return the rate in bit/s of one LTE station: w r / sum(w) (MP-SDN, eq (3)).

    This is its proportional-fair share. w is the resource weight of a station, and r the rate of
    this station if no other station sends. The sum is over this station and `others`.
    """
    return (
        association.weight
        * association.rate_bps
        / (association.weight + sum(each.weight for each in others))
    )


def transmissions(contenders: float) -> float:
    """Return the mean number of transmissions per delivered WiFi packet, 1 / (1 - p).

    p is the collision probability among `contenders` stations. Source: the saturation model of G.
    Bianchi, IEEE JSAC 18(3), 2000, eqs (7) and (9).
    """
    return 1 / (1 - collision_probability(contenders))


def collision_probability(contenders: float) -> float:
    """Return the probability that a WiFi transmission collides, after Bianchi's model.

    `contenders` is the number of stations that always have a packet to send. The model's equation
    is solved by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        if 1 - (1 - _attempt_probability(p)) ** (contenders - 1) > p:
            low = p
        else:
            high = p
    return (low + high) / 2


def _attempt_probability(p: float) -> float:
    """Return the probability that a station transmits in a slot (tau in Bianchi's model).

    `p` is the probability of a collision. This form of the equation has no singularity at p = 1/2.
    """
    return 2 / (1 + CW_MIN + p * CW_MIN * sum((2 * p) ** stage for stage in range(BACKOFF_STAGES)))


def _signal(association: Association) -> tuple[float, str, str]:
    """Sort key: the weakest signal comes first.

    Associations with an unknown signal come before all others, the slowest of them first.
    """
    strength = (
        association.rate_bps / 1e9 - 1000 if association.rssi_dbm is None else association.rssi_dbm
    )
    return strength, association.user, association.ap


def cut_off(observation: Observation) -> frozenset[tuple[str, str]]:
    """Return (user, access point) of all associations that the user's server cannot reach.

    Only multipath users count. The server reaches an access point if links that are up lead to the
    access point from the source of one of the user's subflows. If a user has no subflows, all its
    access points count as reachable.
    """
    users = observation.multipath & {each.user for each in observation.associations}
    sources: dict[str, set[str]] = {}
    for each in observation.subflows:
        if each.user in users:
            sources.setdefault(each.user, set()).add(each.ends[0])
    if not sources:
        return frozenset()
    reached = _reachable(set().union(*sources.values()), observation.arcs)
    return frozenset(
        (each.user, each.ap)
        for each in observation.associations
        if each.user in sources
        and not any(each.ap in reached[source] for source in sources[each.user])
    )


def _reachable(sources: Iterable[str], arcs: Iterable[Arc]) -> dict[str, set[str]]:
    heads: dict[str, list[str]] = {}
    for each in arcs:
        heads.setdefault(each.tail, []).append(each.head)
    found: dict[str, set[str]] = {}
    for source in sources:
        reached, to_visit = {source}, [source]
        while to_visit:
            new = set(heads.get(to_visit.pop(), ())) - reached
            reached |= new
            to_visit += new
        found[source] = reached
    return found


Selection = Literal["priority", "filtering"]
