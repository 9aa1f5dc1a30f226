"""Define the addresses of the HTTP API for finished runs: a summary, and running once more."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dashboard import finished, repeats
from dashboard.api import api as api
from dashboard.api import route
from dashboard.http import body, folder_of, launcher, store


class RepeatRequest(BaseModel):
    """Hold a request to run a run once more."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    with_flips: bool = Field(False, description="make the changes by hand at the same times")


@route(
    "GET",
    "/api/runs/{id}/summary",
    "Return a verdict in words, means with 95 % intervals over repeats, and the baseline.",
)
def summary(id: str) -> Any:
    folder = folder_of(id)
    store().refresh()
    return finished.summary(store(), folder)


@route(
    "POST",
    "/api/runs/{id}/repeat",
    "Run a run once more with the same seed.",
    body=RepeatRequest,
    status=201,
)
def repeat(id: str) -> Any:
    request = body(RepeatRequest)
    folder = folder_of(id)
    store().refresh()
    run_id = repeats.start(launcher(), folder, store().get(id), request.with_flips)
    store().refresh()
    return {"id": run_id, "url": f"/runs/{run_id}"}
