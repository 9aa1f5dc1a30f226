"""The HTTP API: its addresses and their handlers. /openapi.json is made from the same
decorators."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, Literal

from flask import Blueprint, Response, request
from pydantic import BaseModel, ConfigDict, Field

from dashboard import exports, flips, openapi, scenario_pages, view
from dashboard.errors import Problem
from dashboard.http import (
    body,
    folder_of,
    launcher,
    points,
    position,
    running,
    store,
    streams,
)
from dashboard.runs import StartRequest
from lab import __version__
from lab.errors import LabError, RequestError, unknown
from lab.results.explain import changes as explained
from lab.run import inbox
from lab.scenario import catalogue
from lab.scenario import code_paths as code_paths

api = Blueprint("api", __name__)
route = openapi.router(api)
FRAMES_AT_ONCE = 2000


class FlipRequest(BaseModel):
    """A change of a target in a running run. A target is a setting that can be changed, such as the
    rate of a link."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    target: str = Field(description="a name from the run's targets")
    value: Any = Field(description="in the target's unit, within its bounds")


class SpeedRequest(BaseModel):
    """A change of the speed of a running simulation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    speed: float | Literal["max"] = Field(description="simulated time over real time, or max")


class Annotation(BaseModel):
    """New tags and a new note for a run; None leaves the old ones as they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tags: tuple[str, ...] | None = Field(None, description="replaces all tags", max_length=20)
    note: str | None = Field(None, max_length=4000)


@route("GET", "/healthz", "Report that the dashboard answers, and its version.")
def healthz() -> Any:
    return {"status": "ok", "lab": __version__, "recovered": store().recovered}


@route("GET", "/openapi.json", "Describe this interface.")
def description() -> Any:
    return openapi.document(__version__)


@route("GET", "/api/scenarios", "List the scenarios that come with the lab.")
def scenarios() -> Any:
    return scenario_pages.rows()


@route(
    "GET",
    "/api/strategies",
    "List the strategies, with name, unit, bounds, default and help of every parameter.",
)
def strategies() -> Any:
    return catalogue.strategy_rows()


@route(
    "GET",
    "/api/runs",
    "List the runs, the latest first; filter by scenario, strategy, engine, status, tag, q, limit.",
)
def runs() -> Any:
    store().refresh()
    return [view.with_rates(doc) for doc in view.choose(store().all(), request.args.to_dict())]


@route("POST", "/api/runs", "Start a run.", body=StartRequest, status=201)
def start() -> Any:
    run_id = launcher().start(body(StartRequest))
    store().refresh()
    return {"id": run_id, "url": f"/runs/{run_id}"}


@route("GET", "/api/runs/{id}", "Return one run, with the targets that can be changed.")
def run(id: str) -> Any:
    return view.run(store(), folder_of(id))


@route("DELETE", "/api/runs/{id}", "Delete a finished run and its folder.", status=204)
def delete(id: str) -> Any:
    folder = folder_of(id)
    try:
        store().delete(id)
    except RequestError as error:
        raise Problem(409 if folder.exists() else 404, str(error)) from error
    return ""


@route("PATCH", "/api/runs/{id}", "Set the tags or the note of a run.", body=Annotation)
def annotate(id: str) -> Any:
    annotation = body(Annotation)
    folder_of(id)
    tags = annotation.tags
    if tags is not None:
        tags = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
    return store().annotate(id, None if tags is None else list(tags), annotation.note)


@route(
    "POST",
    "/api/runs/{id}/flips",
    "Change a target while the run is running.",
    body=FlipRequest,
    status=202,
)
def flip(id: str) -> Any:
    change = body(FlipRequest)
    code_paths.refuse({change.target: change.value}, "change the run")
    folder, doc = running(id, "change")
    try:
        value = flips.check(folder, doc["engine"], change.target, change.value)
    except LookupError as error:
        raise Problem(409, f"change {change.target}: {error}. Try again in a moment") from error
    seq = flips.send(folder, change.target, value)
    return {"seq": seq, "target": change.target, "value": value}


