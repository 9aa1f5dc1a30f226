"""A user's strategy that issues the commands in its parameter `script`."""

from __future__ import annotations

import json
from typing import Any

from controller.command import Decision, Expect, Route, SetBackup
from controller.observation import Observation, Subflow
from controller.strategies.base import Strategy, StrategyParams, param
from controller.units import bps_from_mbps


class ScriptedParams(StrategyParams):
    """Example: {"routes": {"2": ["s1", "wifi1"]}, "expect": {"1": 2.5}, "backup": [2]}

    Keys are the numbers of subflows; rates are in Mb/s.
    """

    script: str = param("{}", "JSON", "The commands")


class Scripted(Strategy):
    """Each command is repeated until the observation confirms it."""

    name = "scripted"
    wakes_on_subflows = True
    Params = ScriptedParams
    params: ScriptedParams

    def decide(self, seen: Observation) -> list[Decision]:
        script = json.loads(self.params.script)
        return [decision for subflow in seen.subflows for decision in self._about(subflow, script)]

    def withdraw(self, seen: Observation) -> list[Decision]:
        return []

    def _about(self, subflow: Subflow, script: dict[str, Any]) -> list[Decision]:
        number, found = str(subflow.number), []
        path = tuple(script.get("routes", {}).get(number, subflow.path))
        mbps = script.get("expect", {}).get(number)
        if path != subflow.path:
            found.append(Route(subflow.key, path))
        if subflow.expected_bps is None if mbps else subflow.expected_bps is not None:
            found.append(Expect(subflow.key, bps_from_mbps(mbps) if mbps else None))
        if subflow.backup != (subflow.number in script.get("backup", [])):
            found.append(SetBackup(subflow.key, not subflow.backup))
        return [
            Decision(f"{subflow.connection}/{number}", "it is in the script", command)
            for command in found
        ]
