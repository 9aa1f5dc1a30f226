"""Users that walk among three access points: handovers, paths, traffic and positions.

Many tests check one run.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from emulation.vm_run import Run
from emulation.vm_shell import VmShell
from machine import needs_emulation

from lab.engines.mininet.emulated_network import Stations
from lab.scenario.loading import Overrides, load
from lab.scenario.movement import STEP_S, Movement
from lab.topologies.topology import wire

pytestmark = [*needs_emulation, pytest.mark.long]
SECONDS = 18
SETTINGS = (
    "topology.users=6",
    "topology.multipath_percent=50",
    "mobility.speed_min_mps=12",
    "mobility.speed_max_mps=20",
    "rate_scale=0.1",
)
WIFI = ("wifi1", "wifi2", "wifi3")


def planned() -> list[tuple[str, str, str]]:
    """Handovers of this scenario before its end: user, old and new access point."""
    scenario = load("moving_users", Overrides(settings=SETTINGS))
    ignored = SimpleNamespace(set_station=lambda *_: None, remove_station=lambda *_: None)
    found: list[tuple[str, str, str]] = []
    movement = Movement(
        scenario.network,
        scenario.mobility,
        scenario.seed,
        Stations(scenario.network, wire(scenario.network), ignored),  # type: ignore[arg-type]
        lambda user, old, new, _rssi_dbm: found.append((user, old, new)),
    )
    for step in range(round((SECONDS - 2) / STEP_S)):
        movement.step(step * STEP_S)
    return found


@pytest.fixture(scope="module")
def walked(vm: VmShell) -> dict[str, Any]:
    """Make the run; return it, its result, and what hosts and switches showed near its end."""
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    run = vm.run("moving_users", *settings, "--duration", str(SECONDS))
    run.wait_for("first sample", run.samples)
    user = planned()[0][0]
    run.until(SECONDS - 4)
    shown = run.execute(user, f"iw dev {user}-wlan0 link; ip -br addr show {user}-wlan0")
    return {"run": run, "user": user, "shown": shown, "result": run.finish()}


def handovers(run: Run) -> list[dict[str, Any]]:
    return sorted(run.events("handover"), key=lambda event: event["t"])


def test_users_change_access_points_as_planned(walked):
    """The tracks depend on the seed only; a slow machine makes steps later, not different."""
    done = [(each["user"], each["from"], each["to"]) for each in handovers(walked["run"])]
    assert len(planned()) > 3
    first = planned()[0]
    assert first in done
    assert {each[0] for each in done} >= {user for user, _old, _new in planned()[:3]}


def test_a_handover_is_recorded_with_its_gap(walked):
    found = [each for each in handovers(walked["run"]) if each["gap_ms"] is not None]
    assert found
    for each in found:
        assert {"user", "from", "to", "rssi_dbm", "association_ms"} <= set(each)
        assert each["rssi_dbm"] < 0
        assert 0 < each["association_ms"] <= each["gap_ms"] + 60  # the runner polls every 50 ms


def test_pox_moves_the_paths_to_the_access_point_that_reports_the_user(walked):
    run = walked["run"]
    user, old, new = planned()[0]
    moved = [
        each for each in run.decisions() if each["kind"] == "association" and each["user"] == user
    ]
    assert (moved[0]["from"], moved[0]["to"]) == (old, new)
    assert moved[0]["flows_moved"] >= 2  # both directions of a subflow
    paths = [
        (each["destination"], each["path"][-1])
        for each in run.decisions()
        if each["kind"] == "subflow" and each["user"] == user and each["path"][-1] in WIFI
    ]
    assert {end for end, _ap in paths} == {paths[0][0]}  # the address and the port stay
    assert [ap for _end, ap in paths][:2] == [old, new]


def test_traffic_goes_on_over_the_new_access_point(walked):
    """A subflow that waits for a retransmission may carry nothing until the next handover."""
    made = handovers(walked["run"])
    samples = walked["run"].samples()
    carried = []
    for each in made:
        user, new = each["user"], each["to"]
        later = [one["t"] for one in made if one["user"] == user and one["t"] > each["t"]]
        until = min(later, default=samples[-1]["t"])
        rates = [
            row["mbps"]
            for frame in samples
            if each["t"] < frame["t"] <= until
            for row in frame["sf"].values()
            if (row["user"], row["ap"]) == (user, new)
        ]
        carried.append(max(rates, default=0.0) > 0)
        if carried[-1]:
            assert walked["result"]["users"][user]["by_ap"][new] > 0
    assert sum(carried) >= len(made) / 2


def test_the_station_keeps_its_address_and_is_associated(walked):
    user = walked["user"]
    assert "SSID: lab-wifi" in walked["shown"]
    assert f"10.1.0.{user.removeprefix('ue')}/32" in walked["shown"]


def test_samples_show_where_users_are(walked):
    frames = walked["run"].samples()
    for user in ("ue1", "ue6"):
        places = {(frame["user"][user]["x_m"], frame["user"][user]["y_m"]) for frame in frames}
        assert len(places) > len(frames) / 2
    for frame in frames:
        assert sum(frame["ap"][ap]["stations"] for ap in (*WIFI, "lte1")) == 9


def test_pox_regulates_the_second_paths_where_they_are(walked):
    run = walked["run"]
    meters = {each["ap"] for each in run.events("decision") if each.get("action") == "meter"}
    assert len(meters & set(WIFI)) > 1
    assert walked["result"]["mptcp"]["verified"] is True
