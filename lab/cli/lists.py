"""The command `list`, which prints tables for people or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from lab import metrics
from lab.cli.own_files import with_option
from lab.results.tables import markdown_table, text_table
from lab.scenario import catalogue, kinds
from lab.scenario.catalogue import Row
from lab.worksheets import drafting
from lab.worksheets import loading as worksheet_loading

PARAMETER_COLUMNS = ("name", "default", "unit", "minimum", "maximum", "choices", "help")
FIGURE_COLUMNS = ("text", "words", "value", "unit")
METRIC_COLUMNS = ("sample", "result", "unit", "meaning")
TARGET_COLUMNS = ("name", "value", "unit", "minimum", "maximum", "choices", "help")
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


@click.group(name="list")
def listing() -> None:
    """List scenarios, strategies, parameters and more."""


@listing.command()
@as_json_option
@with_option
def scenarios(as_json: bool) -> None:
    """List the scenarios that come with the lab."""
    rows = catalogue.scenario_rows()
    if not as_json:
        rows = [row | {"title": row.get("error", row["title"])} for row in rows]
    show(rows, ("name", "title", "paper", "minutes", "engines"), as_json)


@listing.command()
@as_json_option
@with_option
def strategies(as_json: bool) -> None:
    """List the controller's strategies."""
    show(catalogue.strategy_rows(), ("name", "help"), as_json)


@listing.command()
@as_json_option
@with_option
def cc(as_json: bool) -> None:
    """List the congestion controls.

    Also list the engines that can run each of them.
    """
    show(catalogue.congestion_control_rows(), ("name", "help", "engines"), as_json)


@listing.command()
@as_json_option
@with_option
def topologies(as_json: bool) -> None:
    """List the kinds of topology and their parameters."""
    show(catalogue.topology_rows(), ("kind", "help", "params"), as_json)


@listing.command(name="kinds")
@as_json_option
@with_option
def kind_rows(as_json: bool) -> None:
    """List the kinds of networks, links, queues, traces and traffic.

    Also list the engines that have them.
    """
    show([*kinds.rows(), *kinds.traffic_rows()], ("part", "kind", "engines", "help"), as_json)


@listing.command()
@as_json_option
def worksheets(as_json: bool) -> None:
    """List the worksheets: exercises that the lab marks."""
    show(worksheet_loading.rows(), ("name", "title", "minutes", "points"), as_json)


@listing.command()
@click.argument("name")
@as_json_option
@with_option
def params(name: str, as_json: bool) -> None:
    """List the parameters of a strategy or of a kind of topology."""
    show(catalogue.parameter_rows(name), PARAMETER_COLUMNS, as_json)


@listing.command()
@click.argument("scenario")
@as_json_option
@with_option
def targets(scenario: str, as_json: bool) -> None:
    """List everything that can be changed while SCENARIO runs."""
    show(catalogue.target_rows(scenario), TARGET_COLUMNS, as_json)


@listing.command()
@click.argument("run", metavar="RUN")
@as_json_option
@with_option
def figures(run: str, as_json: bool) -> None:
    """List the figures of a finished run that a worksheet can ask for.

    RUN is a run folder, or the name of one in data/runs.
    """
    rows = [asdict(each) for each in drafting.figures(drafting.find(run))]
    show(rows, FIGURE_COLUMNS, as_json)


@listing.command(name="metrics")
@click.option("--markdown", is_flag=True, help="Print the table of docs/formats.md.")
@as_json_option
@with_option
def metric_rows(markdown: bool, as_json: bool) -> None:
    """List the quantities in samples and results, with unit and meaning."""
    rows = metrics.rows()
    if not markdown:
        show(rows, METRIC_COLUMNS, as_json)
        return
    paths = ([f"`{row[key]}`" if row[key] else "" for key in METRIC_COLUMNS[:2]] for row in rows)
    cells = [[*two, row["unit"], row["chart"]] for two, row in zip(paths, rows, strict=True)]
    click.echo(markdown_table(("in a sample", "in result.json", "unit", "drawn in"), cells))


def show(rows: Sequence[Row], columns: Sequence[str], as_json: bool) -> None:
    """Print `rows` as JSON with all their keys, or as a table of `columns` only."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif not rows:
        click.echo("none")
    else:
        cells = [[_text(row.get(column)) for column in columns] for row in rows]
        click.echo(text_table(columns, cells))


def _text(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "true" if value is True else "false" if value is False else value
