"""The HTTP API for the runs of a class. Every handler first checks whether the browser may see the
run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Blueprint, Response, g, request

from dashboard import flips, view
from dashboard import stream as streaming
from dashboard.base.errors import Problem
from dashboard.base.requests import body, folder_of, points, store
from dashboard.classroom.requests import EmptyBody, conductor, room, viewer
from dashboard.classroom.streams import hold
from dashboard.network import answers
from lab.classroom import rules
from lab.classroom.lesson import NotNow, Unknown
from lab.classroom.predictions import lines
from lab.classroom.state import ClassRun
from lab.errors import RequestError, show
from lab.results.explain import changes as explained
from lab.scenario import code_paths

runs = Blueprint("class_runs", __name__, url_prefix="/api/class")
NOT_FOR_STUDENTS = ("expect", "to_try", "why")  # they would give away the answers


@runs.get("/runs/<id>")
def run(id: str) -> Any:
    with room().mutex:
        found = room().lesson.run(id, viewer())
    if not room().run_folder(id).is_dir():
        return {"duration_s": None, "state": {"status": found.status, "over": found.over}}
    return run_document(*visible_run(id))


def run_document(found: ClassRun, folder: Path) -> dict[str, Any]:
    """Return everything that the page of a run shows to this browser, as a JSON object.

    Students get no explanations. They may only change values that the worksheet lets them change,
    in their own runs.
    """
    doc = view.run(store(), folder)
    with room().mutex:
        doc["predictions"] = lines(room().lesson, found, viewer())
    if not g.instructor:
        doc = _for_students(doc)
        allowed = room().lesson.run_step(found).flips if _is_own(found) else ()
        doc["targets"] = [each for each in doc["targets"] if each["name"] in allowed]
        doc["controls"] = ["stop"] if _is_own(found) else []
    return doc


@runs.get("/runs/<id>/stream")
def stream(id: str) -> Any:
    visible_run(id)
    response: Response = streaming.live(id)
    response.response = hold(viewer() or "all", iter(response.response))  # type: ignore[arg-type]
    return response


@runs.get("/runs/<id>/frames")
def frames(id: str) -> Any:
    visible_run(id)
    return streaming.frames(id)


@runs.get("/runs/<id>/charts")
def charts(id: str) -> Any:
    return view.charts(visible_run(id)[1], points())


@runs.get("/runs/<id>/changes")
def changes(id: str) -> Any:
    visible_run(id)
    rows = explained.changes(folder_of(id))
    return rows if g.instructor else [_for_students(each) for each in rows]


def _for_students(doc: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in doc.items() if key not in NOT_FOR_STUDENTS}


@runs.get("/runs/<id>/samples")
def samples(id: str) -> Any:
    visible_run(id)
    return answers.samples(id)


@runs.get("/runs/<id>/network")
def network(id: str) -> Any:
    visible_run(id)
    return answers.of_run(id)


@runs.get("/network/<scenario>")
def scenario_network(scenario: str) -> Any:
    sheets = room().folder.worksheets.values()
    named = {step.drawing for sheet in sheets for step in sheet.steps}
    named |= {each.scenario for sheet in sheets for each in sheet.runs.values()}
    if scenario not in named:
        raise Unknown(f"scenario {show(scenario)} is not part of this class")
    if "set" in request.args:
        raise RequestError("draw the network: set is not possible in a class")
    return answers.of_scenario(scenario)


@runs.post("/runs/<id>/stop")
def stop(id: str) -> Any:
    body(EmptyBody)
    found = _own(id)
    try:
        conductor().stop_run(found)
    except RequestError as error:
        raise NotNow(f"stop run '{id}': it is still starting. Try again in a moment") from error
    return {}, 202


@runs.post("/runs/<id>/flips")
def flip(id: str) -> Any:
    change = body(flips.FlipRequest)
    found = _own(id)
    if not isinstance(change.value, str | int | float | None):
        raise RequestError(f"run '{found.step}': {change.target}: write one value")
    code_paths.refuse_code_paths({change.target: change.value}, "change the run")
    folder = room().run_folder(id)
    if found.status != "running" or not (folder / "inbox").is_dir():
        raise NotNow(f"change run '{id}': it is {found.status}, and not going on")
    by = None if g.instructor else g.seat
    with room().mutex:
        event = rules.flipped(room().lesson, found, change.target, change.value, by, room().clock())
        try:
            value = flips.check(folder, found.engine, change.target, change.value)
        except LookupError as error:
            raise NotNow(f"change {change.target}: {error}. Try again in a moment") from error
        room().record(event)
        seq = flips.send(folder, change.target, value)
    return {"seq": seq, "target": change.target, "value": value}, 202


def visible_run(id: str) -> tuple[ClassRun, Path]:
    """Return a run that this browser may see, and its folder.

    Raise `Unknown` if the run does not exist or may not be seen, and `NotNow` if it has no folder
    yet.
    """
    with room().mutex:
        found = room().lesson.run(id, viewer())
    folder = room().run_folder(id)
    if not folder.is_dir():
        raise NotNow(f"show run '{id}': it is {found.status}, and has measured nothing yet")
    return found, folder


def _own(id: str) -> ClassRun:
    """Return a run that this browser may change. Students may change their own runs, the instructor
    any run.

    Raise a `Problem` with status 403 if the run belongs to somebody else.
    """
    with room().mutex:
        found = room().lesson.run(id, viewer())
    if not _is_own(found) and not g.instructor:
        raise Problem(403, f"change run '{id}': it is not yours")
    return found


def _is_own(run: ClassRun) -> bool:
    """Return whether the run is of the seat that this browser has. Shared runs are of no seat."""
    return g.seat is not None and run.seat == g.seat
