"""Races over HTTP: what starts, what is refused, and changes of several lanes."""

from __future__ import annotations

import json
import os
import signal

import pytest
from conftest import until

from dashboard import races
from dashboard.base.errors import Problem
from lab.results.store import Store
from lab.run.reading import read_events

START = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}
TWO = [{"strategy": "none"}, {"strategy": "meter_throttling"}]


def state(client, run_id):
    return client.get(f"/api/runs/{run_id}").json["state"]


def begun(client, lanes=TWO, **start):
    answer = client.post("/api/races", json={"start": START | start, "lanes": lanes})
    assert answer.status_code == 201, answer.json
    assert answer.json["url"] == f"/race?runs={','.join(answer.json['ids'])}"
    return answer.json["ids"]


def stopped(client, ids):
    for each in ids:
        client.post(f"/api/runs/{each}/stop")
    until(lambda: all(state(client, each)["over"] for each in ids))


def applied(folder):
    rows = [each for each in read_events(folder) if each.get("state") == "applied"]
    return [(each["t"], each["target"], each["value"]) for each in rows]


def test_lanes_are_ordinary_runs_that_can_be_compared(client, runs):
    ids = begun(client, duration_s=2, speed="max")
    until(lambda: all(state(client, each)["status"] == "complete" for each in ids))
    docs = [client.get(f"/api/runs/{each}").json for each in ids]
    assert [each["strategy"] for each in docs] == ["none", "meter_throttling"]
    assert len({each["seed"] for each in docs}) == 1
    for each in ids:
        assert json.loads((runs / each / "manifest.json").read_text())["lanes"] == ids
    assert client.get(f"/api/compare?runs={','.join(ids)}").status_code == 200
    assert client.get(f"/race?runs={','.join(ids)}").status_code == 200


def test_a_change_of_all_lanes_is_made_at_one_time_and_of_one_lane_only_there(client, runs):
    lanes = [*TWO, {"strategy": "none", "cc": "lia"}]
    ids = begun(client, lanes)
    folders = [runs / each for each in ids]
    flip = {"target": "user.ue1.demand_mbps", "value": 3}
    answer = client.post("/api/races/flips", json={"runs": ids, **flip})
    assert (answer.status_code, len(answer.json["seqs"])) == (202, 3)
    until(lambda: all(applied(each) for each in folders))
    first = [applied(each) for each in folders]
    assert first == first[:1] * 3
    one = {"runs": [ids[1]], "target": "strategy.cth", "value": 0.5}
    assert client.post("/api/races/flips", json=one).status_code == 202
    until(lambda: len(applied(folders[1])) == 2)
    assert [len(applied(each)) for each in folders] == [1, 2, 1]
    refused = client.post("/api/races/flips", json=one | {"runs": ids})
    assert refused.status_code == 422
    assert "lane 'none': " in refused.json["error"]
    mixed = client.post("/api/races/flips", json={"runs": [ids[0], "plain"], **flip})
    assert mixed.status_code == 409  # plain is over
    stopped(client, ids)


def test_a_killed_lane_is_cut_and_the_others_go_on(client, runs):
    ids = begun(client)
    until(lambda: state(client, ids[0])["t"] > 1)
    pid = json.loads((runs / ids[0] / "manifest.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: state(client, ids[0])["status"] == "cut")
    reached = state(client, ids[1])["t"]
    until(lambda: state(client, ids[1])["t"] > reached + 5)
    stopped(client, ids[1:])


def test_a_run_races_against_another_strategy(client, runs):
    answer = client.post("/api/races", json={"run": "plain", "lanes": [{}, TWO[1]]})
    assert answer.status_code == 201, answer.json
    ids = answer.json["ids"]
    docs = [client.get(f"/api/runs/{each}").json for each in ids]
    assert [each["strategy"] for each in docs] == ["none", "meter_throttling"]
    assert {each["duration_s"] for each in docs} == {20}
    stopped(client, ids)


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({"start": START, "lanes": TWO[:1]}, 422, "lanes"),
        ({"start": START, "lanes": [{"strategy": "none"}, {}]}, 422, "two lanes are the same"),
        ({"start": START, "lanes": [{}, {"set": {"seed": 2}}]}, 422, "seed differs"),
        ({"start": START, "lanes": [{}, {"set": {"duration_s": 9}}]}, 422, "duration_s differs"),
        ({"start": START | {"engine": "mininet"}, "lanes": TWO}, 422, "only one runs at a time"),
        ({"start": START, "run": "plain", "lanes": TWO}, 422, "either start or run"),
        ({"lanes": TWO}, 422, "either start or run"),
        ({"run": "nowhere", "lanes": TWO}, 404, "nowhere"),
        ({"run": "plain", "lanes": [{}, {"strategy": "/tmp/mine.py"}]}, 422, "mine.py"),
        ({"run": "plain", "lanes": [{}, {"cc": "quick"}]}, 422, "quick"),
        ({"start": START, "lanes": TWO * 2 + TWO}, 422, "lanes"),
    ],
)
def test_a_wrong_race_is_refused_and_starts_nothing(client, runs, request_, status, words):
    before = sorted(runs.iterdir())
    answer = client.post("/api/races", json=request_)
    assert answer.status_code == status, answer.json
    assert words in answer.json["error"]
    assert sorted(runs.iterdir()) == before


def test_a_race_counts_as_its_runs(client, running_run):
    four = [{"strategy": name} for name in ("none", "meter_throttling", "optimum", "disjoint")]
    answer = client.post("/api/races", json={"start": START, "lanes": four})
    assert answer.status_code == 429
    assert "a race of 4 makes more than 4" in answer.json["error"]
    stopped(client, [running_run])


def test_a_race_whose_lanes_have_not_begun_says_so(tmp_path, runs):
    with pytest.raises(Problem, match=r"race of young: still starting. Load this page again"):
        races.page(Store(runs, tmp_path / "index.json"), [runs / "plain", tmp_path / "young"])


def test_runs_of_no_race_have_no_page_of_a_race(client):
    answer = client.get("/race?runs=plain,metered")
    assert answer.status_code == 422
    assert "not lanes of one race" in answer.text
    assert client.get("/race?runs=plain").status_code == 422
    assert client.get("/race?runs=plain,nowhere").status_code == 404
