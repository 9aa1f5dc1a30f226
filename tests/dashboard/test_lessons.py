"""Suggested changes on the page, and what each change of a run did."""

from __future__ import annotations

import itertools
import json

import pytest
from conftest import until

from dashboard.runs import checked
from dashboard.serve import DEMO
from lab.results.explain import changes
from lab.run.recorder import keep_inputs, write_scenario
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides


def applied(client, run_id):
    return client.get(f"/api/runs/{run_id}/changes").json


def test_suggestions_are_measured_whatever_their_order(client, running_run):
    path = f"/api/runs/{running_run}"
    suggested = until(lambda: client.get(path).json["to_try"])
    assert [each["target"] for each in suggested] == [
        "strategy",
        "cell.wifi1.ue3.rate_mbps",
        "link.lte.up",
    ]
    assert suggested[0]["name"] == "strategy: none -> meter_throttling"
    assert suggested[0]["watch"] == "ue1: throughput"
    at_s = 4
    for made, n in enumerate((1, 0), 1):
        until(lambda at_s=at_s: client.get(path).json["state"]["t"] > at_s)
        body = {key: suggested[n][key] for key in ("target", "value")}
        assert client.post(f"{path}/flips", json=body).status_code == 202
        until(lambda made=made: len(applied(client, running_run)) == made)
        at_s = applied(client, running_run)[-1]["t"] + 4  # as late as the machine was slow
    rows = until(lambda: (rows := applied(client, running_run))[-1]["is_final"] and rows)
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

    def flips():
        events = client.get(f"{path}/charts").json["events"]
        return [(each["seq"], each["state"]) for each in events if each["kind"] == "flip"]

    until(lambda: len(flips()) == 2)
    assert flips() == [(seq, "sent"), (seq, "refused")]
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
    assert second["also"].startswith("Most changed, in Mb/s: ue")
    assert first["windows"] == [[0, 8], [8, 14]]


def test_a_change_by_the_scenario_file_has_the_sentence_of_its_suggestion(runs, client):
    suggested = loading.load("testbed_wifi_lte").to_try[1]
    event = {"t": 10, "kind": "flip", "ok": True, "source": "scenario", "old": 19.1}
    event |= {"target": suggested.target, "value": float(suggested.value)}
    (runs / "plain" / "events.jsonl").write_text(json.dumps(event) + "\n")
    (row,) = applied(client, "plain")
    assert row["name"] == "cell.wifi1.ue3.rate_mbps: 19.1 -> 6"
    assert row["sentence"].startswith("ue1, whose own rate stayed the same, got")
    assert (row["by_scenario"], row["suggestion"], row["seconds"]) == (True, None, 10)


def recorded(folder, scenario):
    """Two functions for a run of this scenario: which suggestions are already so, and a change."""
    folder.mkdir(parents=True, exist_ok=True)
    write_scenario(folder / "scenario.yaml", scenario)
    keep_inputs(folder, loading.input_files(scenario, "sim"))
    (folder / "events.jsonl").write_text("")

    def flip(target, value):
        value = targets.check_flip(scenario, target, value)
        event = {"t": 1, "kind": "flip", "ok": True, "target": target, "value": value}
        with (folder / "events.jsonl").open("a") as events:
            events.write(json.dumps(event) + "\n")

    return lambda: [each["already"] for each in changes.suggestions(folder)], flip


def test_a_change_is_not_measured_after_the_transfers_have_ended(tmp_path):
    traffic = "traffic=[{user: all, kind: file, volume_mb: 5}]"
    recorded(tmp_path, loading.load("testbed_wifi_lte", Overrides(settings=(traffic,))))
    rates = {"ue1": 8.0, "ue2": 12.0, "ue3": 12.0, "ue4": 12.0}  # ends of their transfers
    frames = [
        {"t": t, "user": {user: {"mbps": 2.0 * (t <= end)} for user, end in rates.items()}}
        for t in range(1, 31)
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(each) + "\n" for each in frames))
    events = [{"t": t, "kind": "completion", "user": user} for user, t in rates.items()]
    flip = {"kind": "flip", "ok": True, "target": "strategy", "value": {"name": "none"}}
    events += [{"t": 4, **flip}, {"t": 20, **flip}]
    events.sort(key=lambda each: each["t"])
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    early, late = changes.changes(tmp_path)
    assert (early["before"], early["after"], early["seconds"]) == (8, 8, 4)  # until ue1 ends
    assert "the transfers had finished" in late["sentence"]


@pytest.mark.parametrize("name", loading.names())
def test_a_suggestion_changes_something_until_it_has_been_made(name, tmp_path):
    """In all orders: the latest change of each target, and only that, is already so."""
    scenario = loading.load(name)
    suggested = scenario.to_try
    already, flip = recorded(tmp_path, scenario)
    changed = {each.target for each in scenario.events}
    undoes = [each.target in changed and each.value is True for each in suggested]  # mends a cable
    for order in itertools.permutations(range(len(suggested))):
        (tmp_path / "events.jsonl").write_text("")
        made = {}
        assert already() == undoes
        for n in order:
            flip(suggested[n].target, suggested[n].value)
            made[suggested[n].target] = n
            assert already() == [n in made.values() or undoes[n] for n in range(3)]


def test_a_suggestion_is_already_so_in_a_run_that_was_started_with_it(tmp_path):
    scenario = loading.load("testbed_wifi_lte", Overrides(strategy="meter_throttling"))
    already, flip = recorded(tmp_path / "run", scenario)
    assert already() == [True, False, False]
    flip("strategy.cth", 0.5)  # with another threshold, the suggestion restores the default
    assert already() == [False, False, False]
    flip("strategy", "none")
    assert already() == [False, False, False]


def test_no_suggestion_of_the_demo_is_a_no_op(tmp_path):
    already, _ = recorded(tmp_path / "run", checked(DEMO))
    assert already() == [False, False, False]


def test_a_run_without_scenario_has_no_changes(tmp_path):
    assert changes.changes(tmp_path) == changes.suggestions(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("user.ue1.demand_mbps", "ue1: throughput"),
        ("cell.wifi1.ue3.rate_mbps", "ue3: throughput"),
        ("cell.wifi1.tier1_mbps", "wifi1: Tier 1 throughput"),
        ("strategy.cth", "all users: throughput"),
        ("cc", "all users: throughput"),
    ],
)
def test_the_number_that_shows_a_change(target, name):
    assert changes.default_watched(target).text == name
