"""Compared groups: the mean over seeds with a band, unfinished runs named, different rate scales
refused."""

from __future__ import annotations

import pytest
import testbed
from run_edits import edit_run

from dashboard import comparison
from dashboard.group_charts import drawn


@pytest.fixture
def repeated(runs):
    """Names of eight runs: three more repeats of each of the two."""
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
    total = drawn([("two", [first, second]), ("one", [first])], [second[-1]], 600)[0]["figure"][
        "data"
    ]
    mean, band, single = total
    assert (mean["x"], mean["y"]) == ([1, 2], [3, 6])
    assert band["y"] == [4, 8, 4, 2]
    assert single["y"] == [2, 4]
    assert [each["name"] for each in total] == ["two", "two: smallest to largest", "one"]


def test_runs_with_samples_at_other_times_share_one_grid():
    first = [frame(t, t) for t in (1, 2, 3, 4)]
    second = [frame(t, t) for t in (1, 3)]
    (mean, _) = drawn([("both", [first, second])], [first[-1]], 600)[0]["figure"]["data"]
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


@pytest.fixture
def scaled(runs):
    """The run `plain` gets another rate scale than `metered`."""
    edit_run(runs / "plain", rate_scale=0.25)


def test_runs_of_different_scales_are_refused(client, scaled):
    page = client.get("/compare?runs=plain,metered").text
    assert "different units on the wire: rate scale 0.25 and rate scale 1" in page
    assert "Compare anyway" in page
    assert "chart" not in page.partition("<main")[2].partition('id="refused"')[0]
    for address in ("/api/compare", "/api/compare/charts"):
        answer = client.get(f"{address}?runs=plain,metered")
        assert answer.status_code == 422
        assert "&mixed_scales=1" in answer.json["error"]


def test_scales_are_mixed_on_request_and_every_chart_and_label_says_so(client, scaled):
    asked = "runs=plain,metered&mixed_scales=1"
    assert "different units on the wire" in client.get(f"/compare?{asked}").text
    found = client.get(f"/api/compare/charts?{asked}").json
    assert [run["label"] for run in found["runs"]] == [
        "none rate scale 0.25",
        "meter_throttling rate scale 1",
    ]
    for each in found["figures"]:
        assert (
            "rate scale 0.25 and rate scale 1" in each["figure"]["layout"]["xaxis"]["title"]["text"]
        )
    assert any(
        "rate scale" in text for text in client.get(f"/api/compare?{asked}").json["warnings"]
    )


def test_groups_of_different_scales_are_named_by_their_scale(client, repeated, scaled):
    found = client.get(f"/api/compare/charts?runs={','.join(repeated)}&mixed_scales=1").json
    total = next(each for each in found["figures"] if each["name"] == "total")["figure"]["data"]
    names = [each["name"] for each in total if "smallest" not in each["name"]]
    assert len(names) == 3
    assert all("rate scale" in name for name in names)


def test_runs_of_one_scale_are_compared(client):
    assert "different units" not in client.get("/compare?runs=plain,metered").text
    assert client.get("/api/compare/charts?runs=plain,metered").status_code == 200


def test_runs_of_different_durations_have_different_labels():
    doc = {"strategy": "none", "scenario": "s", "engine": "sim", "seed": 1, "cc": "reno"}
    doc |= {"rate_scale": 1, "rates": "", "changed": ""}
    docs = [doc | {"id": str(each), "duration_s": each} for each in (12.0, 20.5)]
    assert [each["label"] for each in comparison.labelled(docs)] == ["none 12 s", "none 20.5 s"]
