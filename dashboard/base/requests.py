"""Functions for handlers of the dashboard and of a class: they read requests and make responses.

A wrong parameter raises a `Problem`, which becomes the error response.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from flask import Response, current_app, request
from pydantic import BaseModel, ConfigDict

from controller.bounded_json import JsonRefused, parse_object
from dashboard.base.errors import Problem, whole_number
from lab.errors import RequestError, show
from lab.results.store import Store
from lab.scenario import schema

MAX_POINTS = 5000
FOREVER = "public, max-age=31536000, immutable"
Model = TypeVar("Model", bound=BaseModel)


class Body(BaseModel):
    """Base of the models of request bodies: unknown keys are errors, and numbers must be finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def body(model: type[Model]) -> Model:
    """Return the JSON body of the request as an instance of `model`.

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
    """Return the position in a run from which the browser wants to receive data; 0 is the start.

    The browser sends the position in the header Last-Event-ID or in the query parameter `since`.
    """
    text = request.headers.get("Last-Event-ID") or request.args.get("since", "0")
    found = whole_number(text)
    if found is None:
        text = f"since {show(text)}: this is no position. Send `seq` of an earlier answer, or 0"
        raise Problem(400, text)
    return found


def points() -> int:
    """Return the query parameter `points`: the largest number of points of a line in a chart.
    Default: 600."""
    text = request.args.get("points", "600")
    found = whole_number(text)
    if found is None or not 2 <= found <= MAX_POINTS:
        raise Problem(422, f"points {show(text)}: write a number from 2 to {MAX_POINTS}")
    return found


def store() -> Store:
    """Return the index of all runs. All requests share this object."""
    found: Store = current_app.extensions["store"]
    return found


def folder_of(run_id: str) -> Path:
    """Return the folder of a run. Raise a `Problem` with status 404 if there is no such run."""
    try:
        return store().folder(run_id)
    except RequestError as error:
        raise Problem(404, str(error)) from error


def has_disconnected() -> Callable[[], bool]:
    """Return a function that returns True when the browser has closed the connection.

    The function also works after the handler has returned, while the response is still being sent.
    """
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", lambda: False)
    return gone


def event_stream(messages: Iterable[bytes]) -> Response:
    """Return a response that sends `messages` as server-sent events."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(messages, mimetype="text/event-stream", headers=headers)


def plotly(wanted: str) -> Response:
    """Return a response with the script plotly.js.

    Browsers may cache it forever, because the version `wanted` is part of the URL. Raise a
    `Problem` with status 404 if another version is installed.
    """
    if wanted != version("plotly"):
        text = f"plotly.js {wanted} is not installed: the page is older than the server. Reload it"
        raise Problem(404, text)
    zipped = "gzip" in request.headers.get("Accept-Encoding", "")
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    if zipped:
        headers["Content-Encoding"] = "gzip"
    script = _plotly_zipped() if zipped else _plotly()
    return Response(script, mimetype="text/javascript", headers=headers)


def _plotly() -> bytes:
    return files("plotly").joinpath("package_data/plotly.min.js").read_bytes()


@cache
def _plotly_zipped() -> bytes:
    return gzip.compress(_plotly(), 6)
