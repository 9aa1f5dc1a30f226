"""Ordinary Multipath TCP: nothing is limited."""

from __future__ import annotations

from controller.command import Decision, Unthrottle
from controller.observation import Observation
from controller.strategies.base import Strategy


class NoStrategy(Strategy):
    """Leaves every subflow alone, and lifts a limit that something else has left behind."""

    name = "none"

    def decide(self, seen: Observation) -> list[Decision]:
        left = [ap for ap in seen.access_points if ap.meter_bps is not None]
        return [
            Decision(
                ap.id,
                "no strategy limits anything: a limit left behind is lifted",
                Unthrottle(ap.id),
            )
            for ap in left
        ]

    def withdraw(self, seen: Observation) -> list[Decision]:
        return []
