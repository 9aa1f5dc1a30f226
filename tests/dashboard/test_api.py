"""The HTTP interface: answers, refusals, and nothing starts after a refusal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile

import pytest
from conftest import until
from run_edits import seal

from dashboard import scenario_pages
from lab.scenario import loading


def test_scenarios_and_strategies_have_what_the_form_shows(client):
    found = {row["name"]: row for row in client.get("/api/scenarios").json}
    assert found["testbed_wifi_lte"]["question"].startswith("Which users lose")
    params = {row["name"]: row["params"] for row in client.get("/api/strategies").json}[
        "meter_throttling"
    ]
    assert next(each for each in params if each["name"] == "min_rate_mbps")["unit"] == "Mb/s"


def test_runs_are_listed_and_filtered(client):
    assert {row["id"] for row in client.get("/api/runs").json} == {"plain", "metered"}
    assert [row["id"] for row in client.get("/api/runs?strategy=meter_throttling").json] == [
        "metered"
    ]
    assert [row["id"] for row in client.get("/api/runs?q=plain").json] == ["plain"]
    assert client.get("/api/runs?colour=blue").status_code == 422


def test_a_run_comes_with_its_targets(client):
    run = client.get("/api/runs/metered").json
    target = next(each for each in run["targets"] if each["name"] == "strategy.cth")
    assert (target["value"], target["minimum"], target["maximum"]) == (0.85, 0, 1)
    assert run["state"]["verdict"]["is"] == "yes"
    assert len(run["to_try"]) == 3  # a finished run is made once more with them
    assert run["is_changed"] is False


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"scenario": "nope"}, 422, "choose from"),
        ({"scenario": "testbed_wifi_lte", "engine": "ns9"}, 422, "engine 'ns9' is unknown"),
        (
            {"scenario": "testbed_wifi_lte", "engine": "testbed", "strategy": "magic"},
            422,
            "'magic' is unknown",
        ),
        (
            {"scenario": "testbed_wifi_lte", "engine": "testbed", "sped": 1},
            422,
            "unknown key 'sped' (did you mean 'speed'?)",
        ),
        (
            {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": -1},
            422,
            "write max, 1 or 10",
        ),
        (
            {
                "scenario": "testbed_wifi_lte",
                "engine": "testbed",
                "set": {"topology.multipath": ["ue9"]},
            },
            422,
            "ue9",
        ),
        (
            {"scenario": "testbed_wifi_lte", "engine": "testbed", "duration_s": "long"},
            422,
            "duration_s",
        ),
        (
            {
                "scenario": "testbed_wifi_lte",
                "engine": "testbed",
                "strategy": "meter_throttling",
                "params": {"cth": 3},
            },
            422,
            "cth",
        ),
    ],
)
def test_a_wrong_request_is_refused_and_nothing_is_started(client, runs, body, status, expected):
    answer = client.post("/api/runs", json=body)
    assert answer.status_code == status
    assert expected in answer.json["error"]
    assert {path.name for path in runs.iterdir()} == {"plain", "metered"}


def test_the_emulation_without_root_answers_with_a_command_to_paste(client, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    request = {
        "scenario": "testbed_wifi_lte",
        "engine": "mininet",
        "set": {"topology.multipath": []},
    }
    answer = client.post("/api/runs", json=request)
    assert answer.status_code == 409
    command = "sudo ./run_lab.sh run testbed_wifi_lte --engine mininet"
    assert answer.json["command"] == f"{command} --set 'topology.multipath=[]'"


def test_a_run_that_cannot_start_leaves_no_folder(client, app, runs):
    app.extensions["launcher"]._command = [
        "sh",
        "-c",
        "echo 'error: no root. Try: sudo' >&2; exit 3",
    ]
    answer = client.post("/api/runs", json={"scenario": "testbed_wifi_lte", "engine": "testbed"})
    assert (answer.status_code, answer.json["error"]) == (409, "no root. Try: sudo")
    assert {path.name for path in runs.iterdir()} == {"plain", "metered"}


def test_the_number_of_running_runs_is_limited(client, app, running_run):
    app.extensions["launcher"]._most = 1
    answer = client.post("/api/runs", json={"scenario": "testbed_wifi_lte", "engine": "testbed"})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "5"


def test_a_run_is_changed_paused_sped_up_and_stopped(client, running_run):
    path = f"/api/runs/{running_run}"
    until(lambda: client.get(path).json["state"]["speed"] == 10)
    flip = client.post(f"{path}/flips", json={"target": "strategy", "value": "meter_throttling"})
    assert flip.status_code == 202
    assert int(flip.json["seq"]) > 0
    assert (
        client.post(f"{path}/flips", json={"target": "strategy.cth", "value": 0.5}).status_code
        == 202
    )  # of the new strategy
    until(
        lambda: [
            e
            for e in client.get(f"{path}/charts").json["events"]
            if e["title"] == "setting cth of the strategy: 0.5 instead of 0.85"
        ]
    )
    targets = {each["name"]: each["value"] for each in client.get(path).json["targets"]}
    assert (targets["strategy"], targets["strategy.cth"]) == ("meter_throttling", 0.5)
    assert client.post(f"{path}/pause", json={}).status_code == 202
    until(lambda: client.get(path).json["state"]["paused"])
    assert client.post(f"{path}/speed", json={"speed": "max"}).status_code == 202
    assert client.post(f"{path}/speed", json={"speed": True}).status_code == 422
    assert client.post(f"{path}/stop").status_code == 202
    until(lambda: client.get(path).json["status"] == "interrupted")
    over = client.post(f"{path}/flips", json={"target": "cc", "value": "cubic"})
    assert over.status_code == 409
    assert "it is interrupted" in over.json["error"]


def test_undo_sets_back_what_was_changed_by_hand(client, running_run):
    path = f"/api/runs/{running_run}"
    until(lambda: client.get(path).json["state"]["status"] == "running")
    first = {each["name"]: each["value"] for each in client.get(path).json["targets"]}
    flips = {
        "strategy": "meter_throttling",
        "strategy.cth": 0.4,
        "cell.wifi1.ue3.rate_mbps": 6,
        "user.ue1.demand_mbps": 3,
        "cell.wifi1.ue1.rate_mbps": first["cell.wifi1.ue1.rate_mbps"],  # changes nothing
    }
    for target, value in flips.items():
        body = {"target": target, "value": value}
        assert client.post(f"{path}/flips", json=body).status_code == 202
    assert client.get(path).json["is_changed"]
    assert len(client.post(f"{path}/undo").json["seqs"]) == 3
    now = {each["name"]: each["value"] for each in client.get(path).json["targets"]}
    assert now == first
    assert client.get(path).json["is_changed"] is False
    assert client.post(f"{path}/undo").json["seqs"] == []
    client.post(f"{path}/stop")
    until(lambda: client.get(path).json["state"]["over"])
    assert client.post(f"{path}/undo").status_code == 409


def test_undo_leaves_the_changes_of_the_scenario(client):
    events = [{"at_s": 1, "target": "cell.wifi1.ue3.rate_mbps", "value": 9}]
    body = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}
    run_id = client.post("/api/runs", json=body | {"set": {"events": events}}).json["id"]
    path = f"/api/runs/{run_id}"

    def rate():
        rows = client.get(path).json["targets"]
        return next(each["value"] for each in rows if each["name"] == events[0]["target"])

    until(lambda: rate() == 9)
    assert client.get(path).json["is_changed"] is False
    client.post(f"{path}/flips", json={"target": events[0]["target"], "value": 4})
    assert client.get(path).json["is_changed"]
    client.post(f"{path}/undo")
    assert rate() == 9
    client.post(f"{path}/stop")


@pytest.mark.parametrize("name", ["testbed_wifi_lte", "dynamic_loss", "fat_tree", "campus"])
def test_only_strategies_that_fit_are_offered_and_those_of_the_scenario_first(client, name):
    about = scenario_pages.choices(name)
    unfit = {each["name"] for each in about["strategies"] if each["unfit"]}
    scenario = loading.load(name)
    assert {"none", scenario.strategy.name} <= set(about["meant"])
    assert 1 <= len(about["meant"]) <= 4
    assert not unfit & set(about["meant"])


@pytest.mark.parametrize(
    ("flip", "status", "expected"),
    [
        ({"target": "strategy.cht", "value": 1}, 422, "'strategy.cht' is unknown"),
        ({"target": "cell.wifi1.ue3.rate_mbps", "value": -4}, 422, "is not within"),
        ({"target": "link.wifi.up", "value": 1}, 422, "neither true nor false"),
        ({"target": "link.wifi.up"}, 422, "value: is missing"),
        ([1], 400, "no JSON object"),
    ],
)
def test_flips_are_checked_before_they_are_sent(client, running_run, flip, status, expected):
    answer = client.post(f"/api/runs/{running_run}/flips", json=flip)
    assert (answer.status_code, expected in answer.json["error"]) == (status, True), answer.json


def test_runs_in_real_time_can_only_be_stopped(client, running_run, runs):
    until(lambda: client.get(f"/api/runs/{running_run}/frames?since=0").json["messages"])
    # After its first sample the run itself does not write the manifest any more.
    manifest = json.loads((runs / running_run / "manifest.json").read_text())
    (runs / running_run / "manifest.json").write_text(json.dumps(manifest | {"engine": "mininet"}))
    assert client.post(f"/api/runs/{running_run}/pause").status_code == 409
    assert client.get(f"/api/runs/{running_run}").json["controls"] == ["stop"]


def test_tags_note_and_deleting(client, runs):
    annotation = {"tags": ["course", " course ", ""], "note": "worth a look"}
    assert client.patch("/api/runs/plain", json=annotation).json["tags"] == ["course"]
    assert [row["id"] for row in client.get("/api/runs?tag=course").json] == ["plain"]
    assert client.delete("/api/runs/plain").status_code == 204
    assert not (runs / "plain").exists()
    assert client.delete("/api/runs/plain").status_code == 404


def test_a_running_run_is_not_deleted(client, running_run):
    assert client.delete(f"/api/runs/{running_run}").status_code == 409


def test_a_comparison_has_numbers_and_verdicts(client):
    comparison = client.get("/api/compare?runs=plain,metered").json
    assert [group["label"] for group in comparison["groups"]] == ["none", "meter_throttling"]
    assert "not enough runs" in comparison["verdicts"]["meter_throttling"]["throughput_mbps"]
    assert client.get("/api/compare?runs=plain").status_code == 422
    assert client.get("/api/compare?runs=plain,nope").status_code == 404


def test_a_comparison_shows_the_changes_made_in_each_run(client, runs):
    event = {
        "t": 5.0,
        "kind": "flip",
        "ok": True,
        "target": "strategy.cth",
        "value": 0.3,
        "source": "inbox",
    }
    walked = {"t": 4.0, "kind": "handover", "user": "ue3", "from": "wifi1", "to": "wifi2"}
    with (runs / "metered" / "events.jsonl").open("a") as log:
        log.write("".join(json.dumps(each) + "\n" for each in (walked, event)))
    seal(runs / "metered")
    marks = client.get("/api/compare/charts?runs=plain,metered").json["marks"]
    assert [(each["run"], each["number"], each["t"], each["title"]) for each in marks] == [
        (1, None, 4.0, "ue3: wifi1 to wifi2"),  # only changes are numbered
        (1, 1, 5.0, "setting cth of the strategy: 0.3"),
    ]


def test_a_running_run_has_comparison_charts_but_no_metrics(client, running_run):
    answer = client.get(f"/api/compare?runs=plain,{running_run}")
    assert answer.status_code == 409
    assert client.get(f"/api/compare/charts?runs=plain,{running_run}").status_code == 200


def test_exports(client):
    rows = list(csv.DictReader(io.StringIO(client.get("/api/runs/plain/export?format=csv").text)))
    assert len(rows) == 40
    assert float(rows[-1]["t"]) == 20
    assert "ap.wifi1.tier1_mbps" in rows[0]
    whole = client.get("/api/runs/plain/export?format=json").json
    assert (whole["manifest"]["run_id"], len(whole["samples"])) == ("plain", 40)
    names = zipfile.ZipFile(
        io.BytesIO(client.get("/api/runs/plain/export?format=zip").data)
    ).namelist()
    assert "plain/samples.jsonl" in names
    assert client.get("/api/runs/plain/export?format=xls").status_code == 422


def test_the_csv_has_both_directions_of_a_link(client, runs):
    link = {"path1": {"mbps": 5.0, "mbps_ab": 5.0, "mbps_ba": 0.2}}
    (runs / "plain" / "samples.jsonl").write_text(json.dumps({"t": 1.0, "link": link}) + "\n")
    rows = list(csv.DictReader(io.StringIO(client.get("/api/runs/plain/export?format=csv").text)))
    assert rows == [
        {
            "t": "1.0",
            "link.path1.mbps": "5.0",
            "link.path1.mbps_ab": "5.0",
            "link.path1.mbps_ba": "0.2",
        }
    ]


def test_every_address_is_described(client, app):
    described = client.get("/openapi.json").json["paths"]
    rules = {
        rule.rule.replace("<", "{").replace(">", "}")
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith(("api.", "network_api."))
    }
    assert rules == set(described)
    assert "StartRequest" in json.dumps(described["/api/runs"]["post"])


def test_every_reference_of_the_description_leads_to_a_schema(client):
    text = client.get("/openapi.json").text
    schemas = json.loads(text)["components"]["schemas"]
    found = set(re.findall(r'"\$ref": ?"([^"]*)"', text))
    assert len(found) > 2
    assert found <= {f"#/components/schemas/{name}" for name in schemas}


def test_a_run_started_in_a_terminal_is_listed(client, runs, finished_runs):
    import shutil

    shutil.copytree(finished_runs / "plain", runs / "later")
    assert "later" in {row["id"] for row in client.get("/api/runs").json}


def test_settings_named_by_a_symbol_have_words_on_the_page(client, runs):
    labels = {
        each["name"]: each["label"] for each in client.get("/api/runs/metered").json["targets"]
    }
    assert labels["strategy.cth"] == "Congested from (CTh)"
    assert labels["strategy.m_floor"] == "Least occupancy (m floor)"
    assert labels["strategy.categorisation_interval_s"] == "categorisation interval"  # no symbol
    strategies = {each["name"]: each for each in client.get("/api/strategies").json}
    params = {each["name"]: each for each in strategies["loss_aware"]["params"]}
    assert params["gamma_lte"]["words"] == "Most loss over LTE (gamma)"
