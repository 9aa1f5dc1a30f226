"""What students predicted: lines over a run, and the predictions of the whole class."""

from __future__ import annotations

import random

import pytest
from class_browser import with_curve
from class_clients import projector_of
from class_fakes import SHEET
from test_class_room import NO_CHECK, at, finish

from lab.classroom import predictions
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place
from lab.classroom.room import Room
from lab.errors import RequestError
from lab.scenario.yaml_text import read
from lab.worksheets.schema import Worksheet

CHOICE = """
  - predict: {id: which, ask: "Which?", choice: [up, down, same]}
  - run:"""


@pytest.fixture
def drawn_sheet(tmp_path):
    """The worksheet with a number, a curve and a choice to predict before its first run."""
    path = tmp_path / "drawn.yaml"
    path.write_text(with_curve(SHEET).replace("\n  - run:", CHOICE, 1))
    return Worksheet.model_validate(read(path))


@pytest.fixture
def room(class_folder, clock, drawn_sheet):
    class_folder.worksheets["small"] = drawn_sheet
    found = Room(class_folder, clock)
    yield found
    found.close()


def predicting(room, name, guess, curve=None, which=None):
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer(name)])
    room.open(seat, "small")
    for step, value in (("guess", guess), ("shape", curve), ("which", which)):
        if value is not None:
            room.answer(Place(seat, "small", step), value)
    return seat


def of_class(room, step):
    return predictions.of_class(room.lesson, "small", step)


def test_predictions_of_a_class_are_counted(room):
    for n, (guess, which) in enumerate([(3, "up"), (4.9, "up"), (12, "same"), (19.5, None)]):
        predicting(room, f"Student {n}", guess, which=which)
    predicting(room, "Who has not predicted", None)
    room.join("here", room.folder.settings.code, [Newcomer("Who has opened nothing")])
    found = of_class(room, "guess")
    assert (found["answered"], found["seats"], found["path"]) == (4, 5, "user.ue1.mbps")
    assert {
        (each["from"], each["to"]): each["count"] for each in found["bars"] if each["count"]
    } == {
        (2, 4): 1,
        (4, 6): 1,
        (12, 14): 1,
        (18, 20): 1,
    }
    bars = [(each["label"], each["count"]) for each in of_class(room, "which")["bars"]]
    assert bars == [("up", 2), ("down", 0), ("same", 1)]
    with pytest.raises(RequestError, match="asks for no prediction"):
        of_class(room, "cause")


@pytest.mark.parametrize("seed", range(20))
def test_each_number_is_in_one_bar(seed):
    chance = random.Random(seed)
    scale = 10 ** chance.uniform(-320, 6)
    values = [scale * chance.random() for _ in range(chance.randint(1, 40))]
    bars = predictions._histogram(values)
    assert len(bars) <= predictions.MOST_BARS + 1
    assert sum(each["count"] for each in bars) == len(values)
    inside = [sum(bar["from"] <= each < bar["to"] for bar in bars) for each in values]
    assert set(inside) <= {1}


def test_curves_of_a_class_have_no_names_and_no_order(room):
    for n, level in enumerate((5, 2, 9)):
        predicting(room, f"Student {n}", 1, [[0, level], [10, level]])
    found = of_class(room, "shape")
    assert [curve[0][1] for curve in found["curves"]] == [2, 5, 9]
    assert found["duration_s"] == 10
    assert "Student" not in str(found)


def test_a_run_has_the_predictions_of_its_seat_and_a_shared_one_the_medians(room, finished_run):
    for n, (guess, level) in enumerate(((4, 5), (8, 2), (10, 9))):
        predicting(room, f"Student {n}", guess, [[0, 0], [5, level], [10, level]], "up")
    own = room.request_run(at("both"), {}, NO_CHECK)
    finish(room, own, finished_run)

    def lines(run, viewer):
        found = predictions.lines(room.lesson, run, viewer)
        return [(each["name"], each["points"][-1][1]) for each in found]

    assert lines(own, "s1") == [("your prediction", 4), ("your prediction", 5)]
    for viewer in (None, "", "s2"):
        assert lines(own, viewer) == [("predicted in step 1", 4), ("predicted in step 2", 5)]
    shared = room.request_run_for_all("small", "shown", "sim", NO_CHECK)
    assert lines(shared, None) == []  # nothing was predicted of it
    of_both = shared.__class__(**{**vars(shared), "step": "both"})
    medians = [("step 1, median of 3 predictions", 8), ("step 2, median of 3 predictions", 5)]
    assert lines(of_both, "") == medians
    assert lines(of_both, "s3") == [("your prediction", 10), ("your prediction", 9)]


def test_predictions_without_a_chart_are_about_the_next_run(drawn_sheet):
    steps = {
        run: [each.id for each in predictions.about(drawn_sheet, run)] for run in ("both", "shown")
    }
    assert steps == {"both": ["guess", "shape", "which"], "shown": []}


def test_the_projector_gets_predictions_when_the_instructor_shows_them(app, room, instructor):
    predicting(room, "Ada", 4, [[0, 1], [10, 2]], "up")
    projector = projector_of(app)

    def shown():
        found = projector.get("/api/projector").json
        return found["look"], [each["step"] for each in found["predictions"]]

    assert shown() == (None, [])
    step = {"worksheet": "small", "step": "shape"}
    assert instructor.post("/api/instructor/look", json=step).status_code == 200
    assert shown() == (step, [])
    step["predictions"] = True
    assert instructor.post("/api/instructor/look", json=step).status_code == 200
    assert shown() == (step, ["shape"])
    wrong = instructor.post("/api/instructor/look", json=step | {"step": "cause"})
    assert (wrong.status_code, "no prediction" in wrong.json["error"]) == (422, True)
    run = room.request_run(at("both"), {}, NO_CHECK)
    assert instructor.post("/api/instructor/look", json={"run": run.id}).status_code == 200
    assert shown() == ({"run": run.id}, ["guess", "shape", "which"])


def test_the_table_has_a_sketch_of_each_drawn_prediction(room, instructor):
    predicting(room, "Ada", 4, [[0, 0], [5, 20], [10, 10]])
    (row,) = instructor.get("/api/instructor/class").json["grid"]["seats"]
    (drawn,) = row["drawn"]["small"].values()
    assert (drawn[0], drawn[10], drawn[20], len(drawn)) == (0, 100, 50, 21)
    assert row["latest"] is None
