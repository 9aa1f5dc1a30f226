"""The page of a finished run: verdict, means, repeats, baseline, and running it again."""

from __future__ import annotations

import json

import pytest
import testbed
from conftest import until

from dashboard.finished import held_back_kb, verdict
from lab.results.explain.changes import expected, finished
from lab.scenario import loading
from lab.scenario.loading import Overrides

FLIPS = [{"t": 2.0, "target": "strategy", "value": {"name": "meter_throttling", "params": {}}}]


def summary(client, run_id):
    answer = client.get(f"/api/runs/{run_id}/summary")
    assert answer.status_code == 200
    return answer.json


def test_the_verdict_has_two_sentences_made_from_the_numbers(runs, client):
    result = json.loads((runs / "metered" / "result.json").read_text())
    found = summary(client, "metered")
    first, second = found["verdict"].split(". ", 1)
    assert first.startswith(f"The 4 users got {result['throughput_mbps']:.3g} Mb/s together")
    assert f"Tier 2 carried {result['tiers']['2']:.3g} Mb/s" in second
    assert found["means"]["tiers.1"] == result["tiers"]["1"]
    assert (found["repeats"], found["is_baseline"], found["baseline"]) == (1, False, None)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, ""),
        ({"users": {"ue1": {"throughput_mbps": None}}, "throughput_mbps": None}, ""),
        (
            {
                "users": {"ue1": {"throughput_mbps": 18.6}},
                "throughput_mbps": 18.6,
                "connections": [
                    {
                        "id": "ue1-1",
                        "user": "ue1",
                        "completion_s": None,
                        "receive_buffer_max_bytes": 448_720,
                        "subflows": [{"throughput_mbps": 9.4}, {"throughput_mbps": 9.2}],
                    }
                ],
            },
            "ue1 got 18.6 Mb/s on average. Its subflows carried 9.4, 9.2 Mb/s; at most 449 kB had "
            "to wait for earlier data.",
        ),
        (
            {
                "users": {"ue1": {"throughput_mbps": 4.0}, "ue2": {"throughput_mbps": 4.01}},
                "throughput_mbps": 8.01,
                "connections": [],
            },
            "The 2 users got 8.01 Mb/s together on average, each about 4. No connection used more "
            "than one path.",
        ),
    ],
)
def test_verdicts(result, text):
    assert verdict(result) == text


def test_the_verdict_says_when_the_last_transfer_was_finished():
    users = {"ue1": {"throughput_mbps": 4.0}, "ue2": {"throughput_mbps": 4.01}}
    done = [{"user": "ue1", "t": 9.0}, {"user": "ue2", "t": 10.24}]
    result = {"users": users, "throughput_mbps": 8.01, "duration_s": 20.48}
    text = verdict(result, done)
    assert text.endswith(
        "The last transfer, of ue2, finished at 10.2 s; until then it was 16 Mb/s together."
    )
    assert verdict(result, done[1:]).endswith("finished at 10.2 s.")  # ue1 goes on


TRAFFIC = (
    "traffic=[{user: ue1, kind: file, volume_mb: 9, parallel: 2}, "
    "{user: ue2, kind: file, volume_mb: 1, start_s: 5}, {user: ue3, kind: bulk}, "
    "{user: ue4, kind: file, volume_mb: 1}]"
)


def test_a_user_is_finished_when_the_last_of_its_transfers_is():
    scenario = loading.load("testbed_wifi_lte", Overrides(settings=(TRAFFIC,)))
    assert expected(scenario) == {"users": {"ue1": 2, "ue2": 1, "ue4": 1}, "all": False}
    rows = [("ue1-1", 3.0), ("ue1-2", 8.5), ("ue2-1", 2.0), ("ue3-1", None), ("ue4-1", None)]
    connections = [
        {"id": name, "user": name.partition("-")[0], "completion_s": at} for name, at in rows
    ]
    assert finished({"connections": connections}, scenario) == [
        {"user": "ue2", "t": 7.0},  # 2 s after its start
        {"user": "ue1", "t": 8.5},
    ]
    assert finished({"connections": connections[:1]}, scenario) == []  # the second one goes on


def test_what_was_held_back_is_the_most_of_all_connections():
    rows = [{"receive_buffer_max_bytes": each} for each in (None, 2000, 5000)]
    assert held_back_kb({"connections": rows}) == 5
    assert held_back_kb({"connections": []}) is None


def test_repeats_give_intervals_and_changed_runs_are_none(runs, client):
    for seed in range(2, 7):
        testbed.finished(runs / f"seed{seed}", "duration_s=20", f"seed={seed}")
    testbed.finished(runs / "other", "duration_s=20", "seed=9", "topology.users.ue3.wifi_mbps=10")
    result = runs / "seed6" / "result.json"
    result.write_text(json.dumps(json.loads(result.read_text()) | {"flips": FLIPS}))
    found = summary(client, "plain")
    assert found["repeats"] == 5
    interval = found["intervals"]["throughput_mbps"]
    assert interval["n"] == 5
    assert interval["low"] < interval["mean"] < interval["high"]
    assert summary(client, "seed6")["repeats"] == 1


