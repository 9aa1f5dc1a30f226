"""MP-SDN: limit all secondary traffic of an access point together, and only while it is congested.

Every `interval_s` and for every access point with Tier-2 associations (MP-SDN, section V, Algorithm 2):
1) without a meter: install one at the floor R_m
2) without a report of the MAC occupancy M: keep the limit BW
3) M >= CTh: BW <- max(R_m, min(BW, T2) / 2), T2 being what Tier 2 carried since the last step
4) M < CTh: keep BW unless T2 >= BW / 2 (an unused limit must not grow)
5) else increase by: BW <- BW (1 + g), g = alpha (CTh - M) / max(M, m_floor), between R_m and the capacity
   or set to:        BW <- BW g, as eq (4) is printed; it cuts the limit of an uncongested access point
The guards with T2 in 3 and 4 can be switched off (`windup_guard`).
"""

from __future__ import annotations

from typing import Literal

from controller import tiers
from controller.command import Decision, Throttle, Unthrottle, effective_floor_bps
from controller.observation import AccessPoint, Observation
from controller.plan import Plan
from controller.strategies.base import Strategy, StrategyParams, param
from controller.units import mbps_from_bps

UNUSED_FRACTION = 0.5


class MeterThrottlingParams(StrategyParams):
    """Names and defaults of MP-SDN, section VI; `m_floor`, `windup_guard`, `preseed` and `contention` are ours."""

    cth: float = param(
        0.85,
        "fraction",
        "MAC occupancy from which an access point counts as congested (CTh)",
        gt=0,
        le=1,
    )
    alpha: float = param(0.5, "1", "How fast the limit grows while there is room", gt=0, le=5)
    min_rate_mbps: float = param(
        0.1,
        "Mb/s",
        "Floor of the limit, for all Tier 2 of an access point together (R_m)",
        ge=0.01,
        le=1000,
    )
    interval_s: float = param(
        2.0, "s", "Time between two control steps (execution interval)", ge=0.2, le=60
    )
    categorisation_interval_s: float = param(
        2.0, "s", "Time between two choices of the primary connections", ge=0.2, le=120
    )
    m_floor: float = param(
        0.05,
        "fraction",
        "Occupancies below this count as this when the limit grows",
        ge=0.001,
        le=0.5,
    )
    increase_form: Literal["by", "to"] = param(
        "by",
        "choice",
        "Increase by the factor, as the text says, or set to it, as eq (4) is printed",
    )
    windup_guard: bool = param(
        True, "switch", "Use the measured Tier-2 throughput so that an unused limit does not grow"
    )
    primary_selection: tiers.Selection = param(
        "priority", "choice", "How the primary connection of a multipath user is chosen"
    )
    preseed: bool = param(
        True, "switch", "Count single-path users as chosen before the first multipath user"
    )
    contention: Literal["none", "bianchi"] = param(
        "none", "choice", "Collisions assumed when WiFi shares are estimated"
    )


class MeterThrottling(Strategy):
    """Keeps no state: the limit in force comes with the observation, so a restarted controller goes on where it stopped."""

    name = "meter_throttling"
    Params = MeterThrottlingParams
    params: MeterThrottlingParams

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        return None if plan.aps else "it limits users at access points, and this network has none"

    def decide(self, seen: Observation) -> list[Decision]:
        decisions = (
            self._decide_for(ap, seen.addresses(ap.id, tier=2)) for ap in seen.access_points
        )
        return [decision for decision in decisions if decision is not None]

    def withdraw(self, seen: Observation) -> list[Decision]:
        limited = [ap for ap in seen.access_points if ap.meter_bps is not None]
        return [
            Decision(ap.id, "the strategy was withdrawn: limit lifted", Unthrottle(ap.id))
            for ap in limited
        ]

    def tier_settings(self) -> tiers.Settings:
        return tiers.Settings(
            self.params.primary_selection, self.params.preseed, self.params.contention
        )

    def categorisation_interval_s(self) -> float:
        return self.params.categorisation_interval_s

    def _decide_for(self, ap: AccessPoint, addresses: frozenset[str]) -> Decision | None:
        if not addresses:
            lifted = Decision(
                ap.id, "no Tier-2 connection is left here: limit lifted", Unthrottle(ap.id)
            )
            return lifted if ap.meter_bps is not None else None
        limit_bps, reason = self.next_limit(ap)
        return Decision(ap.id, reason, Throttle(ap.id, addresses, limit_bps))

    def next_limit(self, ap: AccessPoint) -> tuple[int, str]:
        """The limit in bit/s for the next interval, and the reason with its numbers."""
        floor_bps = effective_floor_bps(self.params.rate_bps("min_rate_mbps"))
        if ap.meter_bps is None:  # 1
            return floor_bps, f"Tier 2 appeared: limit starts at the floor of {_text(floor_bps)}"
        if ap.mac_occupancy is None:  # 2
            return (
                ap.meter_bps,
                f"no report of the MAC occupancy since the last step: limit kept at {_text(ap.meter_bps)}",
            )
        if ap.mac_occupancy >= self.params.cth:
            return self._lowered(ap.meter_bps, ap, floor_bps)
        return self._raised(ap.meter_bps, ap, floor_bps)

    def _lowered(self, limit_bps: int, ap: AccessPoint, floor_bps: int) -> tuple[int, str]:
        carried = ap.tier2_bps if self.params.windup_guard else None
        used_bps = limit_bps if carried is None else min(limit_bps, carried)
        lower_bps = max(floor_bps, round(used_bps / 2))  # 3
        why = f"MAC occupancy {ap.mac_occupancy:.2f} >= {self.params.cth:g}: "
        if lower_bps == limit_bps:
            return limit_bps, f"{why}limit stays at the floor of {_text(limit_bps)}"
        what = (
            "halved"
            if used_bps == limit_bps
            else f"with Tier 2 at {_text(used_bps)}, half of which is allowed,"
        )
        at_floor = " (the floor)" if lower_bps == floor_bps else ""
        return lower_bps, f"{why}limit {_text(limit_bps)} {what} to {_text(lower_bps)}{at_floor}"

    def _raised(self, limit_bps: int, ap: AccessPoint, floor_bps: int) -> tuple[int, str]:
        p, occupancy = self.params, ap.mac_occupancy or 0.0
        why = f"MAC occupancy {occupancy:.2f} < {p.cth:g}: "
        carried = ap.tier2_bps if p.windup_guard else None
        if carried is not None and carried < UNUSED_FRACTION * limit_bps:  # 4
            kept_bps = max(floor_bps, limit_bps)
            return (
                kept_bps,
                f"{why}Tier 2 uses {_text(carried)} of {_text(limit_bps)}, less than half: limit kept at {_text(kept_bps)}",
            )
        gain = p.alpha * (p.cth - occupancy) / max(occupancy, p.m_floor)
        factor = 1 + gain if p.increase_form == "by" else gain  # 5
        higher_bps = min(max(ap.capacity_bps, floor_bps), max(floor_bps, round(limit_bps * factor)))
        verb = "increased by" if p.increase_form == "by" else "set to"
        return (
            higher_bps,
            f"{why}limit {_text(limit_bps)} {verb} {gain:.3g} times itself, now {_text(higher_bps)}",
        )


def _text(rate_bps: int) -> str:
    return f"{mbps_from_bps(rate_bps):.3g} Mb/s"
