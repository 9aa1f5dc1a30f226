"""A plugin of pytest for `torture mutate`.

With MUTATE_RECORD, a file with {file of tests: folder}, each test has a file in its folder with the
lines that it reaches, and tests.jsonl there lists [test, outcome, seconds] of the parts of each
test. What its fixtures take counts as 0 s: the first test waits for what all of them need, as the
compiler. With MUTATE_TESTS, a file with {test: its longest time in seconds}, only these tests run,
in this order, and one that takes longer ends pytest with SIGALRM; the name of one that fails is
written into the file MUTATE_FAILED.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from torture.reached import Recorder


def _table(variable: str) -> dict[str, Any]:
    file = os.environ.get(variable)
    return json.loads(Path(file).read_text()) if file else {}


RECORDER = Recorder(os.getcwd())
FOLDERS = _table("MUTATE_RECORD")
LIMITS_S = _table("MUTATE_TESTS")


def lines_file(folder: Path | str, test: str) -> Path:
    return Path(folder) / hashlib.sha256(test.encode()).hexdigest()[:20]


def pytest_collection_modifyitems(items):
    if LIMITS_S:
        order = {test: n for n, test in enumerate(LIMITS_S)}
        chosen = [each for each in items if each.nodeid in order]
        items[:] = sorted(chosen, key=lambda each: order[each.nodeid])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if folder := FOLDERS.get(item.nodeid.partition("::")[0]):
        RECORDER.begin(str(lines_file(folder, item.nodeid)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if limit_s := LIMITS_S.get(item.nodeid):
        signal.setitimer(signal.ITIMER_REAL, limit_s)


def pytest_runtest_teardown():
    signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_runtest_logreport(report):
    if LIMITS_S and report.failed:
        Path(os.environ["MUTATE_FAILED"]).write_text(report.nodeid)
    folder = FOLDERS.get(report.nodeid.partition("::")[0])
    if folder:
        row = [report.nodeid, report.outcome, report.duration if report.when == "call" else 0]
        with (Path(folder) / "tests.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