def test_a_run_is_compared_with_the_baseline_of_its_scenario(client):
    client.patch("/api/runs/plain", json={"tags": ["baseline"]})
    found = summary(client, "metered")["baseline"]
    plain, metered = (
        client.get(f"/api/runs/{name}").json["throughput_mbps"] for name in ("plain", "metered")
    )
    assert found["id"] == "plain"
    assert found["change_percent"] == pytest.approx(100 * (metered / plain - 1))
    assert summary(client, "plain")["is_baseline"]


def test_a_run_is_repeated_with_more_changes(runs, client):
    changes = [
        {"target": "strategy", "value": "meter_throttling", "at_s": 3},
        {"target": "cell.wifi1.ue3.rate_mbps", "value": 6},
    ]
    answer = client.post("/api/runs/plain/repeat", json={"changes": changes})
    assert answer.status_code == 201, answer.json
    path = f"/api/runs/{answer.json['id']}"
    until(lambda: client.get(path).json["status"] == "complete", 20)
    events = client.get(f"{path}/charts").json["events"]
    applied = [each["t"] for each in events if each["state"] == "applied"]
    assert applied == [0.0, 3.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "strategy", "value": "/tmp/mine.py"}, "mine.py"),
        ({"target": "cell.wifi1.ue9.rate_mbps", "value": 6}, "ue9"),
        ({"target": "cell.wifi1.ue3.rate_mbps", "value": -6}, "is not within"),
        ({"target": "cell.wifi1.ue3.rate_mbps", "value": 6, "at_s": -1}, "at_s"),
    ],
)
def test_a_run_is_not_repeated_with_a_change_that_it_would_refuse(runs, client, change, words):
    answer = client.post("/api/runs/plain/repeat", json={"changes": [change]})
    assert answer.status_code == 422, answer.json
    assert words in answer.json["error"]
    assert sorted(each.name for each in runs.iterdir() if each.is_dir()) == ["metered", "plain"]


def test_a_changed_run_is_repeated_with_its_changes_as_events(runs, client):
    result = runs / "plain" / "result.json"
    result.write_text(json.dumps(json.loads(result.read_text()) | {"flips": FLIPS}))
    for with_flips, wanted in ((False, []), (True, [2.0])):
        answer = client.post("/api/runs/plain/repeat", json={"with_flips": with_flips})
        assert answer.status_code == 201, answer.json
        path = f"/api/runs/{answer.json['id']}"
        doc = until(
            lambda path=path: (d := client.get(path).json)["status"] == "complete" and d, 20
        )
        assert (doc["seed"], doc["flips"]) == (1, [])
        events = client.get(f"{path}/charts").json["events"]
        flips = [each for each in events if each["state"] == "applied"]
        assert [each["t"] for each in flips] == wanted


CAPTURED = {
    "user": "ue2",
    "client": "10.2.0.2:40000",
    "server": "10.0.0.1:5001",
    "connection": "8a851ff8",
    "joins": True,
    "opened_s": -0.5,
    "joined_s": -0.45,
    "segments": 12,
    "retransmitted": 3,
    "reordered": 1,
    "prios": [[4.0, "ue2", True]],
    "resets": [[9.5, "srv1"]],
}


def test_what_captures_show_is_in_the_summary(runs, client):
    assert summary(client, "plain")["captured"] == []
    (runs / "plain" / "pcap").mkdir()
    report = runs / "plain" / "pcap" / "subflows.json"
    report.write_text(json.dumps([CAPTURED]))
    (found,) = summary(client, "plain")["captured"]
    assert found == CAPTURED | {"handshake_ms": pytest.approx(50)}
    report.write_text("[{}]")
    assert summary(client, "plain")["captured"] == []


def test_users_who_ask_for_little_are_left_out_of_the_fairness():
    rates = {"ue1": 9.0, "ue2": 9.6, "ue3": 0.1}
    result = {
        "users": {user: {"throughput_mbps": rate} for user, rate in rates.items()},
        "throughput_mbps": 18.7,
        "fairness": {"jain": 0.67},
        "connections": [],
    }
    kinds = {"ue1": ["bulk"], "ue2": ["file"], "ue3": ["call"]}
    text = verdict(result, (), kinds)
    assert "(Jain's fairness index 1.00; 1 is equal shares)" in text
    assert "Fairness is without ue3 (call)" in text
    assert "With them, it is 0.67" in text
    assert "index 0.67" in verdict(result)  # whose traffic is not known
