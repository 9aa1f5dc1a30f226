"""Over HTTP only names of strategies, topologies and congestion controls are accepted, no files."""

from __future__ import annotations

import pytest

from dashboard import code_paths, create_app
from dashboard.errors import Problem
from dashboard.runs import StartRequest, checked
from lab.scenario import loading

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


def test_a_scenario_file_that_names_a_file_is_not_started_over_http(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "FOLDER", tmp_path)
    (tmp_path / "own.yaml").write_text("name: own\ntopology: {file: doorway.py}\n")
    with pytest.raises(Problem, match=r"topology\.file: 'doorway\.py'"):
        checked(StartRequest(scenario="own"))


@pytest.mark.parametrize("name", loading.names())
def test_no_scenario_of_the_lab_names_a_file(name):
    text = loading.find(name)
    assert list(code_paths.find(loading.checking.read(text))) == []


def test_runs_started_here_get_the_extension_folders_of_the_server(runs, tmp_path):
    app = create_app({"RUNS": runs, "EXTENSION_FOLDERS": (str(tmp_path),)})
    argv = app.extensions["launcher"]._argv(StartRequest(scenario="two_paths"), runs / "new")
    assert argv[argv.index("--with") + 1] == str(tmp_path)
