"""The HTTP API of a class for the instructor and for the projector."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import segno
from flask import Blueprint, current_app, jsonify

from dashboard.base.requests import body
from dashboard.classroom.requests import (
    EmptyBody,
    ExtendBody,
    FreezeBody,
    GradeBody,
    LookBody,
    MergeBody,
    SharedRunBody,
    WipeBody,
    WorksheetBody,
    conductor,
    room,
)
from dashboard.classroom.streams import Slots, Source, slots, stream
from dashboard.classroom.student_api import queued
from lab.classroom import folder, views
from lab.classroom.lesson import Place
from lab.classroom.queue import LoadMeter
from lab.classroom.room import Room
from lab.errors import RequestError
from lab.worksheets import loading

instructor = Blueprint("instructor", __name__, url_prefix="/api")
EVERY_S = 1.0  # the shortest time between two messages of a stream
OF_TIME = ("busy", "quiet_min")  # fields that change by time alone


@instructor.get("/instructor/class")
def about() -> Any:
    sheets = room().folder.worksheets
    rows = [{"name": name} | views.shown_worksheet(each) for name, each in sheets.items()]
    with room().mutex:
        now = _grid(room(), slots(), conductor().load)
    return _about(room(), _link()) | {
        "qr": qr_svg(_link()),
        "projector": current_app.config["LINK"] + projector_path(room()),
        "worksheets": rows,
        "more": [each for each in loading.names() if each not in sheets],
        "grid": now,
    }


@instructor.get("/instructor/stream")
def grid_stream() -> Any:
    of, open_pages, load = room(), slots(), conductor().load
    make = partial(_grid, of, open_pages, load)
    return stream(Source("grid", "instructor", make, _plain, EVERY_S))


@instructor.post("/instructor/look")
def point_at() -> Any:
    shown = body(LookBody)
    room().point_at(shown.run, shown.worksheet, shown.step, shown.predictions)
    return {"look": views.pointed_at(room().lesson)}


@instructor.post("/instructor/freeze")
def freeze() -> Any:
    room().freeze(body(FreezeBody).frozen)
    return {"frozen": room().state.frozen}


@instructor.post("/instructor/extend")
def extend() -> Any:
    more = body(ExtendBody)
    room().extend(more.worksheet, more.seat, more.minutes)
    return {}


@instructor.post("/instructor/worksheets/<name>/runs/<step>")
def run(name: str, step: str) -> Any:
    engine = body(SharedRunBody).engine
    return queued(room().request_run_for_all(name, step, engine, conductor().check)), 202


@instructor.post("/instructor/seats/<seat>/readmit")
def readmit(seat: str) -> Any:
    body(EmptyBody)
    name, pin = room().readmit(seat)
    return {"name": name, "pin": pin}


@instructor.post("/instructor/seats/<seat>/free")
def free(seat: str) -> Any:
    body(EmptyBody)
    room().free(seat)
    return {}


@instructor.post("/instructor/seats/<seat>/remove")
def remove(seat: str) -> Any:
    body(EmptyBody)
    room().remove(seat)
    return {}


@instructor.post("/instructor/seats/<seat>/merge")
def merge(seat: str) -> Any:
    room().merge(seat, body(MergeBody).into)
    return {}


@instructor.post("/instructor/worksheets")
def add_worksheet() -> Any:
    given = body(WorksheetBody)
    room().add_worksheet(given.name, given.text)
    return {"name": given.name}, 201


@instructor.post("/instructor/seats/free-empty")
def free_empty() -> Any:
    body(EmptyBody)
    return {"freed": room().free_empty()}


@instructor.get("/instructor/seats/<seat>/worksheets/<name>")
def worksheet_of(seat: str, name: str) -> Any:
    of = room()
    with of.mutex:
        return views.worksheet(of.lesson, of.queue, seat, name, of.clock())


@instructor.get("/instructor/texts")
def texts() -> Any:
    with room().mutex:
        return views.texts(room().lesson)


@instructor.post("/instructor/grades")
def grade() -> Any:
    given = body(GradeBody)
    room().grade(Place(given.seat, given.worksheet, given.step), given.points, given.comment)
    return {}


@instructor.post("/instructor/wipe")
def wipe() -> Any:
    name = room().folder.name
    if body(WipeBody).name != name:
        raise RequestError(f"wipe: type the name of this class, '{name}'")
    conductor().stop()
    room().close()
    folder.wipe(name, room().folder.path.parent)
    answer = jsonify({})
    answer.call_on_close(current_app.config["END"])
    return answer


@instructor.get("/projector")
def projector() -> Any:
    return _projected(room(), _link())


@instructor.get("/projector/stream")
def projector_stream() -> Any:
    of, link = room(), _link()
    make = partial(_projected, of, link)
    return stream(Source("look", "projector", make, lambda doc: doc, EVERY_S))


def instructor_path(of: Room) -> str:
    """Return the path and query of the secret link for the instructor."""
    return f"/instructor?key={of.folder.settings.instructor_key}"


def projector_path(of: Room) -> str:
    """Return the path and query of the secret link for the projector."""
    return f"/projector?key={of.folder.settings.projector_key}"


def join_path(of: Room) -> str:
    """Return the path and query of the link with which students join the class."""
    return f"/?code={of.folder.settings.code}"


def qr_svg(link: str) -> str:
    drawn = io.BytesIO()
    segno.make(link).save(drawn, kind="svg", xmldecl=False, omitsize=True)
    return drawn.getvalue().decode()


def _link() -> str:
    return str(current_app.config["LINK"]) + join_path(room())


def _about(of: Room, link: str) -> dict[str, Any]:
    return {"name": of.folder.name, "code": of.folder.settings.code, "link": link}


def _projected(of: Room, link: str) -> dict[str, Any]:
    return _about(of, link) | {
        "look": views.pointed_at(of.lesson),
        "seats": len(of.state.taken()),
        "predictions": views.projected_predictions(of.lesson),
    }


def _grid(of: Room, open_pages: Slots, load: LoadMeter) -> dict[str, Any]:
    shown = views.grid(of.lesson, of.queue, open_pages.open(), load.last, of.clock())
    return shown | {"clock": of.clock.warning()}


def _plain(doc: dict[str, Any]) -> Any:
    """Return the instructor's table without the values that change by time alone.

    A new message is sent only if this result changes.
    """
    rows = [{k: v for k, v in row.items() if k not in OF_TIME} for row in doc["seats"]]
    return {key: value for key, value in doc.items() if key not in OF_TIME} | {"seats": rows}
