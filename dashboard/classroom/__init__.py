"""The server of a class: separate pages and APIs for students, the instructor and a projector
(docs/class_mode.md).

The ordinary API and its pages are not part of this app.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Flask

from dashboard import ROOT, errors
from dashboard.classroom import door_api, guard, instructor_api, pages, run_api, student_api
from dashboard.classroom.conductor import Conductor
from dashboard.classroom.slots import Slots
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.classroom.room import NO_SEAT, Room
from lab.results.store import Store

BLUEPRINTS = (
    pages.pages,
    door_api.door,
    student_api.student,
    run_api.runs,
    instructor_api.instructor,
)
STREAMS, STREAMS_PER_SEAT = 280, 8
DEFAULTS = {
    "LINK": "http://127.0.0.1:8080",  # the address of this server as students type it
    "SPEED": 1.0,  # simulated time over real time of the students' runs
    "VM": False,  # emulations run in the virtual machine
    "COMMAND": (),  # replaces `python -m lab`, for tests
    "EXTENSION_FOLDERS": (),  # given by --with
    "ERROR_PAGE": "class_error.html",
    "SECURE": False,  # the server uses TLS
    "ADDRESS_OF": lambda environ: environ.get("REMOTE_ADDR", ""),  # of the browser
    "END": lambda: None,  # called to end the server when the class was deleted
    "TRUSTED_HOSTS": ["127.0.0.1", "localhost", "[::1]"],
    "MAX_CONTENT_LENGTH": 64 * 1024,
}


def create_app(room: Room, config: dict[str, Any] | None = None) -> Flask:
    """Return the Flask app that serves a class. `config` overrides `DEFAULTS`.

    No runs are started until `app.extensions["conductor"].start()` is called.
    """
    app = Flask(
        __name__,
        template_folder=str(ROOT / "templates"),
        static_folder=str(ROOT / "dashboard" / "static"),
    )
    app.config.from_mapping(DEFAULTS | (config or {}))
    app.json.sort_keys = False  # type: ignore[attr-defined]  # related fields stay together
    store = Store(room.folder.runs)
    launcher = Launcher(store, app.config["COMMAND"], 0, app.config["EXTENSION_FOLDERS"])
    app.extensions["room"] = room
    app.extensions["store"] = store
    app.extensions["streams"] = Streams(STREAMS)
    pages_change = partial(room.news.report, [NO_SEAT])
    app.extensions["slots"] = Slots(STREAMS_PER_SEAT, STREAMS, pages_change)
    app.extensions["conductor"] = Conductor(room, launcher, app.config["SPEED"], app.config["VM"])
    guard.protect(app)
    errors.register(app)
    guard.register_refusals(app)
    for each in BLUEPRINTS:
        app.register_blueprint(each)
    return app
