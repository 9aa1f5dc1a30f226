"""Print the lists of the catalogue: as columns for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from lab.results.tables import text_table
from lab.scenario.catalogue import Row


def show(rows: Sequence[Row], columns: Sequence[str], as_json: bool) -> None:
    """Print rows: all their keys as JSON, or the named columns."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif not rows:
        click.echo("none")
    else:
        cells = [[_text(row.get(column)) for column in columns] for row in rows]
        click.echo(text_table(columns, cells))


def scenarios(rows: Sequence[Row], as_json: bool) -> None:
    """Print the scenarios; a scenario that does not load shows its error as the title."""
    if not as_json:
        rows = [row | {"title": row.get("error", row["title"])} for row in rows]
    show(rows, ("name", "title", "paper", "minutes"), as_json)


def _text(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    if isinstance(value, float):
        return f"{value:g}"
    return "true" if value is True else "false" if value is False else value
