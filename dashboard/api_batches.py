"""The HTTP API for batches: several runs of one scenario."""

from __future__ import annotations

from typing import Any

from flask import current_app

from dashboard.api import route
from dashboard.batches import Batches, BatchRequest
from dashboard.http import body
from lab.scenario import code_paths as code_paths


@route("GET", "/api/batches", "List the batches, the latest first, with their progress.")
def batches() -> Any:
    return found().rows()


@route(
    "POST",
    "/api/batches",
    "Start several runs: strategies x values of one key x seeds.",
    body=BatchRequest,
    status=201,
)
def start_batch() -> Any:
    request = body(BatchRequest)
    code_paths.refuse(request.model_dump(mode="json"), "start the batch")
    return {"id": found().start(request), "url": "/runs"}


@route("POST", "/api/batches/{id}/stop", "Start no more runs, stop the running ones.", status=202)
def stop_batch(id: str) -> Any:
    found().stop(id)
    return {}


def found() -> Batches:
    shared: Batches = current_app.extensions["batches"]
    return shared
