"""Define the bodies of requests to a class, and return the objects that all requests share."""

from __future__ import annotations

from typing import Any

from flask import current_app, g
from pydantic import BaseModel, ConfigDict, Field

from dashboard.classroom.conductor import Conductor
from dashboard.classroom.slots import Slots
from dashboard.errors import Problem
from lab.classroom.room import Room


class Body(BaseModel):
    """Set the rules for all bodies: no unknown keys, finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PersonBody(Body):
    """One person who joins."""

    name: str = Field(max_length=200)
    pin: str = Field("", max_length=200)


class JoinBody(Body):
    """The body of POST /api/class/join."""

    code: str = Field(max_length=40)
    people: tuple[PersonBody, ...] = Field(min_length=1, max_length=2)


class ReturnBody(Body):
    """The body of POST /api/class/return."""

    code: str = Field(max_length=40)
    name: str = Field(max_length=200)
    pin: str = Field(max_length=200)


class AnswerBody(Body):
    """An answer."""

    value: Any


class RunBody(Body):
    """What a student chose for a run."""

    chosen: dict[str, Any] = {}


class FlipBody(Body):
    """A change of a target in a running run. A student gives no mapping as a value."""

    target: str
    value: Any


class EmptyBody(Body):
    """Hold nothing."""


class LookBody(Body):
    """What the instructor shows to all: a run, a step, or nothing."""

    run: str | None = None
    worksheet: str | None = None
    step: str | None = None


class FreezeBody(Body):
    """Whether the class is to be frozen."""

    frozen: bool


class ExtendBody(Body):
    """Hold more time for a worksheet, in minutes; for all seats if `seat` is None."""

    worksheet: str
    minutes: float = Field(ge=-240, le=240)
    seat: str | None = None


class SharedRunBody(Body):
    """The engine of a run of the instructor, if it is not the worksheet's."""

    engine: str | None = None


class GradeBody(Body):
    """The points for a text."""

    seat: str
    worksheet: str
    step: str
    points: int
    comment: str = Field("", max_length=2000)


class WipeBody(Body):
    """The name of the class that is to be deleted, typed by the instructor."""

    name: str


def room() -> Room:
    """Return the class."""
    found: Room = current_app.extensions["room"]
    return found


def conductor() -> Conductor:
    """Return the object that starts and ends the runs of the class."""
    found: Conductor = current_app.extensions["conductor"]
    return found


def slots() -> Slots:
    """Return the object that counts open streams."""
    found: Slots = current_app.extensions["slots"]
    return found


def own_seat() -> str:
    """Return the seat of the browser; answer the request with status 403 if it has none."""
    seat: str | None = g.seat
    if seat is None:
        raise Problem(403, "this browser has no seat: join the class first")
    return seat


def viewer() -> str | None:
    """Return the seat that looks at a run: None for the instructor, who sees all, and an empty text
    for a projector, which sees only what is shared."""
    return None if g.instructor else g.seat or ""
