"""Batches of strategies x values x seeds, started from the page; each has one row with its
progress."""

from __future__ import annotations

import sys
import time

import pytest
import testbed
from click.testing import CliRunner
from conftest import HERE, until

from dashboard.app import create_app
from dashboard.base.errors import Problem
from dashboard.batch_plan import BatchRequest, Jobs, asked
from dashboard.runs import StartRequest, batch_of
from dashboard.scenario_pages import choices
from lab.batch import sweep
from lab.batch.request import checked
from lab.cli.commands import cli
from lab.scenario.loading import experiment

START = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": "max", "duration_s": 5}


def request(**fields):
    return BatchRequest(start=StartRequest(**START, strategy="meter_throttling"), **fields)


def varied(key, values):
    return {"key": key, "values": values}


def test_strategies_values_and_seeds_are_combined():
    found = asked(
        request(
            strategies=("none", "meter_throttling"),
            repeats=3,
            vary=[varied("strategy.cth", [0.3, 0.6]), varied("duration_s", "5..7, 10")],
        )
    )
    settings = list(found.settings())
    assert (found.count, len(settings)) == (48, 16)
    assert {(each.strategy, *each.point) for each in settings} == {
        (strategy, f"strategy.cth={cth}", f"duration_s={seconds}")
        for strategy in ("none", "meter_throttling")
        for cth in (0.3, 0.6)
        for seconds in (5, 6, 7, 10)
    }
    assert {each.request.repeat for each in settings} == {3}


def test_one_varied_key_needs_no_list():
    vary = varied("strategy.cth", [0.3, "lia", True, None])
    one, listed = asked(request(vary=vary)), asked(request(vary=[vary]))
    assert one == listed
    assert one.points == tuple((f"strategy.cth={each}",) for each in ("0.3", "lia", "true", "null"))


def test_parameters_belong_to_their_own_strategy():
    start = StartRequest(**START, strategy="meter_throttling", params={"cth": 0.5}, seed=7)
    found = asked(BatchRequest(start=start, strategies=("none", "meter_throttling")))
    assert [each.request.settings for each in found.settings()] == [
        (),
        ("strategy.params.cth=0.5",),
    ]


def test_each_run_has_the_folder_of_its_number(tmp_path):
    start = StartRequest(scenario="two_paths", duration_s=5, seed=7)
    vary = varied("topology.paths.1.rate_mbps", "10,20")
    found = asked(BatchRequest(start=start, repeats=2, vary=vary, keep="results"))
    jobs = Jobs(found, tmp_path, "batch-1")
    assert [(each.out.name, each.scenario.seed, each.keep) for each in jobs] == [
        ("batch-1.0001", 7, "results"),
        ("batch-1.0002", 8, "results"),
        ("batch-1.0003", 7, "results"),
        ("batch-1.0004", 8, "results"),
    ]
    assert [each.scenario.topology.params.paths[0].rate_mbps for each in jobs] == [10, 10, 20, 20]
    assert batch_of(jobs[3].out.name) == ("batch-1", 3)
    assert [batch_of(each) for each in ("two_paths-1", "a.b", ".")] == [("", -1)] * 3


SWEEP = """
scenario: two_paths
strategies: [none, loss_aware]
duration_s: 5
repeat: 2
seed: 3
set: {multipath.cc: lia}
grid: {topology.paths.1.loss: [0, 0.01], topology.paths.2.loss: 0.01..0.03..0.01}
random: {samples: 4, keys: {topology.paths.2.delay_ms: {from: 10, to: 50}}}
responses: [users.ue1.throughput_mbps]
keep: results
from_s: 1
"""


def test_a_sweep_file_is_the_batch_of_the_command_line(tmp_path):
    text = SWEEP.replace("keep: results\n", "")
    found = asked(BatchRequest(sweep=text))
    (tmp_path / "sweep.yaml").write_text(text)
    wanted = sweep.read(tmp_path / "sweep.yaml")
    same = checked(sweep.request(wanted, "sim", False, tmp_path / "out", None))
    jobs = Jobs(found, tmp_path, "batch-1")
    assert [experiment(each.scenario, "sim") for each in jobs] == [
        experiment(each.scenario, "sim") for each in same
    ]
    assert found.count == len(jobs) == 10 * 2 * 2
    assert found.metric == "users.ue1.throughput_mbps"
    assert "from_s" in found.note


