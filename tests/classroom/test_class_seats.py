"""Seats that are merged and removed, teams, and worksheets that are added during a class."""

from __future__ import annotations

import pytest
from class_clients import a_run, do, join, work_off
from class_fakes import SHEET
from test_class_room import NO_CHECK

from lab.classroom import folder, grades, views
from lab.classroom.door import MOST_PEOPLE, Newcomer
from lab.classroom.lesson import NotNow, Place, Unknown
from lab.classroom.queue import Load
from lab.classroom.room import Room
from lab.errors import RequestError

OTHER = SHEET.replace("title: Two paths", "title: Two more paths")


def joined(room, *names):
    return room.join("here", room.folder.settings.code, [Newcomer(each) for each in names])


def points(room):
    record = grades.read_record(room.folder)
    return {each.seat: each.points for each in grades.submissions(room.folder, record.state)}


def rows(room):
    shown = views.grid(room.lesson, room.queue, (), Load(0.0, 2, 0), room.clock())["seats"]
    return {each["seat"]: each["people"] for each in shown}


@pytest.mark.parametrize("size", [1, 3, MOST_PEOPLE])
def test_a_team_of_any_size_shares_a_seat(app, room, size):
    people = [{"name": f"Student {n}"} for n in range(size)]
    body = {"code": room.folder.settings.code, "people": people}
    assert app.test_client().post("/api/class/join", json=body).status_code == 201
    assert rows(room) == {"s1": [f"Student {n}" for n in range(size)]}
    for wrong in ([], [{"name": f"X {n}"} for n in range(MOST_PEOPLE + 1)]):
        answer = app.test_client().post("/api/class/join", json=body | {"people": wrong})
        assert answer.status_code == 422


def test_names_of_a_team_differ(room):
    with pytest.raises(RequestError, match="two of you have the same name"):
        joined(room, "Ada", "Bo", "ada")


def test_a_merged_seat_goes_on_at_the_other_one_with_its_work(app, room, ada, bo, instructor):
    run = a_run(app, ada)
    given = views.worksheet(room.lesson, room.queue, "s1", "small", room.clock())["steps"][2][
        "given"
    ]
    before = points(room)["s1"]
    answer = instructor.post("/api/instructor/seats/s1/merge", json={"into": "s2"})
    assert answer.status_code == 200, answer.json
    assert rows(room) == {"s2": ["Bo", "Ada"]}
    assert points(room) == {"s2": before}
    for client in (ada, bo):
        seat = client.get("/api/class/seat").json
        assert (seat["seat"], seat["worksheets"][0]["opened"]) == ("s2", True)
    steps = {each.get("id"): each for each in bo.get("/api/class/worksheets/small").json["steps"]}
    assert [each["id"] for each in steps["both"]["runs"]] == [run]
    assert steps["both"]["given"] == given  # the variant of the seat that opened it
    again = do(bo, "runs/both", chosen={}).json["run"]["id"]
    assert again == "s2-small-both-2"
    work_off(app)
    assert do(ada, "checks/enough").json["step"]["problem"] == ""


def test_where_both_have_opened_a_worksheet_the_work_of_the_other_seat_counts(room, clock):
    for seat in (joined(room, "Ada")[0], joined(room, "Bo")[0]):
        room.open(seat, "small")
    room.answer(Place("s1", "small", "cause"), "two")
    room.answer(Place("s2", "small", "guess"), 3)
    room.request_run(Place("s2", "small", "both"), {}, NO_CHECK)
    waiting = room.request_run(Place("s2", "small", "both"), {}, NO_CHECK)
    room.merge("s2", "s1")
    assert (rows(room), points(room)) == ({"s1": ["Ada", "Bo"]}, {"s1": 2})
    assert room.state.runs[waiting.id].status == "interrupted"
    for wrong in (("s2", "s1"), ("s1", "s2")):
        with pytest.raises(NotNow):
            room.merge(*wrong)
    with pytest.raises(RequestError, match="one seat"):
        room.merge("s1", "s1")
    with pytest.raises(Unknown):
        room.merge("s1", "s9")


