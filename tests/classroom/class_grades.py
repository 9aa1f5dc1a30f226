"""Grades of a lesson: those that students must have, and those in a class's files."""

from __future__ import annotations

import csv
import io

from class_lesson import POINTS, TEXTS

from lab.classroom import grades


def expected(people):
    """Sorted (name, points) of each person."""
    lines = []
    for student, manner in people:
        points = POINTS[manner] + (2 if manner in TEXTS else 0)
        lines += [(name, str(points)) for name in student.names]
    return sorted(lines)


def grade_texts(app):
    """Give two points to each text, as the instructor."""
    client = app.test_client()
    client.get(f"/instructor?key={app.extensions['room'].folder.settings.instructor_key}")
    texts = client.get("/api/instructor/texts").json
    for each in texts:
        body = {key: each[key] for key in ("seat", "worksheet", "step")} | {"points": 2}
        assert client.post("/api/instructor/grades", json=body).status_code == 200
    return client, len(texts)


def table(class_folder):
    """Sorted (name, total) of Moodle's table, made from the files alone."""
    state = grades.read_record(class_folder).state
    seats = {seat.id: seat.names for seat in state.seats.values()}
    handed_in = grades.submissions(class_folder, state)
    text = grades.to_csv("moodle", class_folder.worksheets, handed_in, seats)
    return sorted((row[0], row[-1]) for row in list(csv.reader(io.StringIO(text)))[1:])
