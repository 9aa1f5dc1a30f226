"""The JSON documents that a class sends to browsers: for a student, and for the instructor.

Students get no right answers, conditions of checks, solutions or wrong attempts. They get a hint
only after two wrong tries, and the explanation of a step only after passing it. They get no results
while these are hidden.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from lab.classroom.lesson import Lesson, Place
from lab.classroom.predictions import about, of_class, sketch
from lab.classroom.queue import Load, Queue
from lab.classroom.state import ClassRun, SeatState, StepWork
from lab.scenario.loading import load
from lab.worksheets import planning, wording
from lab.worksheets.marking import runs_looked_at
from lab.worksheets.schema import Check, Predict, Question, Run, Step, Task, Worksheet

Doc = dict[str, Any]
OF_TIME = ("left_s", "wait_s")  # fields that change by time alone
SHOWN = ("running", "complete", "interrupted", "cut")  # of a run that has measured something


def seat(lesson: Lesson, queue: Queue, seat_id: str, now: float) -> Doc:
    """Return the document for a student's first page: people, worksheets, and what the instructor
    shows to all."""
    known = lesson.seat(seat_id)
    return {
        "seat": seat_id,
        "people": known.names,
        "frozen": lesson.state.frozen,
        "look": pointed_at(lesson),
        "worksheets": [
            _row(lesson, queue, seat_id, name, now) for name in lesson.folder.worksheets
        ],
    }


def pointed_at(lesson: Lesson) -> Doc | None:
    """Return the run or the step of a worksheet that the instructor shows on all screens, or
    None."""
    shown = lesson.state.look
    if shown.run is not None:
        return {"run": shown.run}
    if not shown.worksheet:
        return None
    step = {"worksheet": shown.worksheet, "step": shown.step}
    return step | ({"predictions": True} if shown.predictions else {})


def projected_predictions(lesson: Lesson) -> list[Doc]:
    """Return the predictions of all students that the projector shows: those about the run that it
    shows, or those of a step if the instructor wants that."""
    shown = lesson.state.look
    if shown.run is not None:
        run = lesson.state.runs[shown.run]
        asked = about(lesson.worksheet(run.worksheet), run.step)
        return [of_class(lesson, run.worksheet, each.id) for each in asked]
    if shown.predictions and shown.worksheet and shown.step:
        return [of_class(lesson, shown.worksheet, shown.step)]
    return []


def worksheet(lesson: Lesson, queue: Queue, seat_id: str, name: str, now: float) -> Doc:
    """Return a worksheet as a student sees it now. Raise `NotNow` if the student has not opened
    it."""
    lesson.work(seat_id, name)
    found = lesson.worksheet(name)
    hidden = lesson.hidden(name, now)
    return {
        "name": name,
        "title": found.title,
        "goals": list(found.goals),
        "minutes": found.minutes,
        "left_s": round(lesson.left_s(seat_id, name, now)),
        "frozen": lesson.state.frozen,
        "hidden": hidden,
        "results_from": found.results_from.isoformat() if found.results_from else None,
        "points": None if hidden else points(lesson, seat_id, name),
        "of": found.points,
        "steps": [_step(lesson, queue, seat_id, name, each, now) for each in found.steps],
    }


def points(lesson: Lesson, seat_id: str, worksheet: str) -> int:
    """Return the points of a student for an opened worksheet.

    Points given by a person replace those given by the lab.
    """
    work = lesson.work(seat_id, worksheet)
    tasks = [each for each in lesson.worksheet(worksheet).tasks if not isinstance(each, Run)]
    return sum(work.step(each.id).counted(each.points) for each in tasks)


def is_done(lesson: Lesson, at: Place) -> bool:
    """Return whether a student has nothing left to do in a step of a worksheet.

    A run must be complete. A text must be written. Other answers must be right, except if the
    worksheet shows its results only later; then any answer is enough.
    """
    task = lesson.task(at.worksheet, at.step)
    if isinstance(task, Run):
        return any(each.status == "complete" for each in lesson.runs_shown(at))
    work = lesson.step(at)
    text = isinstance(task, Question) and task.text
    hidden = lesson.worksheet(at.worksheet).results_from is not None
    return bool(work.passed) or (work.tries > 0 and (text or hidden))


def run(queue: Queue, of: ClassRun) -> Doc:
    """Return a run as a row for lists.

    `place` in the row is the position of the run in the queue: 1 starts next. It is None if the run
    is not waiting.
    """
    return {
        "id": of.id,
        "step": of.step,
        "status": of.status,
        "place": queue.place(of.id),
        "chosen": of.chosen,
        "error": of.error,
    }


def _row(lesson: Lesson, queue: Queue, seat_id: str, name: str, now: float) -> Doc:
    found = lesson.worksheet(name)
    opened = name in lesson.seat(seat_id).work
    tasks = [Place(seat_id, name, each.id) for each in found.tasks]
    return {
        "name": name,
        "title": found.title,
        "goals": list(found.goals),
        "minutes": found.minutes,
        "opened": opened,
        "left_s": round(lesson.left_s(seat_id, name, now)) if opened else None,
        "points": points(lesson, seat_id, name)
        if opened and not lesson.hidden(name, now)
        else None,
        "of": found.points,
        "done": sum(is_done(lesson, each) for each in tasks) if opened else 0,
        "steps": len(tasks),
        "changed": _changed(lesson, queue, seat_id, name, now) if opened else "",
    }


def _changed(lesson: Lesson, queue: Queue, seat_id: str, name: str, now: float) -> str:
    """Return a digest of a worksheet as a student sees it, without the fields that change by time
    alone.

    The browser reloads the worksheet if the digest changes.
    """
    shown = worksheet(lesson, queue, seat_id, name, now)
    steps = [without_times(each) for each in shown.pop("steps")]
    text = json.dumps([without_times(shown), steps])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_times(doc: Doc) -> Doc:
    """Return the document without the fields that change by time alone."""
    return {key: value for key, value in doc.items() if key not in OF_TIME}


def _step(lesson: Lesson, queue: Queue, seat_id: str, name: str, step: Step, now: float) -> Doc:
    if step.task is None:
        return {"kind": "text", "text": step.text, "drawing": step.drawing}
    return task(lesson, queue, Place(seat_id, name, step.task.id), now)


def task(lesson: Lesson, queue: Queue, at: Place, now: float) -> Doc:
    """Return one step of a worksheet as a student sees it now. It must not be a text step."""
    found = lesson.task(at.worksheet, at.step)
    match found:
        case Run():
            return _run_step(lesson, queue, at, found)
        case Predict():
            return _predict(lesson, at, found)
        case _:
            return _marked(lesson, at, found, now)


def _predict(lesson: Lesson, at: Place, asked: Predict) -> Doc:
    sheet = lesson.worksheet(at.worksheet)
    doc: Doc = {"kind": "predict", "id": asked.id, "ask": asked.ask, "points": asked.points}
    if asked.number:
        doc["number"] = asked.number.model_dump()
    elif asked.choice:
        doc["choice"] = list(asked.choice)
    elif asked.curve:
        duration_s = sheet.runs[asked.curve.run].duration_s
        words = wording.curve(asked.curve.path).words
        doc["curve"] = asked.curve.model_dump() | {"duration_s": duration_s, "label": words}
    return doc | {"answer": lesson.step(at).answer, "sealed": lesson.sealed(at)}


def _run_step(lesson: Lesson, queue: Queue, at: Place, step: Run) -> Doc:
    given = planning.given(step, lesson.variant(at.seat, at.worksheet))
    return {
        "kind": "run",
        "id": step.id,
        "scenario": step.scenario,
        "title": _title(step.scenario),
        "strategy": step.strategy,
        "engine": step.engine,
        "duration_s": step.duration_s,
        "by": step.by,
        "given": given,
        "choose": {key: _bounds(each.model_dump()) for key, each in step.choose.items()},
        "flips": list(step.flips),
        "labels": {key: str(wording.setting(key)) for key in (*given, *step.choose, *step.flips)},
        "locked": lesson.locked(at.seat, at.worksheet, at.step),
        "runs": [run(queue, each) for each in lesson.runs_shown(at)],
    }


@lru_cache(maxsize=256)
def _title(scenario: str) -> str:
    return load(scenario).title


def _bounds(bounds: Doc) -> Doc:
    return {key: value for key, value in bounds.items() if value is not None}


def _marked(lesson: Lesson, at: Place, asked: Task, now: float) -> Doc:
    """Return a question or a check as a student sees it, with the answer and the mark.

    The mark is left out while the results are hidden.
    """
    assert isinstance(asked, Question | Check)
    work, hidden = lesson.step(at), lesson.hidden(at.worksheet, now)
    sheet = lesson.worksheet(at.worksheet)
    numbers = sheet.numbers
    doc: Doc = {"id": asked.id, "points": asked.points}
    if isinstance(asked, Check):
        doc |= {
            "kind": "check",
            "ask": asked.ask,
            "run": asked.run,
            "looks_at": sorted(numbers[run] for run in runs_looked_at(asked)),
            "figures": [] if hidden else _figures(work, numbers),
            "problem": _problem(work, asked, sheet),
        }
    else:
        doc |= {"kind": "question", "ask": asked.ask, "answer": work.answer, **_form(asked)}
    passed = bool(work.passed) and not hidden
    return doc | {
        "state": state(lesson, at, hidden),
        "tries": work.tries,
        "wait_s": round(lesson.wait_s(at, now)),
        "hint": asked.hint or None if lesson.hint_earned(at, now) else None,
        "why": asked.why or None if passed else None,
        "given_points": None if hidden else _given_points(asked, work.points, work.graded),
        "comment": "" if hidden else work.comment,
    }


def _figures(work: StepWork, numbers: Mapping[str, int]) -> list[Doc]:
    """Return the measured numbers that decided a check, each with a label in plain words.

    Numbers about events are left out until the check is passed, because they would show what to
    look for.
    """
    shown = work.figures if work.passed else (f for f in work.figures if not f.is_of_events)
    labels = [(each, wording.figure(each.text, numbers)) for each in shown]
    return [each.model_dump() | {"label": of.words, "unit": of.unit} for each, of in labels]


def _problem(work: StepWork, asked: Check, of: Worksheet) -> str:
    """Return why a check could not be evaluated. The text is empty if it could.

    If a run is missing, the text has the number of the step in which that run is made.
    """
    missing = [run for run in of.runs if run in runs_looked_at(asked) - set(work.runs)]
    if not (work.problem and missing):
        return work.problem
    theirs = of.runs[missing[0]].by == "instructor"
    do = "the instructor makes it" if theirs else "make it first"
    return f"step {of.numbers[missing[0]]} has no complete run yet: {do}"


def _form(asked: Question) -> Doc:
    if asked.choice:
        return {"choice": list(asked.choice)}
    return {"number": {"unit": asked.number.unit}} if asked.number else {"text": True}


def _given_points(asked: Question | Check, points: int, graded: int | None) -> int | None:
    return graded if isinstance(asked, Question) and asked.text else points


def state(lesson: Lesson, at: Place, hidden: bool) -> str:
    """Return the state of a question, check or prediction: "open", "passed", "failed" or "saved".

    "saved" means that there is an answer, but either it is not marked or the mark is hidden.
    """
    work = lesson.step(at)
    if not work.tries:
        return "open"
    if hidden or work.passed is None:
        return "saved"
    return "passed" if work.passed else "failed"


def shown_worksheet(of: Worksheet) -> Doc:
    """Return the title and the steps of a worksheet for the instructor's page.

    In the result, `shared` has the ids of the steps whose run the instructor makes for all
    students.
    """
    kinds = [(each.id, type(each).__name__.lower()) for each in of.tasks]
    by_instructor = [each.id for each in of.runs.values() if each.by == "instructor"]
    return {
        "title": of.title,
        "steps": [{"id": id, "kind": kind} for id, kind in kinds],
        "shared": by_instructor,
    }


# What the instructor sees: a table of seats and steps, and the texts to grade


def grid(lesson: Lesson, queue: Queue, online: Collection[str], load: Load, now: float) -> Doc:
    """Return the instructor's table: one row for each student or pair, one cell for each step.

    `online` has the seats that have a page open.
    """
    return {
        "frozen": lesson.state.frozen,
        "look": pointed_at(lesson),
        "running": queue.running,
        "waiting": queue.waiting,
        "busy": round(load.busy, 2),
        "shared": [_shared(each) for each in lesson.state.runs.values() if each.seat is None],
        "seats": [_seat(lesson, each, online, now) for each in lesson.state.listed()],
    }


def _shared(run: ClassRun) -> Doc:
    """Return a run of the instructor, which all students see, as a row for the instructor's
    page."""
    return {
        "run": run.id,
        "worksheet": run.worksheet,
        "step": run.step,
        "engine": run.engine,
        "status": run.status,
        "error": run.error,
    }


def texts(lesson: Lesson) -> list[Doc]:
    """Return the texts that students wrote and that a person grades or has graded."""
    return [
        _text(lesson, seat, name, task)
        for name, sheet in lesson.folder.worksheets.items()
        for task in sheet.tasks
        if isinstance(task, Question) and task.text
        for seat in lesson.state.listed()
        if name in seat.work and seat.work[name].step(task.id).answer is not None
    ]


def cell(lesson: Lesson, at: Place) -> str:
    """Return the state of one cell of the instructor's table: a step of a worksheet of one student.

    For a question, check or prediction, the words are those of `state`. A step with a run is
    "passed" once a run is complete. Before that, it is "waiting" or "running" if the latest run is.
    Otherwise it is "open".
    """
    if not isinstance(lesson.task(at.worksheet, at.step), Run):
        return state(lesson, at, hidden=False)
    runs = lesson.runs_shown(at)
    if any(each.status == "complete" for each in runs):
        return "passed"
    return runs[-1].status if runs and not runs[-1].over else "open"


def _seat(lesson: Lesson, seat: SeatState, online: Collection[str], now: float) -> Doc:
    latest = max(seat.work, key=lambda name: seat.work[name].done_at, default=None)
    quiet_s = now - seat.work[latest].done_at if latest else None
    mine = [
        each for each in lesson.state.runs.values() if each.seat == seat.id and each.status in SHOWN
    ]
    return {
        "seat": seat.id,
        "people": seat.names,
        "left": seat.left,
        "has_work": seat.has_work,
        "worksheet": latest,
        "quiet_min": None if quiet_s is None else round(quiet_s / 60, 1),
        "online": seat.id in online,
        "running": next((each.id for each in mine if each.status == "running"), None),
        "latest": mine[-1].id if mine else None,
        "points": sum(points(lesson, seat.id, name) for name in seat.work),
        "cells": {name: dict(_cells(lesson, seat.id, name)) for name in seat.work},
        "drawn": {name: drawn for name in seat.work if (drawn := _drawn(lesson, seat, name))},
    }


def _drawn(lesson: Lesson, seat: SeatState, worksheet: str) -> dict[str, list[int]]:
    """Return the curves that a student predicted, by step, for a small drawing in each cell."""
    sheet, work = lesson.worksheet(worksheet), seat.work[worksheet]
    asked = [each for each in sheet.tasks if isinstance(each, Predict)]
    curves = {each.id: sketch(sheet, each, work.step(each.id).answer) for each in asked}
    return {step: curve for step, curve in curves.items() if curve is not None}


def _cells(lesson: Lesson, seat: str, worksheet: str) -> Iterator[tuple[str, str]]:
    for task in lesson.worksheet(worksheet).tasks:
        yield task.id, cell(lesson, Place(seat, worksheet, task.id))


def _text(lesson: Lesson, seat: SeatState, worksheet: str, asked: Question) -> Doc:
    work = seat.work[worksheet].step(asked.id)
    return {
        "seat": seat.id,
        "people": seat.names,
        "worksheet": worksheet,
        "step": asked.id,
        "ask": asked.ask,
        "answer": work.answer,
        "of": asked.points,
        "points": work.graded,
        "comment": work.comment,
    }
