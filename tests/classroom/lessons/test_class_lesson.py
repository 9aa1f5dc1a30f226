"""A lesson held by a script: students of all manners work at the same time, and their grades are as
expected."""

from __future__ import annotations

import pytest
from class_browser import served
from class_grades import expected, grade_texts, table
from class_lesson import POINTS, TEXTS, hold, room_of
from click.testing import CliRunner

from dashboard.classroom.app import create_app
from lab.classroom import folder
from lab.classroom.room import Room
from lab.cli.commands import cli


def a_lesson(app, class_folder, count, think_s=0.0):
    """Run a lesson, and compare grades and the instructor's table with what is expected."""
    code = class_folder.settings.code
    with served(app) as address:
        people = room_of(address, code, count, think_s)
        assert hold(address, code, people) == []
    client, texts = grade_texts(app)
    assert texts == sum(manner in TEXTS for _, manner in people)
    assert table(class_folder) == expected(people)
    seats = client.get("/api/instructor/class").json["grid"]["seats"]
    shown = {" and ".join(each["people"]): each for each in seats}
    for student, manner in people:
        seat = shown[" and ".join(student.names)]
        assert seat["points"] == POINTS[manner] + (2 if manner in TEXTS else 0)
        assert seat["running"] is None
        done = [each for each in seat["cells"]["small"].values() if each in ("passed", "saved")]
        steps = 6 if manner in TEXTS else {3: 4, 2: 1, 1: 1}[POINTS[manner]]
        assert len(done) == steps, (manner, seat)


def test_students_of_all_manners_get_their_points(app, class_folder):
    a_lesson(app, class_folder, len(POINTS))


@pytest.mark.long
@pytest.mark.usefixtures("one_version")
def test_thirty_students_with_real_runs_and_the_same_grades_again(class_folder, monkeypatch):
    room = Room(class_folder)
    app = create_app(room, {"TESTING": True, "SPEED": 1000.0})
    try:
        a_lesson(app, class_folder, 30, think_s=0.3)
    finally:
        app.extensions["conductor"].stop()
        room.close()
    monkeypatch.setattr(folder, "CLASSES", class_folder.path.parent)
    done = CliRunner().invoke(cli, ["grade", "test", "--again", "--repeat-runs"])
    assert done.exit_code == 0, done.output
    assert "0 differences" in done.output