def test_merged_work_is_marked_again_without_a_difference(app, room, ada, bo, clock):
    seat = "s1"
    a_run(app, ada)
    do(ada, "checks/enough")
    room.extend("small", seat, 5)
    left_s = room.lesson.left_s(seat, "small", clock())
    room.merge(seat, "s2")
    assert room.lesson.left_s("s2", "small", clock()) == left_s
    record = grades.read_record(room.folder)
    (work,) = grades.submissions(room.folder, record.state)
    assert list(grades.mark_again(room.folder, record.state, work)) == []


def test_a_removed_seat_is_in_neither_the_table_nor_the_grades(app, room, ada, instructor):
    do(ada, "answers/cause", value="two")
    assert points(room) == {"s1": 2}
    assert instructor.post("/api/instructor/seats/s1/remove", json={}).status_code == 200
    assert (rows(room), points(room)) == ({}, {})
    assert ada.get("/api/class/seat").status_code == 403
    again = join(app, "Ada")
    assert again.get("/api/class/seat").json["seat"] == "s2"
    assert instructor.post("/api/instructor/seats/s1/remove", json={}).status_code == 409
    room.free("s2")
    assert instructor.post("/api/instructor/seats/s2/remove", json={}).status_code == 200


def test_only_the_instructor_changes_seats_and_worksheets(ada):
    for path in ("seats/s1/remove", "seats/s1/merge", "worksheets"):
        assert ada.post(f"/api/instructor/{path}", json={}).status_code == 403


def test_seats_are_as_they_were_after_a_restart(room, clock, class_folder):
    for name in ("Ada", "Bo", "Cy"):
        seat, cookie = joined(room, name)
        room.open(seat, "small")
    room.answer(Place("s3", "small", "guess"), 3)
    room.merge("s3", "s1")
    room.remove("s2")
    room.close()
    again = Room(class_folder, clock)
    try:
        assert rows(again) == {"s1": ["Ada", "Cy"]}
        assert again.seat_of(cookie) == "s1"
    finally:
        again.close()


def test_a_worksheet_is_added_during_the_class(app, room, ada, instructor, clock):
    added = instructor.post("/api/instructor/worksheets", json={"name": "more", "text": OTHER})
    assert (added.status_code, added.json) == (201, {"name": "more"})
    assert [each["name"] for each in ada.get("/api/class/seat").json["worksheets"]] == [
        "small",
        "more",
    ]
    assert ada.post("/api/class/worksheets/more/open", json={}).json["title"] == "Two more paths"
    known = instructor.get("/api/instructor/class").json
    assert [each["name"] for each in known["worksheets"]] == ["small", "more"]
    assert instructor.get("/instructor/print/more").status_code == 200
    again = folder.find("test", room.folder.path.parent)
    assert [each.title for each in again.worksheets.values()] == ["Two paths", "Two more paths"]
    twice = instructor.post("/api/instructor/worksheets", json={"name": "more", "text": OTHER})
    assert twice.status_code == 409


def test_a_worksheet_of_the_lab_is_added_by_its_name(room, instructor):
    assert "coupled" in instructor.get("/api/instructor/class").json["more"]
    assert (
        instructor.post("/api/instructor/worksheets", json={"name": "coupled"}).status_code == 201
    )
    assert "coupled" not in instructor.get("/api/instructor/class").json["more"]
    assert list(room.folder.worksheets) == ["small", "coupled"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none_such", None, "none_such"),
        ("../small", OTHER, "small letters"),
        ("bad", "title: x", "steps"),
        ("bad", "a: [", "bad.yaml"),
        ("bad", OTHER.replace("two_paths", "no_such_scenario"), "no_such_scenario"),
    ],
)
def test_a_worksheet_that_is_not_valid_is_not_added(room, instructor, name, text, said):
    answer = instructor.post("/api/instructor/worksheets", json={"name": name, "text": text})
    assert (answer.status_code, said in answer.json["error"]) == (422, True), answer.json
    assert list(room.folder.worksheets) == ["small"]
