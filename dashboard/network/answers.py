"""Responses with the network of a scenario or of a run as a drawing, and with the samples of a time
span.

Nothing here checks who may ask; the callers do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flask import Response, request

from controller.bounded_json import JsonRefused, parse_object
from dashboard.base.errors import Problem, whole_number
from dashboard.base.requests import folder_of
from dashboard.network.drawing import activity, drawing, to_json
from dashboard.network.layout import WIDTH
from dashboard.network.svg import svg
from lab.errors import show
from lab.results.explain import present
from lab.run.reading import readable_events, readable_samples
from lab.scenario import code_paths, loading
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario

Row = dict[str, Any]  # a line of samples.jsonl or events.jsonl


def of_scenario(name: str) -> Any:
    """Return the network of a scenario as a drawing, in SVG and in JSON.

    The query parameter ?set= changes keys of the scenario.
    """
    return _drawn(_changed(name, request.args.get("set", "{}")))


def of_run(id: str) -> Any:
    return _drawn(_scenario_of(folder_of(id)))


def svg_file(id: str) -> Response:
    """Return the network of a run as an SVG file. It shows the state at ?t= seconds, by default at
    the end."""
    folder = folder_of(id)
    scenario = _scenario_of(folder)
    t, size = _time(request.args.get("t")), (_pixels("width") or WIDTH, _pixels("height"))
    try:
        text = _at(scenario, folder, t, size)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise Problem(422, f"draw run '{id}': its samples or events are damaged") from error
    headers = {"Content-Disposition": f'attachment; filename="{id}-network.svg"'}
    return Response(text, mimetype="image/svg+xml", headers=headers)


def samples(id: str) -> Any:
    """Return the samples of a run from ?from= to ?to= seconds, both included."""
    folder = folder_of(id)
    first, last = _time(request.args.get("from", "0")), _time(request.args.get("to"))
    found = (frame for frame in readable_samples(folder) if first <= frame["t"] <= last)
    return Response(_array(found), mimetype="application/json")


def _array(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON array in pieces, so that a long run does not fill the memory."""
    yield "["
    for n, row in enumerate(rows):
        yield f"{',' if n else ''}{json.dumps(row, separators=(',', ':'))}"
    yield "]"


def _at(
    scenario: Scenario,
    folder: Path,
    t: float,
    size: tuple[float, float | None] = (WIDTH, None),
) -> str:
    """Return the network of a run as a complete SVG file that shows its state at `t` seconds.

    `size` is the width and the height of the drawing in pixels.
    """
    frame: Row | None = None
    for each in readable_samples(folder):
        if frame is None or each["t"] <= t:
            frame = each
    reached = frame["t"] if frame else 0.0
    until_s = max(t if t < math.inf else 0.0, reached)
    before = (each for each in readable_events(folder) if each["t"] <= until_s)
    drawn = drawing(scenario.network, scenario.rate_scale, *size)
    now = activity(drawn, scenario.network, frame, before)
    return svg(drawn, now, f"{scenario.title}, at {reached:g} s")


def preview(name: str) -> str:
    """Return the network of a scenario as SVG. Return "" if the network is too large to be
    drawn."""
    scenario = loading.load(name)
    try:
        return svg(drawing(scenario.network, scenario.rate_scale))
    except Problem:
        return ""


def _drawn(scenario: Scenario) -> Any:
    width, height = _pixels("width"), _pixels("height")
    drawn = drawing(scenario.network, scenario.rate_scale, width or WIDTH, height)
    return {"svg": svg(drawn), "drawing": to_json(drawn, scenario.network)}


def _pixels(name: str) -> float | None:
    """Return the query parameter `name`, or None if the request does not have it."""
    text = request.args.get(name)
    if text is None:
        return None
    found = whole_number(text)
    if found is None:
        raise Problem(422, f"draw the network: {name} {show(text)} is not a number of pixels")
    return found


def _scenario_of(folder: Path) -> Scenario:
    try:
        return present.loaded(folder)
    except LookupError as error:
        raise Problem(404, str(error)) from error


def _changed(name: str, text: str) -> Scenario:
    """Load a scenario with changes. `text` is a JSON object of keys and values, such as
    {"topology.k": 6}.

    Raise `Problem` if the text cannot be parsed or the scenario is unknown.
    """
    try:
        changes = parse_object(text)
    except JsonRefused as error:
        raise Problem(422, f"draw the network: set {show(text)}: {error}") from error
    code_paths.refuse_code_paths(changes, "draw the network")
    if name not in loading.names():
        raise Problem(404, f"scenario '{show(name)}' is unknown. Choose one from the list")
    settings = tuple(f"{key}={json.dumps(value)}" for key, value in changes.items())
    return loading.load(name, Overrides(settings=settings))


def _time(text: str | None) -> float:
    if text is None:
        return float("inf")
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise Problem(422, f"t {show(text)}: write a time in seconds")
    return found
