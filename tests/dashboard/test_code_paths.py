"""Over HTTP, strategies, topologies and congestion controls can only be named; files are
refused."""

from __future__ import annotations

import pytest
import yaml

from dashboard.app import create_app
from dashboard.runs import StartRequest, checked
from lab.errors import RequestError
from lab.scenario import code_paths, loading, yaml_text

START = {"scenario": "testbed_wifi_lte", "engine": "testbed"}


@pytest.mark.parametrize(
    "request_part",
    [
        {"strategy": "my/first_only.py"},
        {"strategy": "first_only.py"},
        {"strategy": "..\\first_only"},
        {"cc": "/home/me/scalable"},
        {"cc": "scalable.c"},
        {"scenario": "scenarios/two_paths.yaml"},
        {"set": {"strategy": "first_only.py"}},
        {"set": {"strategy.name": "my/first_only.py"}},
        {"set": {"strategy": {"name": "my/first_only"}}},
        {"set": {"topology.file": "doorway"}},
        {"set": {"topology": {"file": "doorway"}}},
        {"set": {"topology.kind": "doorway.PY"}},
        {"set": {"multipath.cc": "my/scalable.py"}},
        {"set": {"traffic": [{"user": "ue1", "cc": "scalable.py"}]}},
        {"set": {"events": [{"at_s": 1, "target": "strategy", "value": "my/first_only.py"}]}},
        {"params": {"cth": "my/threshold.py"}},
    ],
)
def test_a_path_is_refused_and_nothing_is_started(client, runs, request_part):
    answer = client.post("/api/runs", json=START | request_part)
    assert answer.status_code == 422
    assert "only names are accepted" in answer.json["error"]
    assert "--with DIR" in answer.json["error"]
    assert {path.name for path in runs.iterdir()} == {"plain", "metered"}


@pytest.mark.parametrize("target", ["strategy", "cc"])
def test_a_change_of_a_running_run_takes_no_path(client, running_run, target):
    change = {"target": target, "value": "my/own.py"}
    answer = client.post(f"/api/runs/{running_run}/flips", json=change)
    assert answer.status_code == 422
    assert "only names are accepted" in answer.json["error"]


def test_a_scenario_that_names_a_file_is_neither_loaded_nor_started_over_http(
    client, monkeypatch, tmp_path
):
    monkeypatch.setattr(loading, "FOLDER", tmp_path)
    (tmp_path / "own.yaml").write_text("name: own\ntopology: {file: doorway.py}\n")
    with pytest.raises(RequestError, match=r"topology\.file: 'doorway\.py'"):
        checked(StartRequest(scenario="own"))
    assert "doorway.py" in client.get("/api/scenarios").json[0]["error"]
    assert client.get("/").status_code == 200
    assert client.get("/scenarios/own").status_code == 422


def test_a_strategy_and_a_form_are_a_name():
    assert not code_paths.is_code_path("meter_throttling/improved")
    assert not code_paths.is_code_path("none/improved")  # refused later: there is no such form
    for path in ("none/../mine", "none/mine.py", "none/my/mine", "mine/improved", "/improved"):
        assert code_paths.is_code_path(path), path


def test_the_page_of_a_run_loads_no_file_that_its_scenario_names(client, runs):
    path = runs / "plain" / "scenario.yaml"
    scenario = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(scenario | {"topology": {"file": "doorway.py"}}))
    run = client.get("/api/runs/plain").json
    assert run["targets"] == []
    assert client.get("/runs/plain").status_code == 200
    assert client.get("/api/runs/plain/charts").status_code == 200


@pytest.mark.parametrize("name", loading.names())
def test_every_scenario_of_the_lab_can_be_started_and_names_no_code(name):
    loading.refuse_code_of_others(name, "start the run")
    found = [value for _, value in code_paths.code_paths_in(yaml_text.read(loading.find(name)))]
    assert not [value for value in found if value.endswith(code_paths.ENDINGS)]


@pytest.mark.parametrize(
    ("trace", "is_data"),
    [
        ("traces/mine.csv", True),
        ("traces/none.csv", False),
        ("../mine.csv", False),
        ("traces/mine.py", False),
        ("/etc/hostname", False),
    ],
)
@pytest.mark.parametrize("inside", ["", loading.FIELD])
def test_a_scenario_of_the_lab_may_name_data_in_its_folder(
    trace, is_data, inside, monkeypatch, tmp_path
):
    monkeypatch.setattr(loading, "FOLDER", tmp_path / "scenarios")
    folder = loading.FOLDER / inside
    (folder / "traces").mkdir(parents=True)
    for each in ("traces/mine.csv", "../mine.csv", "traces/mine.py"):
        (folder / each).write_text("t_s,rate_mbps\n0,5\n1,6\n")
    paths = [{"trace": trace}, {"rate_mbps": 5}]
    topology = {"kind": "parallel_paths", "paths": paths}
    scenario = {"name": "own", "title": "T", "topology": topology, "traffic": [{"user": "ue1"}]}
    (folder / "own.yaml").write_text(yaml.safe_dump(scenario))
    if is_data:
        assert checked(StartRequest(scenario="own")).network.users == ("ue1",)
        return
    with pytest.raises(RequestError, match="only names are accepted"):
        checked(StartRequest(scenario="own"))


def test_runs_started_here_get_the_extension_folders_of_the_server(runs, tmp_path):
    app = create_app({"RUNS": runs, "EXTENSION_FOLDERS": (str(tmp_path),)})
    argv = app.extensions["launcher"].command(["run", "two_paths"])
    assert argv[argv.index("--with") + 1] == str(tmp_path)
