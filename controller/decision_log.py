"""Convert decisions, observations and subflows to lines (JSON objects) of the decision log.

Rates are in the units of the scenario file. docs/formats.md defines the fields.
"""

from __future__ import annotations

from typing import Any

from controller.command import Command, Decision, Expect, Forecast, Route, Throttle, subflow_name
from controller.control import Step
from controller.errors import StrategyFailed
from controller.observation import Subflow
from controller.units import scenario_mbps


def decision_line(strategy: str, decision: Decision, rate_scale: float = 1.0) -> dict[str, Any]:
    key = "connection" if decision.forecast else "subflow" if "/" in decision.subject else "ap"
    line: dict[str, Any] = {
        "kind": "decision",
        "strategy": strategy,
        key: decision.subject,
        "action": decision.action,
    }
    return (
        line
        | _command_fields(decision.command, rate_scale)
        | _forecast_fields(decision.forecast, rate_scale)
        | {"reason": decision.reason}
    )


def _forecast_fields(forecast: Forecast | None, rate_scale: float) -> dict[str, Any]:
    if forecast is None:
        return {}
    return {
        "active": [subflow_name(key) for key in forecast.active],
        "forecast_mbps": scenario_mbps(forecast.throughput_bps, rate_scale),
        "forecast_buffer_kb": forecast.buffer_bytes / 1000,
        "measured_mbps": _mbps(forecast.measured_bps, rate_scale),
    }


def _command_fields(command: Command | None, rate_scale: float) -> dict[str, Any]:
    match command:
        case Throttle():
            return {
                "meter_mbps": scenario_mbps(command.rate_bps, rate_scale),
                "addresses": sorted(command.addresses),
            }
        case Route():
            return {"path": list(command.path)}
        case Expect():
            return {"expected_mbps": _mbps(command.rate_bps, rate_scale)}
        case _:
            return {}


def observation_line(step: Step) -> dict[str, Any]:
    """Return the log line of what the strategy observed, before its decisions took effect.

    The line has the state of each access point. It also has the tier of each user at each access
    point: 1 if this is the user's primary access point, else 2.
    """
    aps = {
        ap.id: {
            "mac_occupancy": _rounded(ap.mac_occupancy),
            "tier2_mbps": _mbps(ap.tier2_bps, step.observation.rate_scale),
            "meter_mbps": _mbps(ap.meter_bps, step.observation.rate_scale),
        }
        for ap in step.observation.access_points
    }
    tiers: dict[str, dict[str, int]] = {}
    for (user, ap), tier in sorted(step.observation.tiers.items()):
        tiers.setdefault(user, {})[ap] = tier
    return {"kind": "observation", "strategy": step.strategy, "aps": aps, "tiers": tiers}


def failure_line(strategy: str, failure: StrategyFailed) -> dict[str, Any]:
    return {
        "kind": "failed",
        "strategy": strategy,
        "file": failure.file,
        "line": failure.line,
        "text": str(failure),
    }


def applied_line(seq: int, what: str, effect: dict[str, Any]) -> dict[str, Any]:
    """Return the log line that tells the runner that its request number `seq` was carried out.

    The runner is the process that runs a scenario. `what` is the kind of request. `effect` has
    further fields of the line: `value` is the new setting, with rates as in the scenario file. For
    a link, `flows_moved` is the number of flows that moved to another path. The line for a new
    strategy is written before that strategy's first decision.
    """
    return {"kind": "flip", "seq": seq, "what": what, "state": "applied", "ok": True, **effect}


def refused_line(seq: int, why: str) -> dict[str, Any]:
    """Return the log line that tells the runner that its request number `seq` was refused.

    The runner is the process that runs a scenario. The request has changed nothing.
    """
    return {"kind": "flip", "seq": seq, "state": "refused", "ok": False, "why": why}


def subflow_line(subflow: Subflow, rate_scale: float = 1.0, ended: bool = False) -> dict[str, Any]:
    """Return the log line of a subflow that has begun, has changed, or (with `ended`) has ended."""
    line = {
        "kind": "subflow",
        "connection": subflow.connection,
        "subflow": subflow.number,
        "user": subflow.user,
        "ap": subflow.ap,
        "tier": subflow.tier,
        "source": subflow.source,
        "destination": subflow.destination,
        "path": list(subflow.path),
        "backup": subflow.backup,
        "expected_mbps": _mbps(subflow.expected_bps, rate_scale),
    }
    return line | ({"ended": True} if ended else {})


def _mbps(rate_bps: int | None, rate_scale: float) -> float | None:
    return None if rate_bps is None else scenario_mbps(rate_bps, rate_scale)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
