"""A killed server loses no run: the runs continue, and the next server lists them all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from conftest import HERE, until

from lab.results.store import Store

pytestmark = pytest.mark.whole
ROOT = HERE.parents[1]
SERVER = """
import sys, pathlib
from dashboard.app import create_app
from dashboard.base.serving import server
from dashboard.serve import listen
sock = listen(None)
command = [sys.executable, sys.argv[2]]
app = create_app({"RUNS": pathlib.Path(sys.argv[1]), "TESTING": True, "COMMAND": command})
import testbed
testbed.register()
print(sock.getsockname()[1], flush=True)
server(app, sock).run()
"""
START = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """Address of a server process, which is killed at the end."""
    argv = [sys.executable, "-c", SERVER, str(runs), str(HERE / "testbed.py")]
    paths = os.pathsep.join((str(ROOT), str(HERE)))
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
    ) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def get_json(url: str, body: dict | None = None):
    headers = {"Content-Type": "application/json"}
    with closing(
        urlopen(Request(url, json.dumps(body).encode() if body else None, headers), timeout=20)
    ) as answer:
        return json.load(answer)


def test_a_killed_server_loses_nothing(runs):
    rng = random.Random(3)
    started = []
    for _ in range(3):
        with served(runs) as address:
            listed = {run["id"]: run["status"] for run in get_json(f"{address}/api/runs")}
            assert listed == {"plain": "complete", "metered": "complete"} | dict.fromkeys(
                started, "running"
            )
            started.append(get_json(f"{address}/api/runs", START)["id"])
            time.sleep(rng.uniform(0, 0.3))
    store = Store(runs)
    store.refresh()
    pids = [json.loads((runs / each / "manifest.json").read_text())["pid"] for each in started]
    for pid, end in zip(pids, (signal.SIGINT, signal.SIGKILL, signal.SIGINT), strict=True):
        os.kill(pid, end)

    def statuses() -> list[str]:
        store.refresh()
        return [each["status"] for name in started for each in store.all() if each["id"] == name]

    until(lambda: statuses() == ["interrupted", "cut", "interrupted"])
