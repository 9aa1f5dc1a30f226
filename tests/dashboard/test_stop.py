"""Runs whose process is suspended: shown, counted, and ended by Stop, also after a restart."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest
from conftest import HERE, until

from dashboard.app import create_app
from dashboard.base.errors import Problem
from dashboard.runs import Launcher
from lab.results.store import Store
from lab.run import process, stopping

SLOW = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 1, "duration_s": 600}


def suspend(runs, run_id):
    """Suspend the process of a run as SIGSTOP does. Return its manifest."""
    path = runs / run_id / "manifest.json"
    manifest = json.loads(until(lambda: path.exists() and path.read_text()))
    until(lambda: (runs / run_id / "samples.jsonl").stat().st_size)
    assert process.send(manifest, signal.SIGSTOP)
    until(lambda: process.is_suspended(manifest))
    return manifest


@pytest.fixture
def restarted(runs):
    """A client of the server that is started after the first one was killed."""
    command = [sys.executable, str(HERE / "testbed.py")]
    again = create_app({"RUNS": runs, "TESTING": True, "COMMAND": command, "STARTED_AT_ONCE": 1})
    yield again.test_client()
    again.extensions["launcher"].stop_all()


def test_a_suspended_run_is_shown_and_ends_with_its_results(client, running_run, runs, restarted):
    manifest = suspend(runs, running_run)
    for page in (client, restarted):
        state = page.get(f"/api/runs/{running_run}").json["state"]
        assert (state["status"], state["over"]) == ("running", False)
        assert f"kill -CONT {manifest['pid']}" in state["suspended"]
    refused = restarted.post("/api/runs", json=SLOW)
    assert refused.status_code == 429, refused.json
    assert "1 runs are running already" in refused.json["error"]
    assert restarted.post(f"/api/runs/{running_run}/stop").status_code == 202
    state = until(
        lambda: (now := restarted.get(f"/api/runs/{running_run}").json["state"])["over"] and now
    )
    assert (state["status"], state["suspended"]) == ("interrupted", "")
    assert restarted.post("/api/runs", json=SLOW).status_code == 201


def test_the_page_says_that_a_run_was_killed(client, running_run, runs, monkeypatch):
    monkeypatch.setattr(stopping, "ANSWERS_WITHIN_S", 0.0)
    monkeypatch.setattr(stopping, "ENDS_WITHIN_S", 0.0)
    suspend(runs, running_run)
    real = process.send
    deaf = {signal.SIGCONT, signal.SIGINT}
    monkeypatch.setattr(process, "send", lambda of, number: number in deaf or real(of, number))
    assert client.post(f"/api/runs/{running_run}/stop").status_code == 202
    until(lambda: client.get(f"/api/runs/{running_run}").json["state"]["error"])
    state = client.get(f"/api/runs/{running_run}").json["state"]
    assert (state["status"], "was killed" in state["error"]) == ("cut", True)
    happened = client.get(f"/api/runs/{running_run}/charts").json["events"]
    assert any("was killed" in each["title"] + each["reason"] for each in happened)


def test_a_run_of_another_user_is_named_with_the_command(client, running_run, runs, monkeypatch):
    manifest = suspend(runs, running_run)
    real = process.send

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(process, "send", refuse)
    answer = client.post(f"/api/runs/{running_run}/stop")
    assert answer.status_code == 409
    assert f"sudo kill -CONT {manifest['pid']}" in answer.json["error"]
    real(manifest, signal.SIGCONT)


def test_a_suspended_run_of_a_batch_is_ended(client, runs):
    batch = client.post("/api/batches", json={"start": SLOW, "repeats": 9}).json["id"]
    first = until(lambda: client.get("/api/batches").json[0]["runs"])[0]
    suspend(runs, first)
    assert client.post(f"/api/batches/{batch}/stop").status_code == 202
    until(lambda: client.get("/api/batches").json[0]["over"], 30)
    assert (runs / first / "result.json").exists()


def test_a_damaged_manifest_names_no_process(client, running_run, runs):
    manifest = json.loads((runs / running_run / "manifest.json").read_text())
    for damaged in ("{", json.dumps(manifest | {"pid": "1"}), json.dumps(manifest | {"pid": None})):
        (runs / running_run / "manifest.json").write_text(damaged)
        assert client.get(f"/api/runs/{running_run}").json["status"] == "cut"
    (runs / running_run / "manifest.json").write_text(json.dumps(manifest))
    assert client.get(f"/api/runs/{running_run}").json["status"] == "running"
    os.kill(manifest["pid"], signal.SIGINT)


@pytest.mark.long
def test_runs_that_start_while_the_dashboard_ends_are_ended_or_refused(tmp_path):
    launcher = Launcher(Store(tmp_path / "data"), ["sleep"], most=9)
    started, refused = [], []

    def start_many():
        while not refused and len(started) < 200:
            try:
                started.append(launcher.launch(["60"], tmp_path / str(len(started))))
            except Problem as problem:
                refused.append(problem.status)

    thread = threading.Thread(target=start_many)
    thread.start()
    until(lambda: started)
    launcher.stop_all()
    thread.join(10)
    assert refused == [503]
    assert all(child.process.poll() is not None for child in started)
