"""The HTTP API of the dashboard: addresses and their handlers. /openapi.json is made from the same
decorators."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from flask import Blueprint, Response, current_app, request
from pydantic import Field

from dashboard import (
    batch_plan,
    comparison,
    exports,
    finished,
    flips,
    grids,
    group_charts,
    openapi,
    races,
    scenario_pages,
    stream,
    view,
    worksheet_drafts,
)
from dashboard.base.errors import Problem
from dashboard.base.requests import Body, body, folder_of, points, store
from dashboard.batch_plan import BatchRequest
from dashboard.batches import Batches
from dashboard.network import answers
from dashboard.runs import Launcher, StartRequest
from lab import __version__
from lab.errors import LabError, RequestError, unknown
from lab.results import compare_text
from lab.results.explain import changes as explained
from lab.results.explain import stretches
from lab.results.store import described
from lab.run import inbox, stopping
from lab.scenario import catalogue, code_paths

api = Blueprint("api", __name__)
route = openapi.router(api)


class SpeedRequest(Body):
    """The body of a request to change the speed of a running simulation."""

    speed: float | Literal["max"] = Field(description="simulated time over real time, or max")


class Annotation(Body):
    """New tags and a new note for a run. A field that is None leaves the old value as it is."""

    tags: tuple[str, ...] | None = Field(None, description="replaces all tags", max_length=20)
    note: str | None = Field(None, max_length=4000)


class TimedChange(flips.FlipRequest):
    """A change that a run makes by itself."""

    at_s: float = Field(0.0, ge=0, description="time of the change, in s since the start")


class RepeatRequest(Body):
    """The body of a request to make a run once more with the same seed.

    If `with_flips`, changes that were made while the run went on are made again at the same times.
    """

    with_flips: bool = Field(False, description="make the changes by hand at the same times")
    changes: tuple[TimedChange, ...] = Field((), description="more changes", max_length=100)


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
    run_id = _launcher().start(body(StartRequest))
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
    body=flips.FlipRequest,
    status=202,
)
def flip(id: str) -> Any:
    change = body(flips.FlipRequest)
    code_paths.refuse_code_paths({change.target: change.value}, "change the run")
    folder, doc = _running(id, "change")
    try:
        value = flips.check(folder, doc["engine"], change.target, change.value)
    except LookupError as error:
        raise Problem(409, f"change {change.target}: {error}. Try again in a moment") from error
    seq = flips.send(folder, change.target, value)
    return {"seq": seq, "target": change.target, "value": value}


@route(
    "POST",
    "/api/runs/{id}/undo",
    "Set everything that was changed back to its value at the start of the run.",
    status=202,
)
def undo(id: str) -> Any:
    folder, _ = _running(id, "undo the changes of")
    try:
        changes = flips.undoing(folder)
    except LookupError as error:
        raise Problem(409, f"undo the changes: {error}. Try again in a moment") from error
    return {"seqs": [flips.send(folder, target, value) for target, value in changes]}


@route(
    "POST",
    "/api/runs/{id}/stop",
    "End the run now and keep its results. A "
    "process that does not answer is killed: then the run is listed as cut.",
    status=202,
)
def stop(id: str) -> Any:
    folder, _ = _running(id, "stop")
    try:
        return {"seq": stopping.stop(folder)}
    except LabError as error:
        raise Problem(409, str(error)) from error


@route("POST", "/api/runs/{id}/pause", "Pause the simulation (sim only).", status=202)
def pause(id: str) -> Any:
    return _control(id, {"control": "pause"})


@route("POST", "/api/runs/{id}/resume", "Resume the simulation (sim only).", status=202)
def resume(id: str) -> Any:
    return _control(id, {"control": "resume"})


@route(
    "POST",
    "/api/runs/{id}/speed",
    "Change the speed of the simulation (sim only).",
    body=SpeedRequest,
    status=202,
)
def speed(id: str) -> Any:
    return _control(id, {"control": "speed", "value": body(SpeedRequest).speed})


@route(
    "GET",
    "/api/runs/{id}/stream",
    "Send server-sent events: sample, event, status. Last-Event-ID resumes.",
)
def run_stream(id: str) -> Any:
    return stream.live(id)


@route(
    "GET",
    "/api/runs/{id}/frames",
    "Return the same messages for programs that poll: ?since=SEQ.",
)
def run_frames(id: str) -> Any:
    return stream.frames(id)


@route(
    "GET",
    "/api/runs/{id}/charts",
    "Return the run's charts as Plotly figures, its event log, and SEQ to continue from; "
    "?points=600.",
)
def run_charts(id: str) -> Any:
    return view.charts(folder_of(id), points())


@route(
    "GET",
    "/api/runs/{id}/changes",
    "Return what each change of the run changed: means of the 10 s before and after it, in words.",
)
def run_changes(id: str) -> Any:
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


@route(
    "POST",
    "/api/races",
    "Start two to four runs side by side: one seed, one clock, other strategies or settings.",
    body=races.RaceRequest,
    status=201,
)
def start_race() -> Any:
    ids = races.start(_launcher(), store(), body(races.RaceRequest))
    store().refresh()
    return {"ids": ids, "url": f"/race?runs={','.join(ids)}"}


@route(
    "POST",
    "/api/races/flips",
    "Change a target in some lanes of a race, at the same simulated time.",
    body=races.LaneFlip,
    status=202,
)
def flip_lanes() -> Any:
    change = body(races.LaneFlip)
    code_paths.refuse_code_paths({change.target: change.value}, "change the race")
    lanes = [_running(each, "change") for each in dict.fromkeys(change.runs)]
    return {"seqs": races.flip(lanes, change)}


@route("GET", "/api/batches", "List the batches, the latest first, with their progress.")
def batches() -> Any:
    return _batches().rows()


@route(
    "POST",
    "/api/batches",
    "Start several runs: strategies x values of keys x seeds, or the points of a sweep file.",
    body=BatchRequest,
    status=201,
)
def start_batch() -> Any:
    return {"id": _batches().start(body(BatchRequest)), "url": "/runs"}


@route(
    "POST",
    "/api/batches/check",
    "Check a batch, and count its runs. Start nothing. The `field` of an error is the wrong one.",
    body=BatchRequest,
)
def check_batch() -> Any:
    found = batch_plan.checked(body(BatchRequest))
    return {
        "runs": found.count,
        "strategies": len(found.strategies),
        "points": len(found.points),
        "repeats": found.repeats,
        "note": found.note,
    }


@route(
    "POST",
    "/api/batches/estimate",
    "Estimate the time and the disk that a batch takes here, by trying some of its runs.",
    body=BatchRequest,
)
def estimate_batch() -> Any:
    return _batches().estimate(body(BatchRequest))


@route("POST", "/api/batches/{id}/stop", "Start no more runs, stop the running ones.", status=202)
def stop_batch(id: str) -> Any:
    _batches().stop(id)
    return {}


@route(
    "POST",
    "/api/batches/{id}/continue",
    "Make the runs that a batch lacks, and repeat those that failed or were stopped.",
    status=202,
)
def continue_batch(id: str) -> Any:
    _batches().resume(id)
    return {}


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
    "GET",
    "/api/runs/{id}/stretches",
    "Return the means of each stretch of a run, the time between two changes, and what users share "
    "then.",
)
def run_stretches(id: str) -> Any:
    return stretches.rows(folder_of(id))


@route(
    "POST",
    "/api/runs/{id}/repeat",
    "Run a run once more with the same seed.",
    body=RepeatRequest,
    status=201,
)
def repeat(id: str) -> Any:
    wanted = body(RepeatRequest)
    folder = folder_of(id)
    store().refresh()
    doc = store().get(id)
    changes = list(doc["flips"]) if wanted.with_flips else []
    changes += [
        {"t": each.at_s, "target": each.target, "value": each.value} for each in wanted.changes
    ]
    run_id = finished.start(_launcher(), folder, doc, changes)
    store().refresh()
    return {"id": run_id, "url": f"/runs/{run_id}"}


@route(
    "GET",
    "/api/compare",
    "Compare runs: metrics with intervals, verdicts in words; ?runs=A,B. Runs of several rate "
    "scales are refused without &mixed_scales=1.",
)
def compare_results() -> Any:
    docs = _compared()
    whole = [doc for doc in docs if group_charts.has_result(doc)]
    if len(whole) < 2:
        left_out = group_charts.skipped(docs)
        raise Problem(409, f"compare: {left_out} Two runs with results are needed")
    folders = [store().folder(doc["id"]) for doc in whole]
    return {"runs": docs, **json.loads(compare_text.report(folders, as_json=True))}


@route(
    "GET",
    "/api/compare/charts",
    "Return runs, or means of groups of repeated runs, on the same axes, as Plotly figures, and "
    "the changes made in each; ?runs=A,B&points=600.",
)
def comparison_charts() -> Any:
    docs = _compared()
    return {
        "runs": docs,
        "figures": comparison.overlay(store(), docs, points()),
        "marks": comparison.marks(store(), docs),
    }


@route(
    "GET",
    "/api/compare/grid",
    "Return the mean of one metric over one or two keys that the runs vary, as lines or heat maps; "
    "?runs=A,B&by=KEY,KEY&metric=throughput_mbps. The answer lists the keys and metrics.",
)
def comparison_grid() -> Any:
    folders = [store().folder(doc["id"]) for doc in _compared() if group_charts.has_result(doc)]
    by = [each for each in request.args.get("by", "").split(",") if each]
    return grids.of_runs(folders, by, request.args.get("metric", ""))


@route(
    "GET",
    "/api/scenarios/{name}/network",
    "Draw the network of a scenario: the drawing as JSON, and as SVG. ?set= is a JSON object such "
    'as {"topology.k": 6}; ?width= is the room on the page in pixels.',
)
def scenario_network(name: str) -> Any:
    return answers.of_scenario(name)


@route(
    "GET",
    "/api/runs/{id}/network",
    "Draw the network of a run: the drawing as JSON, and as SVG. ?width= is the room in pixels.",
)
def run_network(id: str) -> Any:
    return answers.of_run(id)


@route(
    "GET",
    "/api/runs/{id}/network.svg",
    "Return the drawn network of a run as an SVG file, ?width= pixels wide: at the end, or at ?t= "
    "seconds.",
)
def network_file(id: str) -> Any:
    return answers.svg_file(id)


@route(
    "GET",
    "/api/runs/{id}/samples",
    "Return the samples of a run from ?from= to ?to= seconds, both included.",
)
def samples(id: str) -> Any:
    return answers.samples(id)


@route("GET", "/api/runs/{id}/figures", "List the figures that a worksheet can ask for.")
def figures(id: str) -> Any:
    return worksheet_drafts.figures(folder_of(id))


@route(
    "POST",
    "/api/runs/{id}/worksheet",
    "Make a worksheet from a finished run; the answer has the text of its file.",
    worksheet_drafts.DraftRequest,
)
def worksheet(id: str) -> Any:
    return worksheet_drafts.draft(folder_of(id), body(worksheet_drafts.DraftRequest))


def requested_runs() -> list[str]:
    """Return the ids in ?runs=A,B; with ?batch=ID, those of the runs of this batch that have a
    result."""
    if batch_id := request.args.get("batch"):
        return _batches().ended(batch_id)
    return [each for each in request.args.get("runs", "").split(",") if each]


def requested_docs() -> list[dict[str, Any]]:
    """Return the runs of a comparison, with the settings of a batch in their labels."""
    names = _batches().settings(request.args.get("batch", ""))
    return comparison.compared(store(), requested_runs(), names)


def mixed_scales_allowed() -> bool:
    """Return whether the request has ?mixed_scales=1.

    This allows a comparison of runs with different rate scales. The rate scale is the factor by
    which a run multiplies all rates of its scenario.
    """
    return request.args.get("mixed_scales") == "1"


def _control(run_id: str, message: dict[str, Any]) -> Any:
    """Send the control in `message` (pause, resume or speed) to a run. Return {"seq": number
    of the message}.

    Raise a `Problem` with status 409 if the engine of the run does not support the control.
    """
    what = message["control"]
    folder, doc = _running(run_id, what)
    if what not in view.controls(doc["engine"]):
        text = f"{what} run '{run_id}': engine '{doc['engine']}' runs in real time and can only "
        raise Problem(409, text + "be stopped")
    try:
        return {"seq": inbox.send(folder, message)}
    except LabError as error:
        raise Problem(409, str(error)) from error


def _running(run_id: str, doing: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a run, and the JSON object that describes the run in lists.

    `doing` begins error messages, such as "pause". Raise a `Problem` with status 409 if the run is
    not in progress, and with 404 if its folder has gone.
    """
    folder = folder_of(run_id)
    doc = described(folder, None)
    if doc is None:
        raise Problem(404, f"{doing} run '{run_id}': its folder has gone")
    if doc["status"] not in ("starting", "running"):
        text = f"{doing} run '{run_id}': it is {doc['status']}. Start a new run to change it"
        raise Problem(409, text)
    if not (folder / "inbox").is_dir():
        text = f"{doing} run '{run_id}': it is still starting. Try again in a moment"
        raise Problem(409, text)
    return folder, doc


def _compared() -> list[dict[str, Any]]:
    docs = requested_docs()
    comparison.refuse_mixed_scales(docs, mixed_scales_allowed())
    return docs


def _launcher() -> Launcher:
    found: Launcher = current_app.extensions["launcher"]
    return found


def _batches() -> Batches:
    shared: Batches = current_app.extensions["batches"]
    return shared
