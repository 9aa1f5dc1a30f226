"""The HTML pages of a class of students. The browser fills them with data from the API of the
class.

The page of a worksheet contains its texts, which the server converts from Markdown. A student gets
them only after opening the worksheet.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from flask import Blueprint, Response, current_app, g, redirect, render_template, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from dashboard import handout, markdown
from dashboard.base import requests
from dashboard.base.errors import Problem
from dashboard.classroom.instructor_api import join_path, qr_svg
from dashboard.classroom.requests import room, viewer
from dashboard.classroom.run_api import run_document
from dashboard.network.answers import preview
from lab.classroom import grades
from lab.classroom.state import ClassRun
from lab.errors import unknown
from lab.scenario.loading import load
from lab.worksheets.schema import Run, Step, Task, Worksheet

pages = Blueprint("class_pages", __name__)
pages.add_app_template_filter(markdown.with_code)


@pages.get("/")
def join() -> str | AnyResponse:
    if g.seat:
        return redirect("/seat")
    roster = room().folder.roster
    return render_template(
        "class_join.html",
        code=request.args.get("code", "")[:12],
        roster=roster is not None,
        pin_needed=roster is not None and roster.has_pins,
        secure=current_app.config["SECURE"],
    )


@pages.get("/seat")
def seat() -> str | AnyResponse:
    return render_template("class_seat.html", home="/seat") if g.seat else redirect("/")


@pages.get("/seat/<name>")
def worksheet(name: str) -> str | AnyResponse:
    if not g.seat:
        return redirect("/")
    with room().mutex:
        found = room().lesson.worksheet(name)
        opened = name in room().lesson.seat(g.seat).work
    texts = [text_html(each) for each in found.steps] if opened else []
    return render_template(
        "class_worksheet.html",
        home="/seat",
        worksheet=found,
        name=name,
        opened=opened,
        texts=texts,
    )


@pages.get("/class/runs/<id>")
def run(id: str) -> str:
    with room().mutex:
        found = room().lesson.run(id, viewer())
    folder = room().run_folder(id)
    shown = run_document(found, folder) if folder.is_dir() else _planned(found)
    return render_template(
        "class_run.html",
        home="/seat" if g.seat else "/instructor",
        run=shown,
        seat=g.seat,
        instructor=g.instructor,
        worksheet=f"/seat/{found.worksheet}#{found.step}",
    )


def _planned(run: ClassRun) -> dict[str, Any]:
    """Return what the page of a run shows before the run has begun."""
    step = room().lesson.run_step(run)
    scenario = load(step.scenario)
    return {
        "id": run.id,
        "title": scenario.title,
        "strategy": step.strategy or scenario.strategy.name,
        "engine": run.engine,
        "seed": None,
    }


@pages.get("/instructor")
def instructor() -> str:
    return render_template(
        "class_instructor.html",
        home="/instructor",
        worksheets=list(room().folder.worksheets),
        asked={
            name: {task.id: _asked(task) for task in each.tasks}
            for name, each in room().folder.worksheets.items()
        },
    )


@pages.get("/instructor/print/<name>")
def printed(name: str) -> str:
    return handout.page(room().lesson.worksheet(name))


@pages.get("/instructor/grades.csv")
def grades_file() -> Response:
    columns = request.args.get("columns", grades.COLUMNS[0])
    if columns not in grades.COLUMNS:
        raise Problem(422, f"grades: columns {unknown(columns, grades.COLUMNS)}")
    of = room()
    with of.mutex:
        people = {each.id: each.names for each in of.state.listed()}
        handed_in = grades.submissions(of.folder, of.state)
        _, head = of.journal_end()
    text = grades.to_csv(columns, of.folder.worksheets, handed_in, people, of.folder.roster, head)
    headers = {"Content-Disposition": f'attachment; filename="{of.folder.name}-{columns}.csv"'}
    return Response(text, mimetype="text/csv", headers=headers)


@pages.get("/projector")
def projector() -> str:
    link = current_app.config["LINK"] + join_path(room())
    return render_template(
        "class_projector.html",
        home="/projector",
        qr=Markup(qr_svg(link)),  # noqa: S704 - drawn from our own link
        code=room().folder.settings.code,
        link=link,
        steps=[
            row
            for name, each in room().folder.worksheets.items()
            for row in large_steps(name, each)
        ],
    )


@pages.get("/plotly/<wanted>.js")
def plotly(wanted: str) -> Response:
    return requests.plotly(wanted)


@pages.app_context_processor
def _for_all_pages() -> dict[str, Any]:
    return {
        "class_name": room().folder.name,
        "only_here": current_app.config.get("ONLY_HERE", ""),
        "plotly": url_for("class_pages.plotly", wanted=version("plotly")),
    }


def text_html(step: Step) -> Markup:
    """Return the text of a step as HTML, followed by the drawing of its network if it has one.

    The result is empty for a step that is not a text.
    """
    if step.text is None:
        return Markup("")
    figure = Markup(preview(step.drawing)) if step.drawing else Markup("")  # noqa: S704 - ours
    drawn = Markup('<div class="figure">{}</div>').format(figure) if figure else ""
    return markdown.html(step.text) + drawn


def large_steps(name: str, worksheet: Worksheet) -> list[dict[str, Any]]:
    """Return the contents that a projector can show: for each step, the question or the title of
    the run.

    Steps that are only a text are left out.
    """
    rows = []
    for n, task in enumerate(worksheet.tasks, 1):
        html = Markup("<h1>{}</h1>").format(_asked(task))
        if choice := getattr(task, "choice", None):
            items = Markup("").join(Markup("<li>{}</li>").format(each) for each in choice)
            html += Markup("<ul>{}</ul>").format(items)
        rows.append({"worksheet": name, "step": task.id, "title": worksheet.title, "n": n})
        rows[-1]["html"] = html
    return rows


def _asked(task: Task) -> str:
    """Return the question of a step of a worksheet, or the title of the run."""
    return f"Run: {load(task.scenario).title}" if isinstance(task, Run) else task.ask
