"""Models of the request bodies of a class, and access to the objects that all requests share."""

from __future__ import annotations

from typing import Any

from flask import current_app, g
from pydantic import Field

from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from dashboard.classroom.conductor import Conductor
from lab.classroom.door import MOST_PEOPLE
from lab.classroom.room import Room


class PersonBody(Body):
    name: str = Field(max_length=200)
    pin: str = Field("", max_length=200)


class JoinBody(Body):
    """The body of POST /api/class/join. `people` are those who work together on one seat."""

    code: str = Field(max_length=40)
    people: tuple[PersonBody, ...] = Field(min_length=1, max_length=MOST_PEOPLE)


class ReturnBody(Body):
    """The body of POST /api/class/return, from a student who continues in another browser."""

    code: str = Field(max_length=40)
    name: str = Field(max_length=200)
    pin: str = Field(max_length=200)


class AnswerBody(Body):
    value: Any


class RunBody(Body):
    """The body of a student's request for a run. `chosen` maps keys of the scenario to values."""

    chosen: dict[str, Any] = {}


class EmptyBody(Body):
    pass


class LookBody(Body):
    """What the instructor wants to show on all screens: a run, a worksheet or one of its steps.

    With `predictions`, the projector shows what all students predicted in this step. If no field
    has a value, nothing is shown.
    """

    run: str | None = None
    worksheet: str | None = None
    step: str | None = None
    predictions: bool = False


class MergeBody(Body):
    """A request to merge a seat into the seat `into`."""

    into: str


class WorksheetBody(Body):
    """A worksheet to add to the class. If `text` is None, it is one that comes with the lab."""

    name: str = Field(max_length=200)
    text: str | None = None


class FreezeBody(Body):
    frozen: bool


class ExtendBody(Body):
    """A request to give more time for a worksheet, or less if `minutes` is negative. If `seat` is
    None, it applies to all students."""

    worksheet: str
    minutes: float = Field(ge=-240, le=240)
    seat: str | None = None


class SharedRunBody(Body):
    """A request for a run that all students will see. If `engine` is None, the worksheet's engine
    is used."""

    engine: str | None = None


class GradeBody(Body):
    """The points that the instructor gives for a text that a student wrote."""

    seat: str
    worksheet: str
    step: str
    points: int
    comment: str = Field("", max_length=2000)


class WipeBody(Body):
    """A request to delete the class. To confirm it, `name` must be the name of the class."""

    name: str


def room() -> Room:
    found: Room = current_app.extensions["room"]
    return found


def conductor() -> Conductor:
    found: Conductor = current_app.extensions["conductor"]
    return found


def own_seat() -> str:
    """Return the id of the student or pair that uses this browser.

    Raise a `Problem` with status 403 if the browser has not joined the class.
    """
    seat: str | None = g.seat
    if seat is None:
        raise Problem(403, "this browser has no seat: join the class first")
    return seat


def viewer() -> str | None:
    """Return who asks to see a run: None for the instructor, "" for the projector, otherwise a
    student's seat.

    The instructor may see all runs. The projector may see only runs that all students see.
    """
    return None if g.instructor else g.seat or ""
