"""Limit the Tier 2 traffic of an access point while the access point is congested (MP-SDN).

Tier 2 is the traffic of multipath users over all access points except their primary one
(`controller.tiers`). All Tier 2 traffic of an access point shares one limit, an OpenFlow meter.

Every `interval_s`, for every access point with Tier 2 associations (MP-SDN, section V, Algorithm
2). BW is the present limit, R_m its lower bound, M the MAC occupancy, CTh the congestion threshold,
and T2 the rate of Tier 2 since the last step:
1) Without a meter: install one with the limit R_m.
2) Without a report of M: keep BW.
3) If M >= CTh: BW <- max(R_m, min(BW, T2) / 2).
4) If M < CTh and T2 < BW / 2: keep BW, because an unused limit must not grow.
5) Otherwise let g = alpha (CTh - M) / max(M, m_floor). The new BW is at least R_m and at most the
   capacity of the access point:
     increase_form `by`: BW <- BW (1 + g)
     increase_form `to`: BW <- BW g, as eq (4) is printed; this lowers BW if g < 1, although the
     access point is not congested
`windup_guard: false` switches off the use of T2 in steps 3 and 4. R_m is at least 0.05 Mb/s on the
wire.

With `at_floor: backup`, Tier 2 subflows become backup while BW is at R_m, and there is no limit
until they have sent the data that they had (`FloorBackup`). They then carry nothing, so step 4 is
left out: BW follows the MAC occupancy alone.

With `payoff: measured`, an access point has a limit only while a single-path user has a connection
there. It gets one if it has been congested, on average, for `MEASURED_S`, and if the limit could
pay off (`could_pay_off`). All limits together are tried, and lifted if they do not pay off (module
`payoff`). An access point that is not congested for `STEPS_BELOW` steps with a limit has none until
the next trial: what Tier 2 would use there stays idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from controller import tiers
from controller.command import (
    Decision,
    SetBackup,
    Throttle,
    Unthrottle,
    effective_floor_bps,
    subflow_name,
)
from controller.observation import AccessPoint, Observation
from controller.strategies.base import Strategy, StrategyParams, choice, param, switch
from controller.strategies.payoff import MEASURED_S, Payoff, could_pay_off, pays_off
from controller.topology import Topology
from controller.units import rate_text

UNUSED_FRACTION = 0.5
STEPS_BELOW = 3  # control steps without congestion after which there is no limit (`payoff`)


class MeterThrottlingParams(StrategyParams):
    """Parameters of the strategy `meter_throttling`, with names and defaults of MP-SDN, section VI.

    The paper does not have `m_floor`, `windup_guard`, `preseed`, `at_floor`, `floor_steps`,
    `room_factor` and `payoff`.
    """

    cth: float = param(
        0.85,
        "fraction",
        "MAC occupancy from which an access point counts as congested (CTh)",
        words="Congested from (CTh)",
        gt=0,
        le=1,
    )
    alpha: float = param(
        0.5,
        "1",
        "How fast the limit grows without congestion",
        words="Growth of the limit (alpha)",
        gt=0,
        le=5,
    )
    min_rate_mbps: float = param(
        0.1,
        "Mb/s",
        "Floor of the limit, for all Tier 2 of an access point together (R_m)",
        words="Floor of the limit (R_m)",
        ge=0.01,
        le=1000,
    )
    categorisation_interval_s: float = param(
        2.0, "s", "Time between two choices of the primary connections", ge=0.2, le=120
    )
    m_floor: float = param(
        0.05,
        "fraction",
        "A smaller occupancy counts as this when the limit grows",
        words="Least occupancy (m floor)",
        ge=0.001,
        le=0.5,
    )
    increase_form: Literal["by", "to"] = choice(
        "by",
        "Multiply the limit by 1 + g, as the text of the paper says, or by g, as eq (4) is printed",
    )
    windup_guard: bool = switch(
        True,
        "Use the measured throughput of Tier 2 so that an unused limit does not grow",
    )
    primary_selection: tiers.Selection = choice(
        "priority", "How the primary connection of a multipath user is chosen"
    )
    preseed: bool = switch(
        True,
        "Choose the associations of single-path users before the first multipath user",
    )
    contention: Literal["none", "bianchi"] = choice(
        "bianchi", "Model of WiFi collisions for the estimated rates of the users"
    )
    at_floor: Literal["keep", "backup"] = choice(
        "keep", "Keep using Tier 2 subflows while the limit is at the floor, or not"
    )
    floor_steps: int = param(
        1, "steps", "at_floor backup: steps at the floor before they become backup", ge=1, le=100
    )
    payoff: Literal["assumed", "measured"] = choice(
        "assumed",
        "measured: limits are tried, and stay only if single-path users gain what others lose",
    )
    room_factor: float = param(
        4.0, "1", "at_floor backup: used once more from this multiple of the floor", gt=1, le=1000
    )


class MeterThrottling(Strategy):
    """Limits the secondary traffic (Tier 2) of each congested access point with a meter (MP-SDN).

    The present limits and backup flags are part of the observation, so a restarted controller
    continues with them.
    """

    name = "meter_throttling"
    Params = MeterThrottlingParams
    params: MeterThrottlingParams
    improved = {"at_floor": "backup", "payoff": "measured", "interval_s": 1.0}

    def __init__(self, params: MeterThrottlingParams) -> None:
        super().__init__(params)
        self._payoff = Payoff()
        self._below: dict[str, int] = {}  # control steps without congestion, by access point
        self._acting: set[str] = set()  # access points with a limit, while payoff is measured
        self._seen: deque[Observation] = deque(maxlen=round(MEASURED_S / params.interval_s) or 1)
        self._idle: set[str] = set()  # those that a limit left idle
        self._backup = FloorBackup(params.floor_steps, params.room_factor)

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        if not network.aps:
            return "it limits users at access points, and this network has none"
        silent = [name for name, ap in network.aps.items() if not ap.is_measured]
        why = "it decides by the MAC occupancy, and nothing measures that of"
        return f"{why} {', '.join(silent)}" if silent else None

    def decide(self, observation: Observation) -> list[Decision]:
        limited = self._limited(observation)
        found = (
            self._decide_for(ap, observation) if ap.id in limited else self._lifted_at(ap)
            for ap in observation.access_points
        )
        limits = [decision for decision in found if decision is not None]
        if self.params.at_floor == "keep":
            return [*limits, *changes(set(), {}, observation)]
        floor_bps = effective_floor_bps(self.params.rate_bps("min_rate_mbps"))
        return self._backup.decisions(limits, floor_bps, observation)

    def _limited(self, observation: Observation) -> set[str]:
        """Return the access points that may have a limit now: all, unless payoff is measured."""
        aps = {ap.id for ap in observation.access_points}
        if self.params.payoff == "assumed":
            return aps
        self._count_below(observation)
        self._seen.append(observation)
        single = [each for each in observation.subflows if each.user not in observation.multipath]
        protecting = {each.ap for each in single}
        wanted = {
            ap
            for ap in aps & protecting
            if (ap in self._acting and self._below[ap] < STEPS_BELOW)
            or (self._stays_congested(ap) and could_pay_off(ap, self._seen))
        }
        is_on = self._payoff.step(
            observation,
            bool(wanted),
            partial(pays_off, is_protected=lambda user: user not in observation.multipath),
            any(self._below[ap] for ap in self._acting),
        )
        if not is_on:
            self._acting, self._idle = set(), set()
            return set()
        self._idle |= {ap for ap in self._acting if self._below[ap] == STEPS_BELOW}
        self._acting = wanted - self._idle
        return self._acting

    def _stays_congested(self, ap: str) -> bool:
        """Return whether `ap` was congested on average while rates were measured."""
        found = [
            each.mac_occupancy for one in self._seen for each in one.access_points if each.id == ap
        ]
        known = [each for each in found if each is not None]
        return bool(known) and sum(known) >= self.params.cth * len(known)

    def _count_below(self, observation: Observation) -> None:
        """Count for how many steps each access point has not been congested."""
        for ap in observation.access_points:
            congested = ap.mac_occupancy is not None and ap.mac_occupancy >= self.params.cth
            before = self._below.get(ap.id, STEPS_BELOW)
            self._below[ap.id] = 0 if congested else min(before + 1, STEPS_BELOW)

    def _lifted_at(self, ap: AccessPoint) -> Decision | None:
        if ap.meter_bps is None:
            return None
        return Decision(ap.id, self._payoff.reason, Unthrottle(ap.id))

    def withdraw(self, observation: Observation) -> list[Decision]:
        lifted = [
            Decision(ap.id, "strategy withdrawn: limit lifted", Unthrottle(ap.id))
            for ap in observation.access_points
            if ap.meter_bps is not None
        ]
        return [*lifted, *changes(set(), {}, observation)]

    def tier_settings(self) -> tiers.Settings:
        return tiers.Settings(
            self.params.primary_selection, self.params.preseed, self.params.contention
        )

    def categorisation_interval_s(self) -> float:
        return self.params.categorisation_interval_s

    def _decide_for(self, ap: AccessPoint, observation: Observation) -> Decision | None:
        addresses = observation.addresses(ap.id, tier=2)
        if not addresses:
            lifted = Decision(
                ap.id, "no Tier 2 association is left here: limit lifted", Unthrottle(ap.id)
            )
            return lifted if ap.meter_bps is not None else None
        if is_backed_up(ap.id, observation):
            ap = replace(ap, tier2_bps=None)  # it carries nothing, which says nothing about room
        limit_bps, reason = self.next_limit(ap, observation.rate_scale)
        return Decision(ap.id, reason, Throttle(ap.id, addresses, limit_bps))

    def next_limit(self, ap: AccessPoint, rate_scale: float) -> tuple[int, str]:
        """Return the next limit for secondary traffic (Tier 2) at `ap`, and the reason as text.

        The limit is in bit/s on the wire. The text shows rates in Mb/s as in the scenario file
        (rate on the wire / `rate_scale`).
        """
        floor_bps = effective_floor_bps(self.params.rate_bps("min_rate_mbps"))
        if ap.meter_bps is None:  # 1
            floor = rate_text(floor_bps, rate_scale)
            return floor_bps, f"Tier 2 was not limited: limit set to the floor of {floor}"
        limit = rate_text(ap.meter_bps, rate_scale)
        if ap.mac_occupancy is None:  # 2
            return (
                ap.meter_bps,
                f"no report of the MAC occupancy since the last step: limit kept at {limit}",
            )
        if ap.mac_occupancy >= self.params.cth:
            why = f"MAC occupancy {ap.mac_occupancy:.2f} >= {self.params.cth:g}"
            limit_bps, change = self._lowered(ap.meter_bps, ap, floor_bps, rate_scale)
        else:
            why = f"MAC occupancy {ap.mac_occupancy:.2f} < {self.params.cth:g}"
            limit_bps, change = self._raised(ap.meter_bps, ap, floor_bps, rate_scale)
        return limit_bps, f"{why}: {change}"

    def _lowered(
        self, limit_bps: int, ap: AccessPoint, floor_bps: int, rate_scale: float
    ) -> tuple[int, str]:
        carried = ap.tier2_bps if self.params.windup_guard else None
        used_bps = limit_bps if carried is None else min(limit_bps, carried)
        lower_bps = max(floor_bps, round(used_bps / 2))  # 3
        limit, lower = rate_text(limit_bps, rate_scale), rate_text(lower_bps, rate_scale)
        if lower_bps == limit_bps:
            return limit_bps, f"limit stays at the floor of {limit}"
        at_floor = " (the floor)" if lower_bps == floor_bps else ""
        if used_bps == limit_bps:
            return lower_bps, f"limit halved from {limit} to {lower}{at_floor}"
        used = rate_text(used_bps, rate_scale)
        text = (
            f"limit changed from {limit} to {lower}{at_floor}, half of the {used} that Tier 2 uses"
        )
        return lower_bps, text

    def _raised(
        self, limit_bps: int, ap: AccessPoint, floor_bps: int, rate_scale: float
    ) -> tuple[int, str]:
        p, occupancy = self.params, ap.mac_occupancy or 0.0
        limit = rate_text(limit_bps, rate_scale)
        carried = ap.tier2_bps if p.windup_guard else None
        if carried is not None and carried < UNUSED_FRACTION * limit_bps:  # 4
            kept_bps = max(floor_bps, limit_bps)
            used, kept = rate_text(carried, rate_scale), rate_text(kept_bps, rate_scale)
            return (
                kept_bps,
                f"limit kept at {kept}, because Tier 2 uses {used}, less than half of {limit}",
            )
        gain = p.alpha * (p.cth - occupancy) / max(occupancy, p.m_floor)
        factor = 1 + gain if p.increase_form == "by" else gain  # 5
        wanted_bps = max(floor_bps, round(limit_bps * factor))
        new_bps = min(max(ap.capacity_bps, floor_bps), wanted_bps)
        bound = " (the capacity)" if new_bps < wanted_bps else ""
        bound = " (the floor)" if new_bps == floor_bps else bound
        new = rate_text(new_bps, rate_scale)
        return new_bps, f"limit multiplied by {factor:.3g}, from {limit} to {new}{bound}"


# Backup flags of Tier 2 subflows (`at_floor: backup`)
#
# A sender that may send next to nothing on one subflow still puts data into it, and the receiver
# then waits for these data although the other subflows are fast. While the limit of an access
# point is at its floor, its Tier 2 subflows are therefore better kept as backup (MP_PRIO, RFC
# 8684, section 3.3.8):
# 1) Count the control steps in which the limit is at the floor. After `floor_steps` of them, every
#    Tier 2 subflow at the access point becomes backup.
# 2) The limit goes on changing with the MAC occupancy. When it reaches `room_factor` times the
#    floor, the subflows are used once more. Between the two, they stay as they are.
# 3) A subflow stays in use if its connection has no other subflow in use.
# 4) A subflow that becomes backup still has data, up to 64 kB and its window. At the floor it
#    would send them for many seconds, and the receiver would wait for them. The access point
#    therefore has no limit from then on, until its Tier 2 subflows send less than half of the
#    floor, for at most `MOST_DRAIN_STEPS` control steps. This holds only if all of them are
#    backup: they get no new data.


MOST_DRAIN_STEPS = 5
IDLE_FRACTION = 0.5  # of the floor; subflows that send less have no data left


class FloorBackup:
    """Makes secondary subflows (Tier 2) backup while the limit for them is at the floor.

    The floor is the lowest limit that the strategy sets. After a restart of the controller, the
    control steps at the floor are counted from 0 again. The backup flags are in the observation.
    """

    def __init__(self, floor_steps: int, room_factor: float) -> None:
        self._floor_steps, self._room_factor = floor_steps, room_factor
        self._steps: dict[str, int] = {}  # by access point, with the limit at the floor
        self._drain_steps: dict[str, int] = {}  # by access point, without a limit for rule 4

    def decisions(
        self, limits: Sequence[Decision], floor_bps: int, observation: Observation
    ) -> list[Decision]:
        """Return the decisions about limits and backup flags for this control step.

        `limits` has the decisions about the limits of access points; `floor_bps` is the lowest
        possible limit. An access point gets no limit while subflows that have become backup still
        send data.
        """
        limits_bps = {
            each.command.ap: each.command.rate_bps
            for each in limits
            if isinstance(each.command, Throttle)
        }
        self._steps = {
            ap: self._steps.get(ap, 0) + 1
            for ap, limit_bps in limits_bps.items()
            if limit_bps <= floor_bps
        }
        unused = {
            ap for ap, bps in limits_bps.items() if self._is_unused(ap, bps, floor_bps, observation)
        }
        backup = wanted(unused, observation)
        aps = {ap.id: ap for ap in observation.access_points}
        self._drain_steps = {
            name: self._drain_steps.get(name, 0) + 1
            for name in limits_bps
            if self._drains(aps[name], backup, floor_bps, observation)
        }
        kept = [
            _lifted(aps[each.subject], observation) if each.subject in self._drain_steps else each
            for each in limits
        ]
        return [*kept, *changes(backup, limits_bps, observation)]

    def _drains(
        self,
        ap: AccessPoint,
        backup: set[tuple[str, int]],
        floor_bps: int,
        observation: Observation,
    ) -> bool:
        """Return whether `ap` gets no limit now, so that its backup subflows can finish sending.

        `backup` has the keys of the subflows that are backup after this control step.
        """
        subflows = observation.subflows_at(ap.id, tier=2)
        if not subflows or any(each.key not in backup for each in subflows):
            return False
        if any(not each.backup for each in subflows):
            return True
        steps = self._drain_steps.get(ap.id, MOST_DRAIN_STEPS)
        sends = ap.tier2_bps is not None and ap.tier2_bps >= IDLE_FRACTION * floor_bps
        return sends and steps < MOST_DRAIN_STEPS

    def _is_unused(self, ap: str, limit_bps: int, floor_bps: int, observation: Observation) -> bool:
        if limit_bps >= self._room_factor * floor_bps:
            return False
        return self._steps.get(ap, 0) >= self._floor_steps or is_backed_up(ap, observation)


def _lifted(ap: AccessPoint, observation: Observation) -> Decision:
    why = "its Tier 2 subflows become backup"
    if all(each.backup for each in observation.subflows_at(ap.id, tier=2)):
        sent = rate_text(ap.tier2_bps or 0, observation.rate_scale)
        why = f"its Tier 2 subflows are backup, and still send {sent}"
    reason = f"{why}: no limit until they have sent the data that they have"
    return Decision(ap.id, reason, Unthrottle(ap.id) if ap.meter_bps is not None else None)


def is_backed_up(ap: str, observation: Observation) -> bool:
    return any(each.backup for each in observation.subflows_at(ap, tier=2))


def wanted(unused: set[str], observation: Observation) -> set[tuple[str, int]]:
    """Return the keys of the subflows that should be backup.

    These are the secondary subflows (Tier 2) at the access points in `unused`. If this would make
    all subflows of a connection backup, none of them is in the result.
    """
    keys = {each.key for ap in unused for each in observation.subflows_at(ap, tier=2)}
    for subflows in observation.connections().values():
        of_connection = {each.key for each in subflows}
        if of_connection <= keys:
            keys -= of_connection
    return keys


def changes(
    backup: set[tuple[str, int]], limits_bps: Mapping[str, int], observation: Observation
) -> Iterator[Decision]:
    """Yield a decision for each subflow whose backup flag must change.

    `backup` has the keys of the subflows that should be backup. `limits_bps` maps access points to
    their limits, for the reasons. Flags are cleared before others are set, so that every connection
    always has a subflow in use.
    """
    changed = [each for each in observation.subflows if each.backup != (each.key in backup)]
    for each in sorted(changed, key=lambda each: (not each.backup, each.key)):
        limit_bps = limits_bps.get(each.ap)
        is_tier2 = observation.tiers.get((each.user, each.ap), 1) == 2
        if limit_bps is None or not is_tier2:
            why = "no limit" if is_tier2 else "Tier 1 at its access point"
        else:
            why = f"the limit is {rate_text(limit_bps, observation.rate_scale)}"
        action = "in use once more" if each.backup else "backup until there is room"
        yield Decision(
            subflow_name(each.key), f"{why}: {action}", SetBackup(each.key, not each.backup)
        )
