"""Suggested changes on the page, and what each change of a run did."""

from __future__ import annotations

import json

import pytest
from conftest import until

from dashboard import lessons


def applied(client, run_id):
    return client.get(f"/api/runs/{run_id}/changes").json


def test_suggestions_are_measured_whatever_their_order(client, running_run):
    path = f"/api/runs/{running_run}"
    suggested = client.get(path).json["to_try"]
    assert [each["target"] for each in suggested] == [
        "strategy",
        "cell.wifi1.ue3.rate_mbps",
        "link.lte.up",
    ]
    assert suggested[0]["name"] == "strategy = meter_throttling"
    assert suggested[0]["watch"] == "ue1: throughput"
    for n, at_s in ((1, 4), (0, 8)):
        until(lambda at_s=at_s: client.get(path).json["state"]["t"] > at_s)
        body = {key: suggested[n][key] for key in ("target", "value")}
        assert client.post(f"{path}/flips", json=body).status_code == 202
    until(lambda: len(applied(client, running_run)) == 2)
    rows = until(
        lambda: (rows := applied(client, running_run))[-1]["is_final"] and rows,
        seconds=15,
    )
    assert [row["suggestion"] for row in rows] == [1, 0]
    last = rows[-1]
    assert last["sentence"].startswith(f"ue1 got {last['after']:.3g} instead of ")
    assert last["seconds"] == 10
    client.post(f"{path}/stop")
    until(lambda: client.get(path).json["state"]["over"])
    assert applied(client, running_run) == rows  # the finished page says the same


def test_a_refused_change_is_not_among_the_changes(client, running_run):
    path = f"/api/runs/{running_run}"
    body = {"target": "link.lte.up", "value": False}
    seq = client.post(f"{path}/flips", json=body).json["seq"]
    events = until(
        lambda: [
            each for each in client.get(f"{path}/charts").json["events"] if each["kind"] == "flip"
        ]
    )
    assert [(each["seq"], each["ok"]) for each in events] == [(seq, False)]
    assert applied(client, running_run) == []


def test_a_change_that_no_file_suggests_is_measured_by_what_it_is_about(runs, client):
    events = [
        {"t": 8, "kind": "flip", "ok": True, "target": "user.ue4.demand_mbps", "value": 3},
        {"t": 14, "kind": "flip", "ok": True, "target": "link.wifi.loss", "value": 0.1},
    ]
    (runs / "plain" / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    first, second = applied(client, "plain")
    assert (first["watch"], second["watch"]) == ("ue4: throughput", "all users: throughput")
    assert (first["seconds"], second["seconds"]) == (6, 6)
    assert first["suggestion"] is None
    assert second["also"].startswith("Most changed: ue")


def test_a_run_without_scenario_has_no_changes(tmp_path):
    assert lessons.changes(tmp_path) == lessons.suggestions(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("user.ue1.demand_mbps", "ue1: throughput"),
        ("cell.wifi1.ue3.rate_mbps", "ue3: throughput"),
        ("cell.wifi1.tier1_mbps", "wifi1: Tier 1"),
        ("strategy.cth", "all users: throughput"),
        ("cc", "all users: throughput"),
    ],
)
def test_the_number_that_shows_a_change(target, name):
    assert lessons.default_watched(target).text == name
