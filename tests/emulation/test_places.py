"""A user that is put somewhere during a run: its access point, paths, rates and position."""

from __future__ import annotations

from typing import Any

import pytest
from emulation.vm_run import VmRun
from machine import needs_emulation

pytestmark = needs_emulation
NEAR, FAR = [150, 52], [120, 2]  # of wifi3
NEAR_S, FAR_S, END_S = 4, 9, 15
EVENTS = (
    f"events=[{{at_s: {NEAR_S}, target: user.ue1.position, value: {NEAR}}},"
    f" {{at_s: {FAR_S}, target: user.ue1.position, value: {FAR}}}]"
)
SETTINGS = ("topology.users=2", "topology.multipath_percent=100", "rate_scale=0.1", EVENTS)


@pytest.fixture(scope="module")
def moved(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    options += ["--duration", str(END_S)]
    run = VmRun(tmp_path_factory.mktemp("moved") / "run", *options, scenario="thirty_users")
    run.finish()
    return run


def rows(run: VmRun, start_s: float, end_s: float) -> list[dict[str, Any]]:
    return [each for each in run.samples() if start_s < each["t"] <= end_s]


def test_the_station_associates_with_the_nearest_access_point(moved: VmRun) -> None:
    (handover,) = moved.events("handover")
    assert (handover["user"], handover["from"], handover["to"]) == ("ue1", "wifi1", "wifi3")
    assert NEAR_S <= handover["t"] < NEAR_S + 1
    assert handover["gap_ms"] is not None
    (told,) = (each for each in moved.decisions() if each["kind"] == "association")
    assert (told["user"], told["from"], told["to"]) == ("ue1", "wifi1", "wifi3")
    assert told["flows_moved"] >= 2  # both directions of a subflow


def test_samples_have_the_place_and_the_rate_follows_from_it(moved: VmRun) -> None:
    assert [each["state"] for each in moved.events("flip")] == ["sent", "applied"] * 2
    for place, start_s, end_s in ((NEAR, NEAR_S + 1, FAR_S), (FAR, FAR_S + 1, END_S)):
        here = [each["user"]["ue1"] for each in rows(moved, start_s, end_s)]
        assert {(each["x_m"], each["y_m"]) for each in here} == {tuple(place)}

    def over(ap: str, start_s: float, end_s: float) -> float:
        frames = rows(moved, start_s, end_s)
        carried = [
            sub["mbps"]
            for frame in frames
            for sub in frame["sf"].values()
            if (sub["user"], sub["ap"]) == ("ue1", ap)
        ]
        return sum(carried) / len(frames)

    near, far = over("wifi3", NEAR_S + 2, FAR_S), over("wifi3", FAR_S + 2, END_S)
    assert near > 1.5 * over("wifi1", 1, NEAR_S)
    assert near > 1.5 * far > 0
    assert over("wifi1", NEAR_S + 1, END_S) == 0
