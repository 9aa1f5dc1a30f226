"""The documents of a class, each field of them: what browsers get, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from unittest.mock import ANY

import pytest
from test_class_room import NO_CHECK, at, finish

from lab.classroom import views
from lab.classroom.door import Newcomer
from lab.classroom.lesson import NotNow
from lab.classroom.queue import Load

LOAD = Load(0.256, 2, 0)
DIGEST_DIGITS = 12


OPEN = {
    "state": "open",
    "tries": 0,
    "wait_s": 0,
    "hint": None,
    "why": None,
    "given_points": 0,
    "comment": "",
}
STEPS = [
    {"kind": "text", "text": "## Two paths", "drawing": "two_paths"},
    {
        "kind": "predict",
        "id": "guess",
        "ask": "How much?",
        "points": 1,
        "number": {"unit": "Mb/s", "minimum": 0, "maximum": 40, "run": None, "path": None},
        "answer": None,
        "sealed": False,
    },
    {
        "kind": "run",
        "id": "both",
        "scenario": "two_paths",
        "title": "Two equal wired paths",
        "strategy": None,
        "engine": "sim",
        "duration_s": 10.0,
        "by": "student",
        "given": ANY,  # another value for each seat
        "choose": {"multipath.server_enabled": {"choices": [True, False]}},
        "flips": ["link.path1.loss"],
        "labels": {
            "topology.paths.1.delay_ms": "delay of path 1 (ms)",
            "multipath.server_enabled": "Multipath TCP at the server",
            "link.path1.loss": "loss of link path1",
        },
        "locked": "Predict first: How much?",
        "runs": [],
    },
    {
        "id": "enough",
        "points": 1,
        "kind": "check",
        "ask": "the-question-of-the-check",
        "run": "both",
        "looks_at": [2],
        "figures": [],
        "problem": "",
        **OPEN,
    },
    {
        "id": "cause",
        "points": 2,
        "kind": "question",
        "ask": "Why?",
        "answer": None,
        "choice": ["one", "two", "three"],
        **OPEN,
    },
    {
        "id": "rate",
        "points": 1,
        "kind": "question",
        "ask": "How much was it?",
        "answer": None,
        "number": {"unit": ""},
        **OPEN,
    },
    {
        "id": "words",
        "points": 3,
        "kind": "question",
        "ask": "In your words?",
        "answer": None,
        "text": True,
        **OPEN,
        "given_points": None,
    },
    {
        "kind": "run",
        "id": "shown",
        "scenario": "two_paths",
        "title": "Two equal wired paths",
        "strategy": None,
        "engine": "mininet",
        "duration_s": 5.0,
        "by": "instructor",
        "given": {},
        "choose": {},
        "flips": [],
        "labels": {},
        "locked": "The instructor makes this run, for all.",
        "runs": [],
    },
]


def student(room, seat="s1"):
    return views.seat(room.lesson, room.queue, seat, room.clock())


def worksheet(room, seat="s1"):
    return views.worksheet(room.lesson, room.queue, seat, "small", room.clock())


def steps(room, seat="s1"):
    return {each["id"]: each for each in worksheet(room, seat)["steps"] if "id" in each}


def grid(room, online=()):
    return views.grid(room.lesson, room.queue, online, LOAD, room.clock())


def complete(room, finished_run, step="both"):
    run = room.request_run(at(step), {}, NO_CHECK)
    finish(room, run, finished_run)
    return run


def hide(room, clock):
    """Let the worksheet show its marks only an hour from now."""
    sheet = room.folder.worksheets["small"]
    later = datetime.fromtimestamp(clock.now + 3600, tz=UTC)
    room.folder.worksheets["small"] = sheet.model_copy(update={"results_from": later})
    return later


def test_the_first_page_lists_a_worksheet_before_it_is_opened(room):
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer("Ada"), Newcomer("Bo")])
    assert student(room, seat) == {
        "seat": "s1",
        "people": ["Ada", "Bo"],
        "frozen": False,
        "look": None,
        "worksheets": [
            {
                "name": "small",
                "title": "Two paths",
                "goals": ["Say what a second path is good for."],
                "minutes": 20,
                "opened": False,
                "left_s": None,
                "points": None,
                "of": 8,
                "done": 0,
                "steps": 7,
                "changed": "",
            }
        ],
    }
    with pytest.raises(NotNow, match="open it first"):
        worksheet(room, seat)


def test_the_first_page_counts_time_points_and_steps_of_an_opened_worksheet(room, seat, clock):
    clock.now += 61
    room.answer(at("guess"), 12)
    room.answer(at("cause"), "two")
    room.freeze(True)
    shown = student(room)
    assert shown["frozen"] is True
    (row,) = shown["worksheets"]
    assert (row["opened"], row["left_s"], row["points"], row["done"]) == (True, 1139, 3, 2)
    assert len(row["changed"]) == DIGEST_DIGITS


def test_the_digest_of_a_worksheet_changes_with_what_is_shown_and_not_with_time(room, seat, clock):
    def changed():
        return student(room)["worksheets"][0]["changed"]

    room.answer(at("cause"), "one")
    first = changed()
    clock.now += 5
    assert changed() == first
    room.answer(at("words"), "because")
    assert changed() != first


def test_an_opened_worksheet_before_any_answer(room, seat):
    shown = worksheet(room)
    for step, expected in zip(shown.pop("steps"), STEPS, strict=True):
        assert json.loads(json.dumps(step)) == expected
    assert steps(room)["both"]["given"]["topology.paths.1.delay_ms"] in (10, 20, 30)
    assert shown == {
        "name": "small",
        "title": "Two paths",
        "goals": ["Say what a second path is good for."],
        "minutes": 20,
        "left_s": 1200,
        "frozen": False,
        "hidden": False,
        "results_from": None,
        "points": 0,
        "of": 8,
    }


def test_the_hint_comes_after_two_wrong_tries_and_the_reason_after_passing(room, seat, clock):
    for tries, hint in ((1, None), (2, "the-hint-of-the-question")):
        room.answer(at("cause"), "one")
        shown = steps(room)["cause"]
        assert (shown["tries"], shown["hint"], shown["why"]) == (tries, hint, None)
        assert (shown["state"], shown["wait_s"], shown["answer"]) == ("failed", 0, "one")
    room.answer(at("cause"), "three")
    assert steps(room)["cause"]["wait_s"] == 15
    clock.now += 15
    room.answer(at("cause"), "two")
    shown = steps(room)["cause"]
    assert (shown["state"], shown["why"]) == ("passed", "the-reason-of-the-question")
    assert (shown["tries"], shown["given_points"]) == (4, 0)


def test_while_results_are_hidden_answers_are_saved_and_nothing_is_said_of_them(room, seat, clock):
    later = hide(room, clock)
    room.answer(at("cause"), "two")
    shown = worksheet(room)
    assert (shown["hidden"], shown["points"]) == (True, None)
    assert shown["results_from"] == later.isoformat()
    cause = steps(room)["cause"]
    assert (cause["state"], cause["why"], cause["given_points"]) == ("saved", None, None)
    (row,) = student(room)["worksheets"]
    assert (row["points"], row["done"]) == (None, 1)
    clock.now += 3600
    assert steps(room)["cause"]["state"] == "passed"
    assert student(room)["worksheets"][0]["points"] == 2


def test_a_run_is_listed_with_its_place_and_seals_the_prediction(room, seat, finished_run):
    room.answer(at("guess"), 12)
    assert steps(room)["both"]["locked"] is None
    chosen = {"multipath.server_enabled": False}
    first = room.request_run(at("both"), chosen, NO_CHECK)
    second = room.request_run(at("both"), {}, NO_CHECK)
    row = {"id": first.id, "step": "both", "status": "waiting", "error": ""}
    assert steps(room)["both"]["runs"] == [
        {**row, "place": 1, "chosen": chosen},
        {**row, "id": second.id, "place": 2, "chosen": {}},
    ]
    assert steps(room)["guess"]["sealed"] is True
    assert student(room)["worksheets"][0]["done"] == 1
    finish(room, first, finished_run)
    assert [each["status"] for each in steps(room)["both"]["runs"]] == ["complete", "waiting"]
    assert student(room)["worksheets"][0]["done"] == 2


def test_a_check_names_the_step_whose_run_is_missing_and_shows_its_figures(
    room, seat, finished_run
):
    room.check(at("enough"))
    assert steps(room)["enough"]["problem"] == "step 2 has no complete run yet: make it first"
    room.answer(at("guess"), 12)
    complete(room, finished_run)
    room.check(at("enough"))
    shown = steps(room)["enough"]
    assert (shown["problem"], shown["state"]) == ("", "failed")
    (figure,) = shown["figures"]  # not that about events
    assert set(figure) == {"text", "value", "label", "unit"}
    assert (figure["text"], figure["unit"]) == ("result(throughput_mbps)", "Mb/s")


def test_what_the_instructor_shows_is_in_the_documents_of_both(room, seat, finished_run):
    room.answer(at("guess"), 12)
    run = complete(room, finished_run)
    room.point_at(run.id, None, None)
    assert student(room)["look"] == grid(room)["look"] == {"run": run.id}
    room.point_at(None, "small", "cause")
    assert student(room)["look"] == {"worksheet": "small", "step": "cause"}
    room.point_at(None, None, None)
    assert student(room)["look"] is None


def test_the_table_of_the_instructor(room, seat, clock, finished_run):
    room.join("here", room.folder.settings.code, [Newcomer("Bo")])
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    room.answer(at("cause"), "one")
    clock.now += 90
    shared = room.request_run_for_all("small", "shown", "sim", NO_CHECK)
    assert grid(room, online={"s2"}) == {
        "frozen": False,
        "look": None,
        "running": 0,
        "waiting": 2,
        "busy": 0.26,
        "shared": [
            {
                "run": shared.id,
                "worksheet": "small",
                "step": "shown",
                "engine": "sim",
                "status": "waiting",
                "error": "",
            }
        ],
        "seats": [
            {
                "seat": "s1",
                "people": ["Ada"],
                "left": False,
                "has_work": True,
                "worksheet": "small",
                "quiet_min": 1.5,
                "online": False,
                "running": None,
                "latest": None,
                "drawn": {},
                "points": 1,
                "cells": {
                    "small": {
                        "guess": "passed",
                        "both": "waiting",
                        "enough": "open",
                        "cause": "failed",
                        "rate": "open",
                        "words": "open",
                        "shown": "waiting",
                    }
                },
            },
            {
                "seat": "s2",
                "people": ["Bo"],
                "left": False,
                "has_work": False,
                "worksheet": None,
                "quiet_min": None,
                "online": True,
                "running": None,
                "latest": None,
                "drawn": {},
                "points": 0,
                "cells": {},
            },
        ],
    }
    finish(room, run, finished_run)
    first = grid(room)["seats"][0]
    assert (first["cells"]["small"]["both"], first["latest"]) == ("passed", run.id)


def test_texts_are_listed_with_their_points_when_somebody_has_written_them(room, seat):
    assert views.texts(room.lesson) == []
    room.answer(at("words"), "two paths carry more")
    written = {
        "seat": "s1",
        "people": ["Ada"],
        "worksheet": "small",
        "step": "words",
        "ask": "In your words?",
        "answer": "two paths carry more",
        "of": 3,
        "points": None,
        "comment": "",
    }
    assert views.texts(room.lesson) == [written]
    room.grade(at("words"), 2, "Which two?")
    assert views.texts(room.lesson) == [written | {"points": 2, "comment": "Which two?"}]
    shown = steps(room)["words"]
    assert (shown["given_points"], shown["comment"]) == (2, "Which two?")


def test_the_outline_of_a_worksheet_names_kinds_and_shared_runs(room):
    kinds = ("predict", "run", "check", "question", "question", "question", "run")
    names = ("guess", "both", "enough", "cause", "rate", "words", "shown")
    assert views.shown_worksheet(room.folder.worksheets["small"]) == {
        "title": "Two paths",
        "steps": [{"id": name, "kind": kind} for name, kind in zip(names, kinds, strict=True)],
        "shared": ["shown"],
    }
