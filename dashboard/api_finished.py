"""The HTTP API for finished runs: summary, repetition, comparison."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dashboard import comparison, finished, group_charts
from dashboard.api import route
from dashboard.errors import Problem
from dashboard.http import (
    body,
    folder_of,
    launcher,
    mixed_scales_allowed,
    points,
    requested_runs,
    store,
)
from lab.results import compare
from lab.results.explain import stretches as stretches


class RepeatRequest(BaseModel):
    """A request to run a run once more with the same seed."""

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
    request = body(RepeatRequest)
    folder = folder_of(id)
    store().refresh()
    run_id = finished.start(launcher(), folder, store().get(id), request.with_flips)
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
        unfinished = [doc["id"] for doc in docs if doc not in whole]
        text = f"compare: run {', '.join(unfinished)} has no result yet. Wait for its end, or "
        raise Problem(409, text + "leave it out")
    folders = [store().folder(doc["id"]) for doc in whole]
    return {"runs": docs, **json.loads(compare.report(folders, as_json=True))}


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


def _compared() -> list[dict[str, Any]]:
    docs = comparison.compared(store(), requested_runs())
    comparison.refuse_mixed_scales(docs, mixed_scales_allowed())
    return docs
