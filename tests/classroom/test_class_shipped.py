"""Students do a worksheet that comes with the lab: over HTTP, with real simulated runs."""

from __future__ import annotations

import json
import time

import pytest
from class_browser import served
from class_lesson import Student, hold
from click.testing import CliRunner

from dashboard.classroom.app import create_app
from lab.classroom import folder, grades
from lab.classroom.room import Room
from lab.cli.commands import cli
from lab.worksheets import loading, trial
from lab.worksheets.schema import Check, Predict, Question, Run

NAME = "collisions"  # each of its seats has another seed
SHEET = loading.load(NAME)
EACH = 3  # students for each attempt


@pytest.fixture
def clock():
    return time.time


@pytest.fixture
def class_folder(tmp_path):
    return folder.make("test", [NAME], classes=tmp_path / "classes")


ATTEMPTS = trial.attempts(SHEET)
FAILS = {each.name: set(each.fails) for each in SHEET.wrong}


def manner(name):
    """A manner for students who work as in the attempt `name`.

    Exactly the steps that the worksheet lists must fail, and show their hint after the second wrong
    try.
    """
    attempt, fails = ATTEMPTS[name], FAILS.get(name, set())

    def work(student):
        student.join()
        student.do("open")
        for task in SHEET.tasks:
            if isinstance(task, Run):
                student.run(task.id, attempt.choices.get(task.id))
            else:
                answer(student, task)

    def answer(student, task):
        checks = isinstance(task, Check)
        path = f"{'checks' if checks else 'answers'}/{task.id}"
        body = {} if checks else {"value": attempt.answers[task.id]}
        found = student.do(path, body)["step"]
        if isinstance(task, Predict):
            return
        failed = task.id in fails
        assert (found["state"], found["hint"]) == ("failed" if failed else "passed", None), task.id
        assert found["why"] == (None if failed else task.why)
        if failed and isinstance(task, Question):
            assert student.do(path, body)["step"]["hint"] == task.hint

    return work


def points_of(name):
    tasks = [each for each in SHEET.tasks if not isinstance(each, Run)]
    return sum(each.points for each in tasks if each.id not in FAILS.get(name, ()))


@pytest.mark.long
@pytest.mark.usefixtures("one_version")
def test_students_do_a_shipped_worksheet_and_the_grades_are_the_same_again(
    class_folder, monkeypatch
):
    people = {f"Student {n}": name for n, name in enumerate(list(ATTEMPTS) * EACH)}
    room = Room(class_folder)
    app = create_app(room, {"TESTING": True, "SPEED": 1000.0})
    code = class_folder.settings.code
    try:
        with served(app) as address:
            room_of = [
                (Student(address, code, (each,), worksheet=NAME), manner(name))
                for each, name in people.items()
            ]
            assert hold(address, code, room_of) == []
    finally:
        app.extensions["conductor"].stop()
        room.close()
    state = grades.read_record(class_folder).state
    for submission in grades.submissions(class_folder, state):
        assert submission.points == points_of(people[submission.people[0]]), submission
    made = [json.loads(each.read_text()) for each in class_folder.runs.glob("*/manifest.json")]
    assert len(made) == 2 * len(people)
    assert len({each["seed"] for each in made}) > 1
    monkeypatch.setattr(folder, "CLASSES", class_folder.path.parent)
    done = CliRunner().invoke(cli, ["grade", "test", "--again", "--repeat-runs"])
    assert done.exit_code == 0, done.output
    assert "0 differences" in done.output