@route("POST", "/api/runs/{id}/stop", "End the run now and keep its results.", status=202)
def stop(id: str) -> Any:
    return control(id, {"control": "stop"})


@route("POST", "/api/runs/{id}/pause", "Pause the simulation (sim only).", status=202)
def pause(id: str) -> Any:
    return control(id, {"control": "pause"})


@route("POST", "/api/runs/{id}/resume", "Resume the simulation (sim only).", status=202)
def resume(id: str) -> Any:
    return control(id, {"control": "resume"})


@route(
    "POST",
    "/api/runs/{id}/speed",
    "Change the speed of the simulation (sim only).",
    body=SpeedRequest,
    status=202,
)
def speed(id: str) -> Any:
    return control(id, {"control": "speed", "value": body(SpeedRequest).speed})


@route(
    "GET",
    "/api/runs/{id}/stream",
    "Send server-sent events: sample, event, status. Last-Event-ID resumes.",
)
def stream(id: str) -> Any:
    gone = request.environ.get("waitress.client_disconnected", lambda: False)
    messages = streams().watch(folder_of(id), position(), gone)
    if messages is None:
        raise Problem(
            503,
            f"follow run '{id}': too many browsers follow runs. Close one, or poll "
            f"/api/runs/{id}/frames?since=SEQ",
        )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(messages, mimetype="text/event-stream", headers=headers)


@route(
    "GET",
    "/api/runs/{id}/frames",
    "Return the same messages for programs that poll: ?since=SEQ.",
)
def frames(id: str) -> Any:
    tail = streams().tail(folder_of(id))
    since = position()
    new = tail.since(since)
    sent = new[:FRAMES_AT_ONCE]
    seq = sent[-1].seq if sent else since
    messages = ",".join(
        f'{{"seq":{each.seq},"type":"{each.kind}","data":{each.body}}}' for each in sent
    )
    more = json.dumps(len(new) > len(sent))
    status = json.dumps(tail.state.to_json() if tail.state else {})
    text = f'{{"seq":{seq},"more":{more},"status":{status},"messages":[{messages}]}}'
    return Response(text, mimetype="application/json")


@route(
    "GET",
    "/api/runs/{id}/charts",
    "Return the run's charts as Plotly figures, its event log, and SEQ to continue from; "
    "?points=600.",
)
def charts(id: str) -> Any:
    return view.charts(folder_of(id), points())


@route(
    "GET",
    "/api/runs/{id}/changes",
    "Return what each change of the run changed: means of the 10 s before and after it, in words.",
)
def changes(id: str) -> Any:
    return explained.changes(folder_of(id))


@route(
    "GET",
    "/api/runs/{id}/export",
    "Return the run as ?format=csv (samples), json (result and samples) or zip (its folder).",
)
def export(id: str) -> Any:
    folder = folder_of(id)
    wanted = request.args.get("format", "zip")
    if wanted not in exports.FORMATS:
        raise Problem(422, f"export run '{id}': format {unknown(wanted, exports.FORMATS)}")
    make, mimetype = exports.FORMATS[wanted]
    headers = {"Content-Disposition": f'attachment; filename="{id}.{wanted}"'}
    pieces = make(folder)
    first = next(pieces)  # an error in the run becomes the answer, not a cut file
    return Response(chain([first], pieces), mimetype=mimetype, headers=headers)


def control(run_id: str, message: dict[str, Any]) -> Any:
    """Send a control message (stop, pause, resume or speed) to a run. Return {"seq": its number}.

    Raise a `Problem` with status 409 if the engine of the run does not support this control.
    """
    what = message["control"]
    folder, doc = running(run_id, what)
    if what not in view.controls(doc["engine"]):
        text = f"{what} run '{run_id}': engine '{doc['engine']}' runs in real time and can only "
        raise Problem(409, text + "be stopped")
    try:
        return {"seq": inbox.send(folder, message)}
    except LabError as error:
        raise Problem(409, str(error)) from error
