"""The HTTP API to join a class."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, jsonify

from dashboard.classroom import guard
from dashboard.classroom.requests import JoinBody, ReturnBody, room
from dashboard.http import body
from lab import __version__
from lab.classroom.door import Newcomer

door = Blueprint("door", __name__)


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


def _welcome(seat: str, cookie: str) -> Any:
    response = jsonify({"seat": seat})
    guard.set_cookie(response, guard.SEAT, cookie)
    return response
