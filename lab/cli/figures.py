"""The options of `compare` that write a figure or a table for a paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lab.cli.export import written_whole
from lab.errors import RequestError
from lab.results import latex
from lab.results.compare import Parts, Window
from lab.results.figures import drawing, plan


@dataclass(frozen=True)
class Paper:
    """What `compare` writes for a paper, as the user asked for it."""

    figure: Path | None
    latex: Path | None
    kind: str | None
    metric: tuple[str, ...]
    width: str | None


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command. It gets one argument for each field of `Paper`."""
    path = click.Path(path_type=Path, dir_okay=False)
    widths, kinds = click.Choice(list(drawing.WIDTHS_INCHES)), click.Choice(plan.KINDS)
    suffixes = "|".join(each[1:] for each in drawing.SUFFIXES)
    for option in (
        click.option("--width", type=widths, help="How wide: 3.5 (default) or 7.16 inches."),
        click.option(
            "--metric", multiple=True, metavar="PATH", help="Of --figure and --latex: what to show."
        ),
        click.option("--kind", type=kinds, help="The kind of figure. Default: what fits the runs."),
        click.option("--latex", type=path, help="Also write it as a table in LaTeX (booktabs)."),
        click.option("--figure", type=path, metavar=f"FILE.{suffixes}", help="Also draw it."),
    ):
        command = option(command)
    return command


def check(paper: Paper) -> None:
    """Refuse files that exist, other formats, options without a file, and a figure without
    matplotlib."""
    if paper.figure is None and (paper.kind or paper.width):
        raise RequestError("compare: --kind and --width are for a figure: add --figure FILE.pdf")
    if paper.metric and paper.figure is None and paper.latex is None:
        raise RequestError("compare: --metric is for --figure or --latex: add --figure FILE.pdf")
    for path in (paper.figure, paper.latex):
        if path is not None and path.exists():
            raise RequestError(f"compare: {path} is there already: choose another file")
    if paper.figure is not None:
        if paper.figure.suffix not in drawing.SUFFIXES:
            ends = ", ".join(drawing.SUFFIXES)
            raise RequestError(f"compare --figure {paper.figure}: the name must end with {ends}")
        drawing.check_matplotlib()


def write(parts: Parts, paper: Paper, by: tuple[str, ...], window: Window | None) -> None:
    """Write the files that were asked for."""
    if paper.latex is not None:
        plan.check_metrics(parts, paper.metric)
        text = latex.table(parts, paper.metric)
        written_whole(paper.latex, lambda path: path.write_text(text, encoding="utf-8"))
    if paper.figure is not None:
        suffix, width = paper.figure.suffix, paper.width or "column"
        panels = plan.panels(parts, plan.Asked(paper.kind, paper.metric, by, window))
        written_whole(paper.figure, lambda path: drawing.draw(panels, path, suffix, width))