def test_too_many_runs_and_settings_are_refused():
    with pytest.raises(Problem, match="start 3000 runs: at most 1000"):
        asked(request(repeats=1000, strategies=("none", "disjoint", "optimum")))
    with pytest.raises(Problem, match="they have 500 settings"):
        asked(request(vary=varied("duration_s", "1..500")))


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"vary": [varied("duration_s", "5,6"), varied("strategy.cth", "6..5")]}, "vary.1", "START..END"),
        ({"vary": varied("duration_s", "5,5")}, "vary.0", "--vary duration_s: the same value"),
        ({"vary": varied("seed", "1,2")}, "vary.0", "use repeat"),
        ({"vary": varied("duration_s", "")}, "vary.0", "write key.path=a,b,c"),
        ({"vary": [varied("duration_s", "5")] * 2}, "vary.1", "it is varied twice"),
        ({"vary": [varied("duration_s", "5"), varied("strategy.cth", "0.5,7")]}, "vary.1", "cth"),
        ({"vary": varied("topology.nope", "1,2")}, "vary.0", "nope"),
        ({"strategies": ["none", "disjoint", "none"]}, "strategies", "twice"),
        ({"strategies": ["none", "nope"]}, "strategies", "'nope' is unknown"),
        ({"start": None, "sweep": "grid: {a: 1}"}, "sweep", "sweep file: scenario is missing"),
        ({"start": None, "sweep": "scenario: [two"}, "sweep", "line 1"),
        ({"start": None, "sweep": "- 1"}, "sweep", "write keys and values"),
        ({"start": None, "sweep": "scenario: two_paths\nresponses: [nope]"}, "sweep", "no number 'nope'"),
        ({"start": None, "sweep": "scenario: two_paths\ngrid: {topology.nope: [1]}"}, "sweep", "nope"),
        ({"start": None}, None, "the text of a sweep file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_beside_its_field(client, wrong, field, said):
    start = START | {"strategy": "meter_throttling"}
    for where in ("check", "estimate"):
        answer = client.post(f"/api/batches/{where}", json={"start": start} | wrong)
        assert answer.status_code == 422, answer.json
        assert answer.json.get("field") == field, answer.json
        assert said in answer.json["error"]
    assert client.post("/api/batches", json={"start": start} | wrong).json == answer.json


def test_the_text_of_an_error_is_that_of_the_command_line(client):
    vary = ["topology.paths.1.delay_ms=10,-1", "duration_s=5,6"]
    argv = ["run", "two_paths", "--vary", vary[0], "--vary", vary[1], "--out", "x"]
    said = CliRunner().invoke(cli, argv).stderr
    keys = [dict(zip(("key", "values"), each.split("="), strict=True)) for each in vary]
    body = {"start": {"scenario": "two_paths"}, "vary": keys}
    answer = client.post("/api/batches/check", json=body)
    assert (f"error: {answer.json['error']}\n", answer.json["field"]) == (said, "vary.0")


@pytest.mark.parametrize(
    "wrong",
    [
        {"vary": varied("topology.file", "a.py, b")},
        {"vary": varied("topology.mininet", ["b"])},
        {"vary": varied("strategy", "none, x/mine.py")},
        {"strategies": ["mine.py"]},
        {"start": START | {"scenario": "/etc/x.yaml"}},
        {"start": None, "sweep": "scenario: ../x.yaml"},
        {"start": None, "sweep": "scenario: two_paths\nstrategies: [a/mine.py]"},
        {"start": None, "sweep": "scenario: two_paths\ngrid: {multipath.cc: [a.c]}"},
        {"start": None, "sweep": "scenario: two_paths\npoints: [{topology: {file: a.py}}]"},
        {"start": None, "sweep": "scenario: two_paths\nset: {topology: {file: a.py}}"},
    ],
)
def test_code_files_are_refused(client, wrong):
    answer = client.post("/api/batches/check", json={"start": START} | wrong)
    assert answer.status_code == 422, answer.json
    assert "over HTTP only names are accepted" in answer.json["error"]


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


def row_of(client, batch):
    return next(row for row in client.get("/api/batches").json if row["id"] == batch)


def over(client, batch, seconds=60):
    return until(lambda: (row := row_of(client, batch))["over"] and row, seconds)


def test_a_failed_run_is_named_and_made_again_alone(client, runs):
    (runs.parent / testbed.FAILS).touch()
    start = START | {"seed": testbed.FAILING_SEED - 1}
    vary = varied("strategy.cth", "0.3,0.6")
    body = {"start": start, "strategies": ["meter_throttling"], "repeats": 2, "vary": vary}
    batch = client.post("/api/batches", json=body).json["id"]
    row = over(client, batch)
    assert (row["total"], row["done"], row["left"], row["errors"]) == (4, 4, 2, [])
    assert sorted((each["name"], each["id"]) for each in row["failed"]) == [
        ("meter_throttling, strategy.cth=0.3, run 2 of 2", f"{batch}.0002"),
        ("meter_throttling, strategy.cth=0.6, run 2 of 2", f"{batch}.0004"),
    ]
    assert all("no power" in each["error"] for each in row["failed"])
    (runs.parent / testbed.FAILS).unlink()
    whole = [(runs / f"{batch}.000{n}" / "result.json").stat().st_mtime_ns for n in (1, 3)]
    assert client.post(f"/api/batches/{batch}/continue").status_code == 202
    row = over(client, batch)
    assert (row["left"], row["failed"], len(row["runs"])) == (0, [], 4)
    again = [(runs / f"{batch}.000{n}" / "result.json").stat().st_mtime_ns for n in (1, 3)]
    assert again == whole
    keys = client.get(f"/api/compare/grid?batch={batch}").json["keys"]
    assert list(keys) == ["strategy.params.cth"]


def test_a_stopped_batch_continues_after_a_restart(client, app, runs):
    slow = START | {"speed": 1, "duration_s": 2}
    batch = client.post("/api/batches", json={"start": slow, "repeats": 5}).json["id"]
    until(lambda: row_of(client, batch)["runs"])
    again = client.post(f"/api/batches/{batch}/continue")
    assert (again.status_code, "it is going on" in again.json["error"]) == (409, True)
    client.post(f"/api/batches/{batch}/stop")
    assert over(client, batch)["left"] > 0
    app.extensions["launcher"].stop_all()
    command = [sys.executable, str(HERE / "testbed.py")]
    restarted = create_app({"RUNS": runs, "TESTING": True, "COMMAND": command}).test_client()
    assert row_of(restarted, batch)["can_continue"]
    assert restarted.post(f"/api/batches/{batch}/continue").status_code == 202
    row = over(restarted, batch)
    assert (row["total"], row["done"], row["left"]) == (5, 5, 0)
    assert row["title"].endswith("(5 runs)")
    assert restarted.post("/api/batches/nope/continue").status_code == 404


def test_batches_take_turns_and_leave_room_for_other_runs(client, app, runs):
    slow = START | {"speed": 1, "duration_s": 600}
    first = client.post("/api/batches", json={"start": slow, "repeats": 9}).json["id"]
    until(lambda: list(runs.glob(f"{first}.*/manifest.json")))
    second = client.post("/api/batches", json={"start": START, "repeats": 2}).json["id"]
    assert (row_of(client, second)["is_waiting"], row_of(client, second)["runs"]) == (True, [])
    counted = app.extensions["launcher"]._running()
    assert counted == app.extensions["batches"]._batches[first].child.runs  # not counted twice
    client.post(f"/api/batches/{first}/stop")
    assert over(client, second)["left"] == 0


def test_the_time_and_disk_of_a_batch_are_estimated_as_by_a_dry_run(client, runs):
    body = {"start": START, "repeats": 6, "vary": varied("strategy.cth", "0.3,0.6")}
    answer = client.post("/api/batches/estimate", json=body | {"strategies": ["meter_throttling"]})
    assert answer.status_code == 200, answer.json
    found = answer.json
    assert (found["runs"], found["left"]) == (12, 12)
    assert found["text"].startswith("12 runs, 12 to make")
    assert found["disk_bytes"] > 0
    assert not list(runs.glob("batch-*"))


def test_a_batch_without_a_readable_file_is_its_runs(runs):
    for n in (1, 2):
        testbed.finished(runs / f"batch-20261101-120000-1.000{n}", f"seed={n}")
    (runs.parent / "batches").mkdir()
    (runs.parent / "batches" / "batch-20261101-120000-1.json").write_text("{")
    again = create_app({"RUNS": runs, "TESTING": True}).test_client()
    row = row_of(again, "batch-20261101-120000-1")
    assert (row["title"], row["can_continue"]) == ("testbed_wifi_lte: 2 runs", False)
    assert (row["left"], row["over"]) == (0, True)


@pytest.mark.parametrize("name", ["two_paths", "testbed_wifi_lte", "thirty_users", "shared_pipe"])
def test_the_keys_that_the_form_lists_can_be_varied(name):
    """Each accepts its present value, so its path is right."""
    known = {each["key"]: each for each in choices(name)["keys"]}
    assert {"duration_s", "multipath.cc", "multipath.receive_buffer_kb"} <= set(known)
    tried = [key for key in known if key.startswith(("topology.", "traffic."))][::4]
    for key in [*tried, "duration_s", "multipath.cc"]:
        if (value := known[key]["value"]) is not None:
            vary = varied(key, [value])
            plan = asked(BatchRequest(start=StartRequest(scenario=name), vary=vary))
            (job,) = Jobs(plan, HERE, "batch-1")
            assert job.scenario.name == name


def test_the_keys_of_lists_have_units_and_bounds():
    (found,) = [
        each
        for each in choices("testbed_wifi_lte")["keys"]
        if each["key"].endswith("ue3.wifi_mbps")
    ]
    assert (found["key"], found["unit"]) == ("topology.users.ue3.wifi_mbps", "Mb/s")
    assert (found["minimum"], found["maximum"], found["value"]) == (0, 10_000, 19.1)
