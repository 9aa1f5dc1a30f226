"""Compared groups: the mean over seeds with a band, unfinished runs named, scales never silent."""

from __future__ import annotations

import json

import pytest
import testbed

from dashboard.group_charts import drawn


@pytest.fixture
def repeated(runs):
    """Add three repeats of each of the two runs."""
    names = ["plain", "metered"]
    for seed in (2, 3, 4):
        for strategy in ("none", "meter_throttling"):
            names.append(f"{strategy}-{seed}")
            testbed.finished(runs / names[-1], "duration_s=20", f"seed={seed}", strategy=strategy)
    return names


def frame(t, mbps):
    return {"t": t, "user": {"ue1": {"mbps": mbps}}}


def test_a_group_is_drawn_as_its_mean_with_a_band():
    first = [frame(1, 2.0), frame(2, 4.0)]
    second = [frame(1, 4.0), frame(2, 8.0)]
    total = drawn([("two", [first, second]), ("one", [first])], 600)[0]["figure"]["data"]
    mean, band, single = total
    assert (mean["x"], mean["y"]) == ([1, 2], [3, 6])
    assert band["y"] == [4, 8, 4, 2]
    assert single["y"] == [2, 4]
    assert [each["name"] for each in total] == ["two", "two: smallest to largest", "one"]


def test_runs_with_samples_at_other_times_share_one_grid():
    first = [frame(t, t) for t in (1, 2, 3, 4)]
    second = [frame(t, t) for t in (1, 3)]
    (mean, _) = drawn([("both", [first, second])], 600)[0]["figure"]["data"]
    assert (mean["x"], mean["y"]) == ([1, 2, 3], [1, 2, 3])


def test_eight_runs_are_compared_as_two_groups(client, repeated):
    asked = ",".join(repeated)
    charts = client.get(f"/api/compare/charts?runs={asked}").json["figures"]
    total = next(each for each in charts if each["name"] == "total")["figure"]["data"]
    assert [each["name"] for each in total if "smallest" not in each["name"]] == [
        "none",
        "meter_throttling",
    ]
    groups = client.get(f"/api/compare?runs={asked}").json["groups"]
    assert [each["n"] for each in groups] == [4, 4]
    page = client.get(f"/compare?runs={asked}").text
    assert "<b>meter_throttling</b>" in page
    assert "4 runs" in page


def test_a_run_without_result_is_left_out_and_named(client, repeated, runs):
    (runs / "none-4" / "result.json").unlink()
    asked = ",".join(repeated)
    groups = client.get(f"/api/compare?runs={asked}").json["groups"]
    assert [each["n"] for each in groups] == [3, 4]
    page = client.get(f"/compare?runs={asked}").text
    assert "none-4 (running) is left out: it has no result." in page


def test_runs_of_different_scales_are_compared_with_a_banner_only(client, runs):
    assert "different units" not in client.get("/compare?runs=plain,metered").text
    for name in ("result.json", "manifest.json"):
        path = runs / "plain" / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {"rate_scale": 0.25}))
    page = client.get("/compare?runs=plain,metered").text
    assert "different units on the wire: rate scale 0.25 and rate scale 1" in page
