"""A worksheet as an HTML page to print: with space to write and drawings of the networks, without
answers.

The page needs no other file and has no scripts. `python -m dashboard.handout NAME` writes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from dashboard import markdown
from dashboard.base.application import ROOT, TEMPLATES
from dashboard.base.serving import exit_on_error
from dashboard.network.answers import preview
from lab.errors import RequestError, show
from lab.scenario import loading as scenarios
from lab.worksheets import loading, wording
from lab.worksheets.planning import variants
from lab.worksheets.schema import Check, Choosing, Predict, Question, Run, Step, Worksheet

ITS_OWN = "one value for each seat"  # printed instead of a variant


def page(worksheet: Worksheet) -> str:
    """Return a worksheet as an HTML page to print, without solutions, hints and explanations."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (ROOT / "dashboard" / "static" / "handout.css").read_text(encoding="utf-8")
    return environment.get_template("handout.html").render(
        worksheet=worksheet,
        steps=[_step(each, worksheet) for each in worksheet.steps],
        style=Markup(style),  # noqa: S704 - a file of ours
    )


def _step(step: Step, worksheet: Worksheet) -> dict[str, Any]:
    """Return the fields of a step for the template.

    The fields are named one by one, so that no answer can get into the page.
    """
    if step.text is not None:
        figure = Markup(preview(step.drawing)) if step.drawing else ""  # noqa: S704 - ours
        return {"kind": "text", "text": markdown.html(step.text), "figure": figure}
    match step.task:
        case Predict() as predict:
            curve = predict.curve
            return {
                "kind": "predict",
                "ask": predict.ask,
                "points": predict.points,
                "choice": predict.choice,
                "unit": predict.number.unit if predict.number else "",
                "curve": curve
                and {
                    "label": wording.curve(curve.path).words,
                    "unit": curve.unit,
                    "maximum": curve.maximum,
                    "duration_s": worksheet.runs[curve.run].duration_s,
                },
            }
        case Run() as run:
            return {"kind": "run", "run": run, **_run(run)}
        case Question() as question:
            return {
                "kind": "question",
                "ask": question.ask,
                "points": question.points,
                "choice": question.choice,
                "unit": question.number.unit if question.number else "",
                "text": question.text,
            }
        case Check() as check:
            return {"kind": "check", "ask": check.ask, "points": check.points}
    raise AssertionError("a step is a text or has a task")


def _run(run: Run) -> dict[str, Any]:
    return {
        "title": scenarios.load(run.scenario).title,
        "given": [(key, wording.setting(key), _given(of)) for key, of in run.settings.items()],
        "choose": [(key, wording.setting(key), allowed(of)) for key, of in run.choose.items()],
        "flips": [(key, wording.setting(key)) for key in run.flips],
    }


def _given(value: Any) -> str:
    if isinstance(value, Mapping) and variants(value):
        return ITS_OWN
    return "none" if value in ((), []) else _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else show(value)


def allowed(bounds: Choosing) -> str:
    """Return a text that names the values that a student may choose, such as "none or loss_aware"
    or "1 to 20"."""
    if bounds.choices is not None:
        *most, last = (_word(each) for each in bounds.choices)
        return f"{', '.join(most)} or {last}" if most else last
    return f"{bounds.minimum:g} to {bounds.maximum:g}"


def main(argv: Sequence[str]) -> None:
    """Write a worksheet as a page to print. Exit with an error code if that fails."""
    parser = argparse.ArgumentParser(prog="worksheet print")
    parser.add_argument("name")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(argv)
    with exit_on_error():
        text = page(loading.load(given.name))
        if given.out is None:
            click.echo(text)
            return
        try:
            given.out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"write {given.out}: {error.strerror}") from error
        click.echo(f"{given.out}: open it in a browser and print it")


if __name__ == "__main__":
    main(sys.argv[1:])
