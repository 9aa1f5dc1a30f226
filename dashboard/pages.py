"""The HTML pages of the dashboard: short templates that the browser fills with data from the
API."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, g, redirect, render_template, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from dashboard import comparison, group_charts, handout, markdown, races, scenario_pages, view
from dashboard.api import mixed_scales_allowed, requested_docs, requested_runs
from dashboard.base import requests
from dashboard.base.errors import Problem
from dashboard.base.requests import folder_of, store
from dashboard.network.answers import preview
from lab.batch import simulator_state
from lab.run.manifest import ROOT
from lab.worksheets import loading as worksheets

# The glossary


FILE = ROOT / "docs" / "glossary.md"


def page(path: Path = FILE) -> Markup:
    """Return the glossary as HTML. If its file is missing, return a paragraph that says so."""
    try:
        return markdown.html(path.read_text(encoding="utf-8"))
    except OSError:
        return Markup("<p>There is no glossary: docs/glossary.md is missing.</p>")


pages = Blueprint("pages", __name__)
pages.add_app_template_filter(markdown.with_code)


@pages.get("/")
def home() -> str:
    return render_template("home.html", groups=scenario_pages.groups())


@pages.get("/scenarios/<name>")
def scenario(name: str) -> str:
    found = next((row for row in scenario_pages.rows() if row["name"] == name), None)
    if found is None:
        raise Problem(404, f"scenario '{name}' is unknown. Choose one from the list")
    if "error" in found:
        raise Problem(422, found["error"])
    return render_template(
        "start.html",
        about={"scenario": found} | scenario_pages.choices(name),
        scenario=found,
        network=preview(name),
        texts=scenario_pages.description(found["topology"]),
    )


@pages.get("/runs")
def runs() -> str:
    return render_template("runs.html")


@pages.get("/runs/<run_id>")
def run(run_id: str) -> str:
    return render_template("run.html", run=view.run(store(), folder_of(run_id)))


@pages.get("/runs/<run_id>/worksheet")
def new_worksheet(run_id: str) -> str:
    return render_template("worksheet_new.html", run=view.run(store(), folder_of(run_id)))


@pages.get("/race")
def race() -> str:
    folders = [folder_of(each) for each in requested_runs()]
    return render_template("race.html", race=races.page(store(), folders))


@pages.get("/compare")
def compare() -> str | AnyResponse:
    if len(requested_runs()) < 2:
        return redirect(url_for("pages.runs"))
    docs = requested_docs()
    scales = comparison.mixed_scales(docs)
    of_scale = {
        scale: [doc["id"] for doc in docs if doc["rate_scale"] == scale] for scale in scales
    }
    notes = (comparison.warn_of_scales(docs), group_charts.skipped(docs))
    return render_template(
        "compare.html",
        docs=docs,
        is_refused=bool(scales) and not mixed_scales_allowed(),
        of_scale=of_scale,
        groups=group_charts.shown(store(), docs),
        notes=[each for each in notes if each],
    )


@pages.get("/worksheets")
def all_worksheets() -> str:
    return render_template("worksheets.html", worksheets=worksheets.rows())


@pages.get("/worksheets/<name>")
def worksheet(name: str) -> str:
    if name not in worksheets.names():
        raise Problem(404, f"worksheet '{name}' is unknown. Choose one from the list")
    return handout.page(worksheets.load(name))


@pages.get("/glossary")
def words() -> str:
    return render_template("glossary.html", glossary=page())


@pages.get("/plotly/<wanted>.js")
def plotly(wanted: str) -> Response:
    return requests.plotly(wanted)


@pages.app_context_processor
def _for_all_pages() -> dict[str, Any]:
    return {
        "plotly_version": version("plotly"),
        "may_change": g.get("may_change", False),
        "simulator": simulator_state.of(),
    }
