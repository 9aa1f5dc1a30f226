"""The pages: thin, filled by the API from the browser."""

from __future__ import annotations

import gzip
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from flask import Blueprint, Response, current_app, g, redirect, render_template, request, url_for
from markupsafe import Markup, escape
from werkzeug.wrappers import Response as AnyResponse

from dashboard import view
from dashboard.errors import Problem
from lab.scenario import catalogue

pages = Blueprint("pages", __name__)
FOREVER = "public, max-age=31536000, immutable"


@pages.get("/")
def home() -> str:
    return render_template("home.html", groups=view.groups())


@pages.get("/scenarios/<name>")
def scenario(name: str) -> str:
    found = next((row for row in catalogue.scenario_rows() if row["name"] == name), None)
    if found is None:
        raise Problem(404, f"scenario '{name}' is unknown. Choose one from the list")
    if "error" in found:
        raise Problem(422, found["error"])
    about = {"scenario": found} | view.choices(name)
    pictures = (
        row["picture"] for row in catalogue.topology_rows() if row["kind"] == found["topology"]
    )
    parts = [
        {"drawn": "  " in part, "text": part}
        for part in next(pictures, "").replace("`", "").split("\n\n")
        if part
    ]
    return render_template("start.html", about=about, scenario=found, picture=parts)


@pages.get("/runs")
def runs() -> str:
    return render_template("runs.html")


@pages.get("/runs/<run_id>")
def run(run_id: str) -> str:
    found = view.run(current_app.extensions["store"], run_id)
    return render_template("run.html", run=found)


@pages.get("/compare")
def compare() -> str | AnyResponse:
    asked = [each for each in request.args.get("runs", "").split(",") if each]
    if len(asked) < 2:
        return redirect(url_for("pages.runs"))
    return render_template(
        "compare.html", docs=view.compared(current_app.extensions["store"], asked)
    )


@pages.get("/plotly/<wanted>.js")
def plotly(wanted: str) -> Response:
    """plotly.js as the plotly package carries it, compressed once and kept by browsers."""
    if wanted != version("plotly"):
        raise Problem(
            404,
            f"plotly.js of version {wanted} is not here: the page is older than the server. Load it again",
        )
    zipped = "gzip" in request.headers.get("Accept-Encoding", "")
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"} | (
        {"Content-Encoding": "gzip"} if zipped else {}
    )
    return Response(
        _plotly_zipped() if zipped else _plotly(), mimetype="text/javascript", headers=headers
    )


@pages.app_context_processor
def _everywhere() -> dict[str, Any]:
    return {"plotly_version": version("plotly"), "may_change": g.get("may_change", False)}


@pages.app_template_filter()
def with_code(text: str) -> Markup:
    """What stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _plotly() -> bytes:
    return files("plotly").joinpath("package_data/plotly.min.js").read_bytes()


@cache
def _plotly_zipped() -> bytes:
    return gzip.compress(_plotly(), 6)
