"""The HTTP interface. Every address is a row of the table that /openapi.json is made from."""

from __future__ import annotations

import json
from typing import Any, Literal

from flask import Blueprint, Response, current_app, request
from pydantic import BaseModel, ConfigDict, Field

from dashboard import exports, flips, openapi, view
from dashboard.errors import Problem
from dashboard.runs import Launcher, StartRequest
from dashboard.stream import Streams
from lab import __version__
from lab.errors import LabError, RequestError, unknown
from lab.results import compare
from lab.results.store import Store
from lab.run import inbox
from lab.scenario import catalogue, checking

api = Blueprint("api", __name__)
route = openapi.router(api)
MAX_POINTS = 5000
FRAMES_AT_ONCE = 2000


class FlipRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    target: str = Field(description="a name from the run's targets")
    value: Any = Field(description="in the target's unit, within its bounds")


class SpeedRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    speed: float | Literal["max"] = Field(description="simulated time over real time, or max")


class Annotation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    tags: tuple[str, ...] | None = Field(None, description="replaces all tags", max_length=20)
    note: str | None = Field(None, max_length=4000)


@route("GET", "/healthz", "Whether the dashboard answers, and which version it is.")
def healthz() -> Any:
    return {"status": "ok", "lab": __version__, "recovered": store().recovered}


@route("GET", "/openapi.json", "This description.")
def description() -> Any:
    return openapi.document(__version__)


@route("GET", "/api/scenarios", "The scenarios that come with the lab.")
def scenarios() -> Any:
    return catalogue.scenario_rows()


@route(
    "GET",
    "/api/strategies",
    "The strategies, with name, unit, bounds, default and help of every parameter.",
)
def strategies() -> Any:
    return catalogue.strategy_rows()


@route(
    "GET",
    "/api/runs",
    "All runs, the latest first; chosen by scenario, strategy, engine, status, tag, q, limit.",
)
def runs() -> Any:
    store().refresh()
    return view.choose(store().all(), request.args.to_dict())


@route("POST", "/api/runs", "Start a run.", body=StartRequest, status=201)
def start() -> Any:
    run_id = launcher().start(body(StartRequest))
    store().refresh()
    return {"id": run_id, "url": f"/runs/{run_id}"}


@route("GET", "/api/runs/{id}", "One run, with its flip targets.")
def run(id: str) -> Any:
    return view.run(store(), id)


@route("DELETE", "/api/runs/{id}", "Remove a run that is over, with its folder.", status=204)
def delete(id: str) -> Any:
    view.folder_of(store(), id)
    try:
        store().delete(id)
    except RequestError as error:
        raise Problem(409, str(error)) from error
    return ""


@route("PATCH", "/api/runs/{id}", "Set tags or note.", body=Annotation)
def annotate(id: str) -> Any:
    said = body(Annotation)
    view.folder_of(store(), id)
    tags = (
        None
        if said.tags is None
        else list(dict.fromkeys(tag.strip() for tag in said.tags if tag.strip()))
    )
    return store().annotate(id, tags, said.note)


@route(
    "POST",
    "/api/runs/{id}/flips",
    "Change something while the run goes on.",
    body=FlipRequest,
    status=202,
)
def flip(id: str) -> Any:
    asked = body(FlipRequest)
    folder, doc = going(id, "flip")
    try:
        value = flips.check(folder, doc["engine"], asked.target, asked.value)
    except LookupError as error:
        raise Problem(409, f"flip {asked.target}: {error}. Try again in a moment") from error
    return {"seq": flips.send(folder, asked.target, value), "target": asked.target, "value": value}


@route("POST", "/api/runs/{id}/stop", "End the run now and keep what was measured.", status=202)
def stop(id: str) -> Any:
    return control(id, {"control": "stop"})


@route("POST", "/api/runs/{id}/pause", "Let simulated time stand still (sim only).", status=202)
def pause(id: str) -> Any:
    return control(id, {"control": "pause"})


@route("POST", "/api/runs/{id}/resume", "Let simulated time go on (sim only).", status=202)
def resume(id: str) -> Any:
    return control(id, {"control": "resume"})


@route(
    "POST",
    "/api/runs/{id}/speed",
    "Change how fast simulated time passes (sim only).",
    body=SpeedRequest,
    status=202,
)
def speed(id: str) -> Any:
    return control(id, {"control": "speed", "value": body(SpeedRequest).speed})


