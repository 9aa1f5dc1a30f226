"""The page of a changed run has means for each part between two changes, named by the changes."""

from __future__ import annotations

import json

import pytest
from run_edits import seal

from dashboard import view

FLIPS = [
    {"t": 8.0, "target": "strategy", "old": "none"},
    {"t": 14.0, "target": "cc", "old": "reno", "value": "lia", "source": "scenario"},
]
FLIPS[0]["value"] = {"name": "meter_throttling", "params": {}}


@pytest.fixture
def changed(runs):
    lines = [json.dumps(each | {"kind": "flip", "ok": True}) + "\n" for each in FLIPS]
    (runs / "plain" / "events.jsonl").write_text("".join(lines))
    seal(runs / "plain")
    return runs / "plain"


def test_each_part_has_its_name_its_times_and_its_means(changed, client):
    rows = client.get("/api/runs/plain/stretches").json
    assert [(row["from"], row["to"], row["name"]) for row in rows] == [
        (0, 8, "before any change"),
        (8, 14, "after strategy meter_throttling instead of none"),
        (14, 20, "after congestion control lia instead of reno"),
    ]
    labels = [label for label, _, _ in rows[0]["means"]]
    assert labels[:5] == ["all users", "ue1", "ue2", "ue3", "ue4"]
    assert {"Tier 1", "Tier 2", "wifi1 occupancy"} <= set(labels)
    samples = [json.loads(line) for line in (changed / "samples.jsonl").read_text().splitlines()]
    rates = [each["user"]["ue1"]["mbps"] for each in samples if 8 < each["t"] <= 14]
    assert rows[1]["means"][1] == ["ue1", "Mb/s", pytest.approx(sum(rates) / len(rates))]


def test_of_two_changes_of_a_parameter_within_a_second_the_last_one_stands(runs, client):
    target = "cell.wifi1.ue3.rate_mbps"
    both = [
        {"t": 8.0, "target": target, "old": 19.1, "value": 30.0},
        {"t": 8.5, "target": target, "old": 30.0, "value": 6.0},
    ]
    lines = [json.dumps(each | {"kind": "flip", "ok": True}) + "\n" for each in both]
    (runs / "plain" / "events.jsonl").write_text("".join(lines))
    seal(runs / "plain")
    name = client.get("/api/runs/plain/stretches").json[1]["name"]
    assert name == "after rate of ue3 at wifi1 when alone there: 6 Mb/s instead of 19.1"


def test_the_verdict_of_a_changed_run_mixes_nothing(changed, client):
    text = client.get("/api/runs/plain/summary").json["verdict"]
    first, second = text.split("\n")
    assert first.startswith(
        "8.0 to 14.0 s (strategy meter_throttling instead of none from 8.0 s on): all users"
    )
    assert second.startswith(
        "14.0 to 20.0 s (congestion control lia instead of reno from 14.0 s on): all users"
    )
    assert "on average" not in text


def test_a_run_without_changes_is_one_part(runs, client):
    (row,) = client.get("/api/runs/metered/stretches").json
    assert (row["name"], row["from"], row["to"]) == ("the whole run", 0, 20)
    (runs / "metered" / "samples.jsonl").unlink()
    assert client.get("/api/runs/metered/stretches").json == []


def test_the_head_names_strategy_and_congestion_control_over_time(changed, client):
    doc = client.get("/api/runs/plain").json
    assert doc["strategy_words"] == "none, from 8.0 s meter_throttling"
    assert doc["cc_words"] == "reno, from 14.0 s lia"
    assert [each["name"] for each in doc["strategies"]] == ["none", "meter_throttling"]
    page = client.get("/runs/plain").text
    assert "none, from 8.0 s meter_throttling" in page
    assert "cc: reno -&gt; lia" not in page  # it is in the scenario file, nobody did it by hand


def test_a_setting_with_many_values_names_the_first_and_the_last():
    values = [(float(n), f"v{n}") for n in range(7)]
    assert view.in_words(values) == "v0, from 1.0 s v1, from 2.0 s v2, …, from 6.0 s v6"
