"""Hold what AP agents have reported about stations. These values replace those of the plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.observation import Association
from controller.plan import Plan
from controller.units import bps_from_mbps


@dataclass
class StationState:
    """Hold what the AP agent of an access point has reported about one station.

    These values replace those of the plan, the content of topology.json. A rate or signal strength
    that is None has not been reported.
    """

    rate_bps: int | None = None
    rssi_dbm: float | None = None
    associated: bool = True


@dataclass
class Stations:
    """Hold the latest reported state of every station; the keys are (user, access point)."""

    states: dict[tuple[str, str], StationState] = field(default_factory=dict)

    def associations(
        self, plan: Plan, addresses: dict[tuple[str, str], tuple[str, ...]]
    ) -> tuple[Association, ...]:
        """Return an association for every planned station that has not been reported as gone.

        `addresses` maps (user, access point) to the user's addresses at that access point.
        """
        found = []
        for ap, planned in plan.aps.items():
            for user, station in planned.stations.items():
                state = self.states.get((user, ap), StationState())
                rate_bps = state.rate_bps or bps_from_mbps(station.rate_mbps)
                if state.associated:
                    own = addresses.get((user, ap), ())
                    found.append(
                        Association(user, ap, rate_bps, station.weight, own, state.rssi_dbm)
                    )
        return tuple(found)
