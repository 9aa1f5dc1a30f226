"""Rates on pages are in the units of the scenario; scaled runs and runs of older versions say
so."""

from __future__ import annotations

import json

import pytest


def set_rates(folder, schema, scale):
    """Write schema and rate scale into the files of a finished run."""
    for name in ("manifest.json", "result.json"):
        document = json.loads((folder / name).read_text())
        document |= {"schema": schema, "rate_scale": scale}
        (folder / name).write_text(json.dumps(document))


@pytest.fixture
def scaled(runs):
    """`plain` at rate scale 1, `metered` at 0.25."""
    set_rates(runs / "plain", 3, 1)
    set_rates(runs / "metered", 3, 0.25)
    return runs


def test_a_scaled_run_has_a_banner_and_a_label(client, scaled):
    run = client.get("/api/runs/metered").json
    assert "Rates on the wire are scaled by 0.25" in run["rate_note"]
    assert "queueing delay is 4 times as long" in run["rate_note"]
    assert "rate scale 0.25" in client.get("/runs/metered").text
    assert client.get("/api/runs/plain").json["rate_note"] == ""


def test_lists_and_comparisons_say_the_scale(client, scaled):
    rates = {row["id"]: row["rates"] for row in client.get("/api/runs").json}
    assert rates == {"plain": "", "metered": "rate scale 0.25"}
    assert "rate scale 0.25" in client.get("/compare?runs=plain,metered&mixed_scales=1").text


def test_runs_of_one_strategy_are_told_apart_by_their_scale(client, scaled):
    set_rates(scaled / "metered", 3, 0.25)
    for name in ("manifest.json", "result.json"):
        document = json.loads((scaled / "metered" / name).read_text())
        (scaled / "metered" / name).write_text(json.dumps(document | {"strategy": "none"}))
    runs = client.get("/api/compare/charts?runs=plain,metered&mixed_scales=1").json["runs"]
    assert [run["label"] for run in runs] == ["none rate scale 1", "none rate scale 0.25"]


@pytest.mark.parametrize(
    ("schema", "words"), [(1, "wire rates"), (2, "handshakes without packets")]
)
def test_runs_of_older_schemas_are_labelled_and_not_compared_with_others(
    client, scaled, schema, words
):
    set_rates(scaled / "plain", schema, 1)
    run = client.get("/api/runs/plain").json
    assert run["rates"] == words
    assert "cannot be compared" in run["rate_note"]
    for path in ("/api/compare", "/api/compare/charts", "/compare"):
        answer = client.get(f"{path}?runs=plain,metered")
        assert answer.status_code == 422
        assert words in answer.text


def test_a_run_in_slow_motion_says_by_how_much(client, runs):
    manifest = runs / "metered" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["host"]["time_dilation"] = 4
    manifest.write_text(json.dumps(document))
    run = client.get("/api/runs/metered").json
    assert "A second of the run takes 4 s" in run["clocks_note"]
    assert run["time_dilation"] == 4
    assert {row["id"]: row["rates"] for row in client.get("/api/runs").json} == {
        "plain": "",
        "metered": "clocks 4 times slower",
    }
    assert "clocks 4 times slower" in client.get("/runs/metered").text
    assert client.get("/api/runs/plain").json["clocks_note"] == ""
