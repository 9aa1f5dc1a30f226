"""Make what the instructor sees: a grid of seats and steps, and the texts to grade."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from lab.classroom import student_view
from lab.classroom.lesson import Lesson, Place
from lab.classroom.queue import Load, Queue
from lab.classroom.state import ClassRun, SeatState
from lab.worksheets.schema import Question, Run

Doc = dict[str, Any]


def grid(lesson: Lesson, queue: Queue, online: Collection[str], load: Load, now: float) -> Doc:
    """Return the grid. `online` are the seats that have a page open."""
    return {
        "frozen": lesson.state.frozen,
        "look": student_view.pointed_at(lesson),
        "running": queue.running,
        "waiting": queue.waiting,
        "busy": round(load.busy, 2),
        "shared": [_shared(each) for each in lesson.state.runs.values() if each.seat is None],
        "seats": [_seat(lesson, each, online, now) for each in lesson.state.seats.values()],
    }


def _shared(run: ClassRun) -> Doc:
    """Return a run that the instructor requested."""
    return {
        "run": run.id,
        "worksheet": run.worksheet,
        "step": run.step,
        "engine": run.engine,
        "status": run.status,
        "error": run.error,
    }


def texts(lesson: Lesson) -> list[Doc]:
    """Return all answers that a person grades."""
    return [
        _text(lesson, seat, name, task)
        for name, sheet in lesson.folder.worksheets.items()
        for task in sheet.tasks
        if isinstance(task, Question) and task.text
        for seat in lesson.state.seats.values()
        if name in seat.work and seat.work[name].step(task.id).answer is not None
    ]


def cell(lesson: Lesson, at: Place) -> str:
    """Return the state of a step of a seat, which may be a run."""
    if not isinstance(lesson.task(at.worksheet, at.step), Run):
        return student_view.state(lesson, at, hidden=False)
    runs = lesson.runs_shown(at)
    if any(each.status == "complete" for each in runs):
        return "passed"
    return runs[-1].status if runs and not runs[-1].over else "open"


def _seat(lesson: Lesson, seat: SeatState, online: Collection[str], now: float) -> Doc:
    latest = max(seat.work, key=lambda name: seat.work[name].done_at, default=None)
    quiet_s = now - seat.work[latest].done_at if latest else None
    mine = [each for each in lesson.state.unfinished() if each.seat == seat.id]
    return {
        "seat": seat.id,
        "people": seat.names,
        "worksheet": latest,
        "quiet_min": None if quiet_s is None else round(quiet_s / 60, 1),
        "online": seat.id in online,
        "running": next((each.id for each in mine if each.status == "running"), None),
        "points": sum(student_view.points(lesson, seat.id, name) for name in seat.work),
        "cells": {name: dict(_cells(lesson, seat.id, name)) for name in seat.work},
    }


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
