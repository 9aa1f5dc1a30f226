"""The Flask app of a class of students: settings, pages, APIs, and the thread that starts queued
runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Flask

from dashboard.base import application
from dashboard.classroom import guard, instructor_api, pages, run_api, student_api
from dashboard.classroom.conductor import Conductor
from dashboard.classroom.streams import STREAMS, Slots
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.classroom.room import NO_SEAT, Room

BLUEPRINTS = (
    pages.pages,
    student_api.door,
    student_api.student,
    run_api.runs,
    instructor_api.instructor,
)
DEFAULTS = {
    "LINK": "http://127.0.0.1:8080",  # the address of this server as students type it
    "SPEED": 1.0,  # simulated time over real time of the students' runs
    "VM": False,  # emulations run in the virtual machine
    "ERROR_PAGE": "class_error.html",
    "SECURE": False,  # the server uses TLS
    "ADDRESS_OF": lambda environ: environ.get("REMOTE_ADDR", ""),  # address of the browser
    "END": lambda: None,  # called to end the server when the class was deleted
    "MAX_CONTENT_LENGTH": 64 * 1024,
}


def create_app(room: Room, config: dict[str, Any] | None = None) -> Flask:
    """Return the Flask app that serves a class.

    `config` overrides `DEFAULTS` and the settings of `dashboard.base.application`. The app starts
    no runs until `app.extensions["conductor"].start()` is called.
    """
    app = application.new("dashboard.classroom", room.folder.runs, DEFAULTS, config)
    store, settings = app.extensions["store"], app.config
    launcher = Launcher(store, settings["COMMAND"], 0, settings["EXTENSION_FOLDERS"])
    app.extensions["room"] = room
    app.extensions["streams"] = Streams(STREAMS)
    app.extensions["slots"] = Slots(partial(room.news.report, [NO_SEAT]))
    app.extensions["conductor"] = Conductor(room, launcher, settings["SPEED"], settings["VM"])
    guard.protect(app)
    guard.register_refusals(app)
    for each in BLUEPRINTS:
        app.register_blueprint(each)
    return app
