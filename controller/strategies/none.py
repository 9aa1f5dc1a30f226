"""Let Multipath TCP work without a controller: nothing limits, routes or stops its subflows."""

from __future__ import annotations

from controller.command import Decision, Unthrottle
from controller.observation import Observation
from controller.strategies.base import Strategy


class NoStrategy(Strategy):
    """Only removes the limits that an earlier strategy has left at access points."""

    name = "none"

    def decide(self, observation: Observation) -> list[Decision]:
        why = "strategy none limits nothing: a limit that was left behind is lifted"
        return [
            Decision(ap.id, why, Unthrottle(ap.id))
            for ap in observation.access_points
            if ap.meter_bps is not None
        ]

    def withdraw(self, observation: Observation) -> list[Decision]:
        return []
