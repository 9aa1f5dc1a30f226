"""Worksheets that the page makes from finished runs: request bodies, and what the API answers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import Field

from dashboard.base.requests import Body
from lab.worksheets import drafting
from lab.worksheets.drafting import Asked


class AskedFigure(Body):
    """A figure that the worksheet asks for."""

    figure: str = Field(description="in the language of checks", max_length=500)
    curve: bool = Field(False, description="students draw its course before the run")
    ask: str = Field("", description="the text of the prediction", max_length=2000)


class DraftRequest(Body):
    """The body of a request for a worksheet."""

    figures: tuple[AskedFigure, ...] = Field(min_length=1, max_length=drafting.MOST_FIGURES)
    title: str = Field("", max_length=200)
    minutes: int = Field(drafting.MINUTES, ge=1, le=240)


def figures(folder: Path) -> list[dict[str, Any]]:
    return [asdict(each) for each in drafting.figures(folder)]


def draft(folder: Path, request: DraftRequest) -> dict[str, str]:
    """Return the text of the worksheet file."""
    asked = [Asked(each.figure, each.curve, each.ask.strip()) for each in request.figures]
    text = drafting.draft(folder, asked, request.title.strip(), request.minutes)
    return {"text": text}
