"""Batches of strategies x values x seeds, started from the page; each has one row with its
progress."""

from __future__ import annotations

import time

import pytest
from conftest import until

from dashboard.base.errors import Problem
from dashboard.batches import BatchRequest, planned
from dashboard.runs import StartRequest

START = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": "max", "duration_s": 5}


def request(**fields):
    return BatchRequest(start=StartRequest(**START, strategy="meter_throttling"), **fields)


def test_strategies_values_and_seeds_are_combined():
    vary = {"key": "strategy.cth", "values": (0.3, 0.6)}
    runs = planned(request(strategies=("none", "meter_throttling"), repeats=3, vary=vary))
    assert len(runs) == 12
    assert {(each.strategy, each.seed, each.set["strategy.cth"]) for each in runs} == {
        (strategy, seed, cth)
        for strategy in ("none", "meter_throttling")
        for seed in (1, 2, 3)
        for cth in (0.3, 0.6)
    }


def test_parameters_belong_to_their_own_strategy():
    start = StartRequest(**START, strategy="meter_throttling", params={"cth": 0.5}, seed=7)
    runs = planned(BatchRequest(start=start, strategies=("none", "meter_throttling")))
    assert [(each.params, each.seed) for each in runs] == [({}, 7), ({"cth": 0.5}, 7)]


def test_too_many_runs_are_refused():
    with pytest.raises(Problem, match="at most 200"):
        planned(request(repeats=100, strategies=("none", "disjoint", "optimum")))


EVENT = {"at_s": 1, "target": "ap.wifi1.mbps", "value": 0.5}


def test_settings_that_no_program_takes_as_an_argument_are_refused(client):
    start = START | {"set": {"events": [EVENT] * 2000}}
    answer = client.post("/api/runs", json=start)
    assert answer.status_code == 422, answer.json
    assert "'events' has 1" in answer.json["error"]
    assert "at most 100000 are possible" in answer.json["error"]


def test_a_batch_whose_settings_take_long_to_check_is_refused_before(client):
    """Each set of settings is checked before the answer, which takes a second for 100 kB."""
    values = [round(0.01 * n, 2) for n in range(1, 51)]
    start = START | {"set": {"events": [EVENT] * 1000}}
    vary = {"key": "strategy.cth", "values": values}
    body = {"start": start, "strategies": ["meter_throttling"], "vary": vary}
    began = time.monotonic()
    answer = client.post("/api/batches", json=body)
    assert (answer.status_code, time.monotonic() - began < 2) == (422, True)
    assert "at most 500000 are possible. Choose fewer values" in answer.json["error"]


def test_a_batch_is_one_row_and_its_groups_can_be_compared(client):
    body = {"start": START, "strategies": ["none", "meter_throttling"], "repeats": 2}
    answer = client.post("/api/batches", json=body)
    assert answer.status_code == 201, answer.json
    row = until(
        lambda: next((row for row in client.get("/api/batches").json if row["over"]), None), 20
    )
    assert (row["id"], row["total"], row["done"], row["errors"]) == (answer.json["id"], 4, 4, [])
    groups = client.get(f"/api/compare?runs={','.join(row['runs'])}").json["groups"]
    assert [(each["label"], each["n"]) for each in groups] == [("none", 2), ("meter_throttling", 2)]


def test_a_batch_with_a_wrong_run_starts_nothing(client):
    before = len(client.get("/api/runs").json)
    for wrong in (
        {"strategies": ["none", "nope"]},
        {"vary": {"key": "strategy.cth", "values": [0.5, 7]}, "strategies": ["meter_throttling"]},
        {"strategies": ["mine.py"]},
        {"repeats": 0},
    ):
        answer = client.post("/api/batches", json={"start": START} | wrong)
        assert answer.status_code == 422, answer.json
    assert len(client.get("/api/runs").json) == before
    assert client.post("/api/batches/nope/stop").status_code == 404


def test_a_stopped_batch_starts_no_more_runs(client):
    slow = START | {"speed": 1, "duration_s": 600}
    batch = client.post("/api/batches", json={"start": slow, "repeats": 9}).json["id"]
    until(lambda: client.get("/api/batches").json[0]["runs"])
    assert client.post(f"/api/batches/{batch}/stop").status_code == 202
    row = until(lambda: (row := client.get("/api/batches").json[0])["over"] and row, 20)
    assert row["done"] < 9
