"""An app with two finished runs in a temporary folder."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import testbed  # noqa: E402

from dashboard.app import create_app  # noqa: E402
from dashboard.base.serving import server  # noqa: E402
from dashboard.serve import listen  # noqa: E402
from lab.scenario.engine_table import ENGINES  # noqa: E402


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    """Add the engine `testbed` to the table, as the child processes do."""
    for name in list(ENGINES):
        monkeypatch.setitem(ENGINES, name, ENGINES[name])
    testbed.register()
    yield
    ENGINES.pop("testbed", None)


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory):
    runs = tmp_path_factory.mktemp("finished_runs") / "runs"
    testbed.finished(runs / "plain", "duration_s=20")
    testbed.finished(runs / "metered", "duration_s=20", strategy="meter_throttling")
    return runs


@pytest.fixture
def runs(finished_runs, tmp_path):
    import shutil

    shutil.copytree(finished_runs, tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def app(runs):
    app = create_app(
        {"RUNS": runs, "TESTING": True, "COMMAND": [sys.executable, str(HERE / "testbed.py")]}
    )
    yield app
    app.extensions["launcher"].stop_all()


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def running_run(client):
    """ID of a run that goes on until it is stopped."""
    request = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}
    answer = client.post("/api/runs", json=request)
    assert answer.status_code == 201, answer.json
    return answer.json["id"]


@pytest.fixture
def address(app):
    """Address of the app on its real server."""
    sock = listen(None)
    waitress = server(app, sock)
    thread = threading.Thread(target=waitress.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    waitress.close()
    waitress.task_dispatcher.shutdown()
    thread.join(5)


def until(condition, seconds=60.0):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s")
