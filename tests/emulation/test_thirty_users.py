"""Thirty users on three WiFi access points and LTE: second paths reduce the total, and meters
restore it.

MP-SDN, Figures 4, 5, 10 and 11. Rates are in scenario units. In the simulator at the same rate
scale, single-path users get 2.06 Mb/s each without second paths, 1.53 with 40 % multipath users,
and 1.94 if POX regulates them.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median
from typing import Any

import pytest
from emulation.vm_run import POX, Run, stopped
from emulation.vm_shell import Queued, VmShell, at_one_scale
from machine import emulation, needs_emulation

from lab.scenario.loading import load

__all__ = ["emulation"]
pytestmark = [*needs_emulation, pytest.mark.long]
SETTLED_S = 10
RATE_SCALES = (0.05, 0.03)
COMMON = ("--duration", "35", "--set", "sample_interval_s=1")
BASELINE = ("--strategy", "none", "--set", "topology.multipath_percent=0", *COMMON)
PLAIN = ("--strategy", "none", *COMMON)
THROTTLED = ("--strategy", "meter_throttling", *COMMON)
SINGLE = sorted(
    set(load("thirty_users").network.users) - set(load("thirty_users").network.multipath)
)
WITH_TIER_2 = ("wifi1", "wifi2")  # two saturated cells that have users of both kinds


@pytest.fixture(scope="module")
def measured(vm: VmShell) -> Callable[..., tuple[Queued, dict[str, Any]]]:
    """The finished run of a case. All cases run at the same rate scale, the highest at which no run
    is overloaded."""
    done = at_one_scale(vm, "thirty_users", (THROTTLED, PLAIN, BASELINE), RATE_SCALES)
    return lambda *case: done[case]


def single_mbps(run: Run) -> float:
    """Mean rate of the users that have only one path in all three runs."""
    frames = [frame for frame in run.samples() if frame["t"] > SETTLED_S]
    return mean(mean(frame["user"][user]["mbps"] for user in SINGLE) for frame in frames)


def test_users_with_one_path_lose_and_regain(measured):
    alone, plain, throttled = (
        single_mbps(measured(*case)[0]) for case in (BASELINE, PLAIN, THROTTLED)
    )
    assert plain < 0.85 * alone
    assert throttled > 1.1 * plain


def test_tier_2_of_a_saturated_cell_is_near_its_floor(measured):
    run, result = measured(*THROTTLED)
    floor_mbps = max(0.1, 0.05 / result["rate_scale"])
    frames = [frame for frame in run.samples() if frame["t"] > SETTLED_S]
    for ap in WITH_TIER_2:
        assert mean(frame["ap"][ap]["mac_occupancy"] for frame in frames) > 0.85
        assert median(frame["ap"][ap]["tier2_mbps"] for frame in frames) < 2 * floor_mbps


def test_all_cells_report_their_occupancy(measured):
    for case in (BASELINE, PLAIN, THROTTLED):
        run, result = measured(*case)
        assert set(result["aps"]) == {"wifi1", "wifi2", "wifi3", "lte1"}
        assert all(each["mac_occupancy_mean"] > 0.3 for each in result["aps"].values())
        stations = {ap: each["stations"] for ap, each in run.samples()[-1]["ap"].items()}
        assert sum(stations.values()) == 30 + len(set(load("thirty_users").network.multipath)) * (
            case != BASELINE
        )


def test_every_multipath_user_has_both_paths(measured):
    for case in (PLAIN, THROTTLED):
        assert measured(*case)[1]["mptcp"]["verified"] is True
        assert measured(*case)[1]["mptcp"]["joins"] == 12


def test_pox_decides_the_limits(measured):
    run, _ = measured(*THROTTLED)
    limited = {
        each["ap"]
        for each in run.decisions()
        if each["kind"] == "decision" and each["action"] == "meter"
    }
    assert limited >= set(WITH_TIER_2)


def test_nothing_is_decided_while_pox_is_stopped(vm: VmShell):
    run = vm.run("thirty_users", *THROTTLED, "--set", f"rate_scale={RATE_SCALES[-1]}")
    run.until(12)
    run.execute("machine", stopped(POX, seconds=14))
    begins = run.now() + 3  # samples may come late; what POX decided before is recorded by then
    run.until(begins)
    limits = {ap: run.meter_kbps(ap) for ap in WITH_TIER_2}
    run.until(begins + 7)
    assert {ap: run.meter_kbps(ap) for ap in WITH_TIER_2} == limits  # the meters still limit
    decided = [event["t"] for event in run.events("decision")]
    assert [t for t in decided if t <= begins]
    assert not [t for t in decided if begins < t < begins + 7]
    assert any(limits.values())
    run.wait_for("a decision of POX", lambda: run.events("decision")[-1]["t"] > begins + 7)
    run.kill()
