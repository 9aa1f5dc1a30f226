"""Each kind of line of the decision log, whole: the runner and the page read these names."""

from __future__ import annotations

import pytest

from controller import decision_log
from controller.command import (
    Decision,
    Expect,
    Forecast,
    Route,
    SetBackup,
    Throttle,
    Unthrottle,
)
from controller.control import Step
from controller.errors import StrategyFailed
from controller.observation import AccessPoint, Observation, Subflow

KEY = ("c", 2)
SCALE = 0.5  # 1 Mb/s in the scenario is 500 kb/s on the wire


@pytest.mark.parametrize(
    ("decision", "action", "about", "fields"),
    [
        (
            Decision("wifi1", "why", Throttle("wifi1", frozenset({"10.1.0.2", "10.1.0.1"}), 10**6)),
            "meter",
            {"ap": "wifi1"},
            {"meter_mbps": 2.0, "addresses": ["10.1.0.1", "10.1.0.2"]},
        ),
        (Decision("wifi1", "why", Unthrottle("wifi1")), "release", {"ap": "wifi1"}, {}),
        (
            Decision("c/2", "why", Route(KEY, ("s1", "s2"))),
            "route",
            {"subflow": "c/2"},
            {"path": ["s1", "s2"]},
        ),
        (
            Decision("c/2", "why", Expect(KEY, 3 * 10**6)),
            "expect",
            {"subflow": "c/2"},
            {"expected_mbps": 6.0},
        ),
        (
            Decision("c/2", "why", Expect(KEY, None)),
            "expect",
            {"subflow": "c/2"},
            {"expected_mbps": None},
        ),
        (Decision("c/2", "why", SetBackup(KEY, True)), "backup", {"subflow": "c/2"}, {}),
        (
            Decision("c", "why", forecast=Forecast((KEY,), 10**6, 64_000, 2 * 10**6)),
            "forecast",
            {"connection": "c"},
            {
                "active": ["c/2"],
                "forecast_mbps": 2.0,
                "forecast_buffer_kb": 64.0,
                "measured_mbps": 4.0,
            },
        ),
    ],
)
def test_a_decision_is_logged_with_its_command_and_rates_of_the_scenario(
    decision, action, about, fields
):
    line = {"kind": "decision", "strategy": "some", "action": action, "reason": "why"}
    assert decision_log.decision_line("some", decision, SCALE) == line | about | fields


def test_what_a_strategy_observed_is_logged():
    seen = Observation(
        0,
        (AccessPoint("wifi1", "wifi", 10**7, 0.123456, 10**6, 2 * 10**6),
         AccessPoint("lte1", "lte", 10**7)),
        tiers={("ue2", "wifi1"): 1, ("ue1", "wifi1"): 2, ("ue1", "lte1"): 1},
        rate_scale=SCALE,
    )  # fmt: skip
    assert decision_log.observation_line(Step(seen, "some", ())) == {
        "kind": "observation",
        "strategy": "some",
        "aps": {
            "wifi1": {"mac_occupancy": 0.1235, "tier2_mbps": 2.0, "meter_mbps": 4.0},
            "lte1": {"mac_occupancy": None, "tier2_mbps": None, "meter_mbps": None},
        },
        "tiers": {"ue1": {"lte1": 1, "wifi1": 2}, "ue2": {"wifi1": 1}},
    }


def test_a_subflow_is_logged_with_all_that_is_known_of_it():
    subflow = Subflow(
        "c", 2, "ue1", "wifi1", "a:1", "b:2", 2, ("s1", "wifi1"), backup=True, expected_bps=10**6
    )
    line = {
        "kind": "subflow",
        "connection": "c",
        "subflow": 2,
        "user": "ue1",
        "ap": "wifi1",
        "tier": 2,
        "source": "a:1",
        "destination": "b:2",
        "path": ["s1", "wifi1"],
        "backup": True,
        "expected_mbps": 2.0,
    }
    assert decision_log.subflow_line(subflow, SCALE) == line
    assert decision_log.subflow_line(subflow, SCALE, ended=True) == line | {"ended": True}


def test_answers_to_the_runner_and_failures_are_logged():
    assert decision_log.applied_line(3, "link", {"value": 0.5, "flows_moved": 2}) == {
        "kind": "flip",
        "seq": 3,
        "what": "link",
        "state": "applied",
        "ok": True,
        "value": 0.5,
        "flows_moved": 2,
    }
    assert decision_log.refused_line(3, "why") == {
        "kind": "flip",
        "seq": 3,
        "state": "refused",
        "ok": False,
        "why": "why",
    }
    assert decision_log.failure_line("some", StrategyFailed("text", "file.py", 7)) == {
        "kind": "failed",
        "strategy": "some",
        "file": "file.py",
        "line": 7,
        "text": "text",
    }
