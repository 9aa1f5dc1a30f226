"""Fixtures: a class with one small worksheet, and runs that are copies of a finished one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from clients import join  # noqa: E402
from fake_runs import FAKE, template  # noqa: E402

from dashboard.classroom import create_app  # noqa: E402
from lab.classroom import folder  # noqa: E402
from lab.classroom.door import Newcomer  # noqa: E402
from lab.classroom.room import Room  # noqa: E402

SHEET = """
title: Two paths
goals: [Say what a second path is good for.]
minutes: 20
steps:
  - text: "## Two paths"
    drawing: two_paths
  - predict: {id: guess, ask: "How much?", number: {unit: Mb/s, maximum: 40}}
  - run:
      id: both
      scenario: two_paths
      duration_s: 10
      settings: {topology.paths.1.delay_ms: {variant: [10, 20, 30]}}
      choose: {multipath.server_enabled: {choices: [true, false]}}
      flips: [link.path1.loss]
  - check:
      id: enough
      run: both
      that: result(throughput_mbps) > 9000.125
      hint: the-hint-of-the-check
      why: the-reason-of-the-check
  - question:
      id: cause
      ask: Why?
      choice: [one, two, three]
      answer: two
      points: 2
      hint: the-hint-of-the-question
      why: the-reason-of-the-question
  - question:
      id: rate
      ask: How much was it?
      number: {answer: result(throughput_mbps) + 4321.0625, tolerance: 0.5, run: both}
      hint: the-hint-of-the-number
      why: the-reason-of-the-number
  - question: {id: words, ask: "In your words?", text: true, points: 3}
  - run: {id: shown, scenario: two_paths, engine: mininet, duration_s: 5, by: instructor}
solution:
  answers: {guess: 7, cause: two, rate: 1234.5625, words: the-words-of-the-solution}
wrong:
  - {name: the-name-of-a-mistake, answers: {cause: one}, fails: [cause]}
"""


class Clock:
    """Return a time that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SHEET)
    return path


@pytest.fixture
def class_folder(tmp_path, sheet):
    return folder.make("test", [str(sheet)], classes=tmp_path / "classes")


@pytest.fixture
def room(class_folder, clock):
    found = Room(class_folder, clock)
    yield found
    found.close()


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    return template(tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def app(room, finished_run, monkeypatch):
    monkeypatch.setenv("FAKE_RUN", str(finished_run))
    app = create_app(room, {"TESTING": True, "COMMAND": [sys.executable, "-S", str(FAKE)]})
    yield app
    app.extensions["conductor"].stop()


@pytest.fixture
def seat(room):
    """Return a seat that has opened the worksheet."""
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer("Ada")])
    room.open(seat, "small")
    return seat


@pytest.fixture
def ada(app):
    client = join(app, "Ada")
    assert client.post("/api/class/worksheets/small/open", json={}).status_code == 200
    return client


@pytest.fixture
def bo(app):
    return join(app, "Bo")


@pytest.fixture
def instructor(app):
    client = app.test_client()
    key = app.extensions["room"].folder.settings.instructor_key
    answer = client.get(f"/instructor?key={key}")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/instructor")
    return client
