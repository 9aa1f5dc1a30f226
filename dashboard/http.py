"""Read requests and find the services of the app; raise a `Problem` for a wrong request."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from flask import current_app, request
from pydantic import BaseModel

from dashboard.errors import Problem
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.errors import RequestError
from lab.results.store import Store
from lab.scenario import checking

MAX_POINTS = 5000
Model = TypeVar("Model", bound=BaseModel)


def body(model: type[Model]) -> Model:
    """Return the request's JSON, checked; 400 if it is no JSON object, 422 if a value is wrong."""
    data = request.get_json(silent=True)
    if not isinstance(data, dict):
        text = "read the request: it has no JSON object. Send one, with "
        raise Problem(400, text + "Content-Type: application/json")
    return checking.validate(model, data, "request")


def position() -> int:
    """Return the SEQ to continue from: the Last-Event-ID header, or ?since=SEQ."""
    text = request.headers.get("Last-Event-ID") or request.args.get("since", "0")
    if not text.isdigit() or len(text) > 18:
        text = f"since {text}: this is no position. Send `seq` of an earlier answer, or 0"
        raise Problem(400, text)
    return int(text)


def points() -> int:
    """Return how many points a line of a chart has at most: ?points=600."""
    text = request.args.get("points", "600")
    if not text.isdigit() or not 2 <= int(text) <= MAX_POINTS:
        raise Problem(422, f"points {text}: write a number from 2 to {MAX_POINTS}")
    return int(text)


def requested_runs() -> list[str]:
    """Return the ids of ?runs=A,B."""
    return [each for each in request.args.get("runs", "").split(",") if each]


def folder_of(run_id: str) -> Path:
    """Return the folder of a run; 404 if there is none."""
    try:
        return store().folder(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error


def running(run_id: str, doing: str) -> tuple[Path, dict[str, Any]]:
    """Return folder and document of a run that is running; 409 if it is not."""
    folder = folder_of(run_id)
    store().refresh()
    doc = store().get(run_id)
    if doc["status"] not in ("starting", "running"):
        text = f"{doing} run '{run_id}': it is {doc['status']}. Start a new run to change it"
        raise Problem(409, text)
    if not (folder / "inbox").is_dir():
        text = f"{doing} run '{run_id}': it is still starting. Try again in a moment"
        raise Problem(409, text)
    return folder, doc


def store() -> Store:
    """Return the index of runs."""
    found: Store = current_app.extensions["store"]
    return found


def launcher() -> Launcher:
    """Return the starter of runs."""
    found: Launcher = current_app.extensions["launcher"]
    return found


def streams() -> Streams:
    """Return the readers of running runs."""
    found: Streams = current_app.extensions["streams"]
    return found
