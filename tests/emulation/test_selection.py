"""Subflow selection in POX: the chosen subflows, the forecast, a stopped POX, and fifteen paths.

All runs are in one VM. Rates on the wire are low, because the VM's processor may be emulated: tests
compare ratios, paths and confirmations. Figures are in scenario units.
"""

from __future__ import annotations

from typing import Any

import pytest
from emulation.strategy_runs import PAYLOAD, actions
from emulation.subflow_entries import Ends, subflows
from emulation.vm_run import POX, mean, signalled
from emulation.vm_shell import Queued, VmShell
from machine import emulation, needs_emulation

__all__ = ["emulation"]
pytestmark = needs_emulation
QUARTER = ("--seed", "1", "--set", "rate_scale=0.25")


@pytest.fixture(scope="module")
def three(vm: VmShell) -> dict[str, Any]:
    """Make a run in which path 3 alone is best until its delay equals that of the others.

    POX is stopped meanwhile and learns of the new delay only when it continues.
    """
    uneven = ("--set", "topology.paths.3.delay_ms=20", "--set", "strategy.params.rl_max_kb=12")
    run = vm.run("three_paths", *QUARTER, "--duration", "120", *uneven)
    run.until(12)
    found: dict[str, Any] = {
        "run": run,
        "alone": subflows(run),
        "alone_mbps": mean(run.samples(), three_mbps, 7),
    }
    run.execute("machine", signalled(POX, "STOP"))
    found["stopped"] = run.now() + 1
    run.flip("link.path3.delay_ms", 60)
    run.until(found["stopped"] + 8)
    found["still_stopped"], found["frozen"] = run.now(), subflows(run)
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for(
        "all subflows active", lambda: not any(line["backup"] for line in subflows(run).values())
    )
    found["together"] = run.now()
    run.until(run.now() + 8)
    run.stop()
    found["result"] = run.finish()
    return found


def three_mbps(frame: dict[str, Any]) -> float:
    return float(frame["user"]["ue1"]["mbps"])


def others_mbps(frame: dict[str, Any]) -> float:
    """Rate that arrived over paths 1 and 2."""
    return float(sum(row["mbps"] for row in frame["sf"].values() if row["ap"] != "access3"))


def backups(lines: dict[Ends, dict[str, Any]]) -> dict[str, bool]:
    return {line["ap"]: line["backup"] for line in lines.values()}


@pytest.mark.long
def test_only_chosen_subflows_are_active_and_their_hosts_confirm_it(three):
    assert backups(three["alone"]) == {"p1": True, "p2": True, "p3": False}
    assert "endpoint change 10.17.0.1 backup" in (three["run"].folder / "commands.sh").read_text()
    assert mean(three["run"].samples(), others_mbps, 7, 12) < 0.8


@pytest.mark.long
def test_a_forecast_is_close_to_the_measurement(three):
    forecasts = [
        line
        for line in three["run"].events("decision")
        if line["action"] == "forecast" and 7 < line["t"] < 12
    ]
    (number,) = [line["subflow"] for line in three["alone"].values() if line["ap"] == "p3"]
    assert all(line["active"] == [f"{line['connection']}/{number}"] for line in forecasts)
    assert [line["forecast_mbps"] for line in forecasts] == [pytest.approx(18, rel=0.1)] * len(
        forecasts
    )
    measured_mbps = sum(line["measured_mbps"] for line in forecasts) / len(forecasts)
    print(
        f"three_paths: forecast {forecasts[-1]['forecast_mbps']}, measured {measured_mbps:.2f} Mb/s"
    )
    assert measured_mbps == pytest.approx(three["alone_mbps"] / PAYLOAD, rel=0.15)


@pytest.mark.long
def test_a_stopped_pox_freezes_the_active_set_and_not_the_traffic(three):
    run = three["run"]
    assert three["frozen"] == three["alone"]
    assert (
        mean(run.samples(), three_mbps, three["stopped"], three["still_stopped"])
        > 0.5 * three["alone_mbps"]
    )
    assert not [
        line
        for line in run.events("decision")
        if three["stopped"] + 1 < line["t"] < three["still_stopped"]
    ]
    assert mean(run.samples(), others_mbps, three["together"] + 3) > 2.4


@pytest.mark.long
def test_a_few_of_fifteen_paths_carry_more_than_all_and_lose_less(runs):
    """Reordering is not less: without the strategy the kernel mostly uses the three short paths and
    stalls instead (docs/strategies.md)."""
    results = {}
    for name in ("none", "subflow_selection"):
        run = runs("fifteen_paths", "--seed", "1", "--duration", "30", "--strategy", name)
        (connection,) = run.finish()["connections"]
        assert len(connection["subflows"]) == 15
        results[name] = {
            "mbps": mean(run.samples(), three_mbps, 10),
            "retransmitted": retransmitted(connection),
        }
        print(
            f"fifteen_paths: {name} {results[name]}, "
            f"out of order {connection['out_of_order_fraction']}"
        )
    none, selected = results["none"], results["subflow_selection"]
    assert selected["mbps"] > 1.05 * none["mbps"]
    assert selected["retransmitted"] < none["retransmitted"]
    active = actions(run, "forecast")[-1]["active"]
    assert sorted(number for number, backup in last_backup(run).items() if not backup) == sorted(
        int(each.split("/")[1]) for each in active
    )
    assert "pm_nl_ctl set" in (run.folder / "commands.sh").read_text()


def retransmitted(connection: dict[str, Any]) -> float:
    """Fraction of a connection's segments that were retransmissions."""
    repeated, sent = (
        sum(each[key] for each in connection["subflows"])
        for key in ("retransmitted_segments", "segments")
    )
    return repeated / sent


def last_backup(run: Queued) -> dict[int, bool]:
    return {line["subflow"]: line["backup"] for line in subflows(run).values()}
