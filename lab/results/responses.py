"""A table of chosen numbers, with one row for each group of runs and the values in which they
differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.results import compare
from lab.results.compare import Group, Window
from lab.results.statistics import Estimate, estimate
from lab.results.tables import text_table


@dataclass(frozen=True)
class Row:
    """`values` are those of the varied keys; None where the runs have no such key. `n` is the
    number of runs."""

    values: tuple[Any, ...]
    strategy: str
    n: int
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class Table:
    """`keys` are the varied keys of the scenario, and `responses` the paths of numbers in
    result.json. `left_out` has a sentence about each run that is left out."""

    keys: tuple[str, ...]
    responses: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]

    def text(self) -> str:
        """Return the table as aligned text: means, with 95 % intervals where there are enough
        runs."""
        units = (f" [{unit}]" if (unit := compare.unit(each)) else "" for each in self.responses)
        titles = [f"{each}{unit}" for each, unit in zip(self.responses, units, strict=True)]
        cells = [
            [*map(_cell, row.values), row.strategy, row.n, *(each.text for each in row.estimates)]
            for row in self.rows
        ]
        return text_table([*self.keys, "strategy", "n", *titles], cells)

    def to_json(self) -> str:
        return json.dumps(
            [
                {
                    **dict(zip(self.keys, row.values, strict=True)),
                    "strategy": row.strategy,
                    "n": row.n,
                    **dict(zip(self.responses, map(asdict, row.estimates), strict=True)),
                }
                for row in self.rows
            ],
            indent=1,
        )


def table(folders: Sequence[Path], responses: Sequence[str], window: Window | None) -> Table:
    """Return the table of the runs in and below these folders."""
    groups, left_out = compare.groups_and_left_out(folders, window)
    keys = tuple(compare.varied([run for group in groups for run in group.runs]))
    rows = tuple(_row(each, keys, responses) for each in groups)
    return Table(keys, tuple(responses), rows, tuple(left_out))


def _row(group: Group, keys: Sequence[str], responses: Sequence[str]) -> Row:
    values = tuple(json.loads(group.settings.get(key, "null")) for key in keys)
    estimates = tuple(estimate(group.values(each)) for each in responses)
    return Row(values, group.runs[0].strategy, len(group.runs), estimates)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)