@route(
    "GET",
    "/api/runs/{id}/stream",
    "Server-sent events: sample, event, status. Last-Event-ID resumes.",
)
def stream(id: str) -> Any:
    folder = view.folder_of(store(), id)
    since = position(request.headers.get("Last-Event-ID") or request.args.get("since", "0"))
    messages = streams().watch(
        folder, since, request.environ.get("waitress.client_disconnected", lambda: False)
    )
    if messages is None:
        raise Problem(
            503,
            f"follow run '{id}': as many browsers watch as can. Close one, or ask /api/runs/{id}/frames?since=SEQ",
        )
    return Response(
        messages,
        mimetype="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@route(
    "GET",
    "/api/runs/{id}/frames",
    "The same messages for programs that ask again and again: ?since=SEQ.",
)
def frames(id: str) -> Any:
    tail = streams().tail(view.folder_of(store(), id))
    since = position(request.args.get("since", "0"))
    new = tail.since(since)
    told = [
        f'{{"seq":{each.seq},"type":"{each.kind}","data":{each.body}}}'
        for each in new[:FRAMES_AT_ONCE]
    ]
    seq = new[min(len(new), FRAMES_AT_ONCE) - 1].seq if new else since
    more = "true" if len(new) > FRAMES_AT_ONCE else "false"
    text = f'{{"seq":{seq},"more":{more},"status":{json.dumps(tail.status)},"messages":[{",".join(told)}]}}'
    return Response(text, mimetype="application/json")


@route(
    "GET",
    "/api/runs/{id}/charts",
    "The run's charts as Plotly figures, its events in words, and SEQ to follow from; ?points=600.",
)
def charts(id: str) -> Any:
    return view.charts(view.folder_of(store(), id), points())


@route(
    "GET",
    "/api/compare",
    "Runs side by side: metrics with intervals, verdicts in words; ?runs=A,B.",
)
def comparison() -> Any:
    docs = view.compared(store(), asked_runs())
    unfinished = [doc["id"] for doc in docs if doc["throughput_mbps"] is None]
    if unfinished:
        raise Problem(
            409,
            f"compare: run {', '.join(unfinished)} has no result yet. Wait for its end, or leave it out",
        )
    said = json.loads(compare.report([store().folder(doc["id"]) for doc in docs], as_json=True))
    return {"runs": docs, **said}


@route(
    "GET",
    "/api/compare/charts",
    "Up to six runs on the same axes, as Plotly figures, and what was changed in each; ?runs=A,B&points=600.",
)
def comparison_charts() -> Any:
    docs = view.compared(store(), asked_runs())
    return {
        "runs": docs,
        "figures": view.overlay(store(), docs, points()),
        "marks": view.marks(store(), docs),
    }


@route(
    "GET",
    "/api/runs/{id}/export",
    "The run as ?format=csv (samples), json (result and samples) or zip (the whole folder).",
)
def export(id: str) -> Any:
    folder = view.folder_of(store(), id)
    wanted = request.args.get("format", "zip")
    if wanted not in exports.FORMATS:
        raise Problem(422, f"export run '{id}': format {unknown(wanted, exports.FORMATS)}")
    make, mimetype = exports.FORMATS[wanted]
    headers = {"Content-Disposition": f'attachment; filename="{id}.{wanted}"'}
    return Response(make(folder), mimetype=mimetype, headers=headers)


def body(model: type[Any]) -> Any:
    """The request's JSON, checked; 400 if it is none, 422 if it says something impossible."""
    data = request.get_json(silent=True)
    if not isinstance(data, dict):
        raise Problem(
            400, "the request holds no JSON object: send one, with Content-Type: application/json"
        )
    return checking.validate(model, data, "request")


def going(run_id: str, doing: str) -> tuple[Any, dict[str, Any]]:
    """The folder and document of a run that goes on; 409 if it is over."""
    folder = view.folder_of(store(), run_id)
    store().refresh()
    doc = store().get(run_id)
    if doc["status"] not in ("starting", "running"):
        raise Problem(
            409, f"{doing} run '{run_id}': it is {doc['status']}. Start it again to change it"
        )
    if not (folder / "inbox").is_dir():
        raise Problem(409, f"{doing} run '{run_id}': it is still starting. Try again in a moment")
    return folder, doc


def control(run_id: str, message: dict[str, Any]) -> Any:
    """Put a control into the inbox of a run that can carry it out."""
    folder, doc = going(run_id, message["control"])
    if message["control"] not in view.controls(doc["engine"]):
        raise Problem(
            409,
            f"{message['control']} run '{run_id}': engine '{doc['engine']}' runs in real time. It can be stopped",
        )
    try:
        return {"seq": inbox.send(folder, message)}
    except LabError as error:
        raise Problem(409, str(error)) from error


def position(text: str) -> int:
    """A SEQ; 400 if it is none."""
    if not text.isdigit() or len(text) > 18:
        raise Problem(400, f"since {text}: is no position. Take `seq` of an earlier answer, or 0")
    return int(text)


def points() -> int:
    text = request.args.get("points", "600")
    if not text.isdigit() or not 2 <= int(text) <= MAX_POINTS:
        raise Problem(422, f"points {text}: write a number from 2 to {MAX_POINTS}")
    return int(text)


def asked_runs() -> list[str]:
    return [each for each in request.args.get("runs", "").split(",") if each]


def store() -> Store:
    found: Store = current_app.extensions["store"]
    return found


def launcher() -> Launcher:
    found: Launcher = current_app.extensions["launcher"]
    return found


def streams() -> Streams:
    found: Streams = current_app.extensions["streams"]
    return found
