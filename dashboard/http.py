"""Read the parameters of HTTP requests, and return the objects that all requests share.

If a parameter is wrong, raise a `Problem`, which becomes the error response.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from flask import current_app, request
from pydantic import BaseModel

from controller.bounded_json import JsonRefused, parse_object
from dashboard.errors import Problem, whole_number
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.errors import RequestError, show
from lab.results.store import Store
from lab.scenario import schema

MAX_POINTS = 5000
Model = TypeVar("Model", bound=BaseModel)


def body(model: type[Model]) -> Model:
    """Check the JSON body of the request, and return it as an instance of `model`.

    The request is answered with status 400 if the body is no JSON object, and with 422 if a value
    is wrong.
    """
    try:
        data = parse_object(request.get_data())
    except JsonRefused as error:
        text = f"read the request: {error}. Send a JSON object, with "
        raise Problem(400, text + "Content-Type: application/json") from error
    return schema.validate(model, data, "request")


def position() -> int:
    """Return the position in a run from which the browser wants to continue a stream.

    The position is in the header Last-Event-ID or in the query parameter ?since=SEQ; 0 is the
    start.
    """
    text = request.headers.get("Last-Event-ID") or request.args.get("since", "0")
    found = whole_number(text)
    if found is None:
        text = f"since {show(text)}: this is no position. Send `seq` of an earlier answer, or 0"
        raise Problem(400, text)
    return found


def points() -> int:
    """Return the query parameter ?points=, the largest number of points in a chart line.

    The default is 600.
    """
    text = request.args.get("points", "600")
    found = whole_number(text)
    if found is None or not 2 <= found <= MAX_POINTS:
        raise Problem(422, f"points {show(text)}: write a number from 2 to {MAX_POINTS}")
    return found


def requested_runs() -> list[str]:
    """Return the run ids in the query parameter ?runs=A,B."""
    return [each for each in request.args.get("runs", "").split(",") if each]


def mixed_scales_allowed() -> bool:
    """Return whether ?mixed_scales=1 asks to compare runs although their rate scales differ."""
    return request.args.get("mixed_scales") == "1"


def folder_of(run_id: str) -> Path:
    """Return the folder of a run; answer the request with status 404 if there is no such run."""
    try:
        return store().folder(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error


def running(run_id: str, doing: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder and the document of a run; answer with status 409 if it is not running.

    The document is the JSON object that describes the run in lists. `doing` begins the error
    message, such as "pause".
    """
    folder = folder_of(run_id)
    store().refresh()
    try:
        doc = store().get(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error
    if doc["status"] not in ("starting", "running"):
        text = f"{doing} run '{run_id}': it is {doc['status']}. Start a new run to change it"
        raise Problem(409, text)
    if not (folder / "inbox").is_dir():
        text = f"{doing} run '{run_id}': it is still starting. Try again in a moment"
        raise Problem(409, text)
    return folder, doc


def store() -> Store:
    """Return the index of all runs, which is shared by all requests."""
    found: Store = current_app.extensions["store"]
    return found


def launcher() -> Launcher:
    """Return the shared object that starts runs as child processes."""
    found: Launcher = current_app.extensions["launcher"]
    return found


def streams() -> Streams:
    """Return the shared object that follows run folders and sends new samples to browsers."""
    found: Streams = current_app.extensions["streams"]
    return found
