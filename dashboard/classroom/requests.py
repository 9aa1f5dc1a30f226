"""Bodies of requests to a class, and access to the objects that all requests share."""

from __future__ import annotations

from typing import Any

from flask import current_app, g
from pydantic import Field

from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from dashboard.classroom.conductor import Conductor
from lab.classroom.room import Room


class PersonBody(Body):
    name: str = Field(max_length=200)
    pin: str = Field("", max_length=200)


class JoinBody(Body):
    """POST /api/class/join: one person, or two who share a seat."""

    code: str = Field(max_length=40)
    people: tuple[PersonBody, ...] = Field(min_length=1, max_length=2)


class ReturnBody(Body):
    """POST /api/class/return: a person who uses another browser."""

    code: str = Field(max_length=40)
    name: str = Field(max_length=200)
    pin: str = Field(max_length=200)


class AnswerBody(Body):
    value: Any


class RunBody(Body):
    """Values that a student chose for keys of the scenario."""

    chosen: dict[str, Any] = {}


class EmptyBody(Body):
    pass


class LookBody(Body):
    """What the instructor shows to all: a run, a step of a worksheet, or nothing."""

    run: str | None = None
    worksheet: str | None = None
    step: str | None = None


class FreezeBody(Body):
    frozen: bool


class ExtendBody(Body):
    """More time for a worksheet, or less if `minutes` is negative; for all if `seat` is None."""

    worksheet: str
    minutes: float = Field(ge=-240, le=240)
    seat: str | None = None


class SharedRunBody(Body):
    """A run for all. If `engine` is None, it is that of the worksheet."""

    engine: str | None = None


class GradeBody(Body):
    """Points for a text that the instructor grades."""

    seat: str
    worksheet: str
    step: str
    points: int
    comment: str = Field("", max_length=2000)


class WipeBody(Body):
    """A request to delete the class. `name` must be its name, as a confirmation."""

    name: str


def room() -> Room:
    found: Room = current_app.extensions["room"]
    return found


def conductor() -> Conductor:
    found: Conductor = current_app.extensions["conductor"]
    return found


def own_seat() -> str:
    """Return the seat of the browser. Raise a `Problem` with status 403 if it has none."""
    seat: str | None = g.seat
    if seat is None:
        raise Problem(403, "this browser has no seat: join the class first")
    return seat


def viewer() -> str | None:
    """Return on whose behalf the browser asks for a run.

    This is a seat, None for the instructor, who may see all runs, or "" for a projector, which may
    see only shared ones.
    """
    return None if g.instructor else g.seat or ""
