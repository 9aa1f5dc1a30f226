"""The HTTP API for students: to join a class, to open worksheets, to answer, and to make runs."""

from __future__ import annotations

import json
from typing import Any

from flask import Blueprint, Response, jsonify

from dashboard import exports
from dashboard.base.requests import body
from dashboard.classroom import guard
from dashboard.classroom.requests import (
    AnswerBody,
    EmptyBody,
    JoinBody,
    ReturnBody,
    RunBody,
    conductor,
    own_seat,
    room,
)
from dashboard.classroom.streams import Source, stream
from lab import __version__
from lab.classroom import views
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place
from lab.classroom.room import Room
from lab.classroom.state import ClassRun

door = Blueprint("door", __name__)  # needs no seat
student = Blueprint("student", __name__, url_prefix="/api/class")
EVERY_S = 0.2  # the shortest time between two messages of a stream


@door.get("/healthz")
def healthz() -> Any:
    return {"status": "ok", "lab": __version__}


@door.get("/api/class")
def about() -> Any:
    roster = room().folder.roster
    return {
        "name": room().folder.name,
        "roster": roster is not None,
        "pin_needed": roster is not None and roster.has_pins,
    }


@door.post("/api/class/join")
def join() -> Any:
    given = body(JoinBody)
    people = [Newcomer(each.name, each.pin) for each in given.people]
    seat, cookie = room().join(guard.address(), given.code, people)
    return _welcome(seat, cookie), 201


@door.post("/api/class/return")
def come_back() -> Any:
    given = body(ReturnBody)
    newcomer = Newcomer(given.name, given.pin)
    return _welcome(*room().come_back(guard.address(), given.code, newcomer))


@student.get("/seat")
def seat() -> Any:
    with room().mutex:
        return _seat(room(), own_seat())


@student.get("/stream")
def seat_stream() -> Any:
    own, of = own_seat(), room()  # the stream goes on when this request is no longer known
    return stream(Source("seat", own, lambda: _seat(of, own), _without_times, EVERY_S))


@student.get("/worksheets/<name>")
def worksheet(name: str) -> Any:
    with room().mutex:
        return _worksheet(own_seat(), name)


@student.post("/worksheets/<name>/open")
def open_worksheet(name: str) -> Any:
    body(EmptyBody)
    room().open(own_seat(), name)
    return worksheet(name)


@student.post("/worksheets/<name>/answers/<step>")
def answer(name: str, step: str) -> Any:
    at = Place(own_seat(), name, step)
    room().answer(at, body(AnswerBody).value)
    return _saved(at)


@student.post("/worksheets/<name>/checks/<step>")
def check(name: str, step: str) -> Any:
    at = Place(own_seat(), name, step)
    body(EmptyBody)
    room().check(at)
    return _saved(at)


@student.post("/worksheets/<name>/runs/<step>")
def run(name: str, step: str) -> Any:
    at = Place(own_seat(), name, step)
    return queued(room().request_run(at, body(RunBody).chosen, conductor().check)), 202


@student.get("/download")
def download() -> Response:
    own = own_seat()
    with room().mutex:
        sheets = {name: _worksheet(own, name) for name in room().lesson.seat(own).work}
        runs = [each.id for each in room().state.runs.values() if each.seat == own]
    folders = [each for run in runs if (each := room().run_folder(run)).is_dir()]
    texts = {
        f"worksheets/{name}.json": json.dumps(each, indent=1, ensure_ascii=False)
        for name, each in sheets.items()
    }
    headers = {"Content-Disposition": f'attachment; filename="{room().folder.name}-{own}.zip"'}
    return Response(exports.archive(folders, texts), mimetype="application/zip", headers=headers)


def queued(run: ClassRun) -> Any:
    """Return the response to a request that has put a run into the queue."""
    with room().mutex:
        return {"run": views.run(room().queue, run)}


def _welcome(seat: str, cookie: str) -> Any:
    response = jsonify({"seat": seat})
    guard.set_cookie(response, guard.SEAT, cookie)
    return response


def _seat(of: Room, own: str) -> dict[str, Any]:
    return views.seat(of.lesson, of.queue, own, of.clock())


def _worksheet(of: str, name: str) -> dict[str, Any]:
    return views.worksheet(room().lesson, room().queue, of, name, room().clock())


def _saved(at: Place) -> Any:
    with room().mutex:
        shown = views.task(room().lesson, room().queue, at, room().clock())
    return {"saved": True, "step": shown}


def _without_times(doc: dict[str, Any]) -> Any:
    rows = [views.without_times(each) for each in doc["worksheets"]]
    return doc | {"worksheets": rows}
