"""CSV files that a scenario names. What they hold takes the name's place, so that a run and its
digest have it.

- `sizes` of an entry of `traffic`: a distribution, with the columns `size_kb` and `fraction`: the
  part of flows, or objects of pages, that are at most as large (`flow_sizes`).
- `walks` of `mobility`: where users are, and when, with the columns `t_s`, `user`, `x_m` and `y_m`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from lab.errors import RequestError, show
from lab.scenario.files import Files
from lab.scenario.flow_sizes import PUBLISHED

SIZES = ["size_kb", "fraction"]
WALKS = ["t_s", "user", "x_m", "y_m"]
MOST_PLACES = 20_000  # of a file


def with_csv_files(raw: dict[str, Any], source: str, files: Files | None) -> dict[str, Any]:
    """Return the content of a scenario file, with points for the names of CSV files.

    Raise `RequestError`, which begins with `source`, if such a file cannot be read.
    """
    flows, mobility = raw.get("traffic"), raw.get("mobility")
    if isinstance(flows, list):
        raw = raw | {"traffic": [_with_points(flow, source, files) for flow in flows]}
    if isinstance(mobility, dict) and isinstance(name := mobility.get("walks"), str):
        doing = f"{source}: mobility: walks"
        if PurePath(name).suffix != ".csv":
            raise RequestError(f"{doing}: {show(name)} is no CSV file")
        raw = raw | {"mobility": mobility | {"walks": _read(name, files, _walks, doing)}}
    return raw


def _with_points(flow: Any, source: str, files: Files | None) -> Any:
    name = flow.get("sizes") if isinstance(flow, dict) else None
    if not isinstance(name, str) or PurePath(name).suffix != ".csv":
        return flow
    return flow | {"sizes": _read(name, files, _sizes, f"{source}: traffic: sizes")}


def _read(name: str, files: Files | None, parsed: Callable[[str], Any], doing: str) -> Any:
    if files is None:
        raise RequestError(f"{doing}: a path is accepted only in a scenario file")
    try:
        path, content = files.read(name)
        return parsed(content.decode("utf-8-sig"))
    except RequestError as error:
        raise RequestError(f"{doing}: {error}") from error
    except ValueError as error:
        raise RequestError(f"{doing}: {path}: {error}") from error


def _rows(text: str) -> list[list[str]]:
    return [[each.strip() for each in row] for row in csv.reader(text.splitlines()) if row]


def _sizes(text: str) -> list[list[float]]:
    rows = _rows(text)
    if not rows or rows[0] != SIZES:
        raise ValueError(
            f"begin with the header {','.join(SIZES)}, then a row for each point, or name one of "
            f"{', '.join(PUBLISHED)}"
        )
    found = []
    for number, row in enumerate(rows[1:], 2):
        try:
            size_kb, fraction = map(float, row)
        except ValueError as error:
            raise ValueError(f"row {number}: {','.join(row)} is no size and fraction") from error
        found.append([size_kb, fraction])
    return found


def _walks(text: str) -> dict[str, list[list[float]]]:
    rows = _rows(text)
    if not rows or rows[0] != WALKS:
        raise ValueError(f"begin with the header {','.join(WALKS)}, then a row for each place")
    if len(rows) - 1 > MOST_PLACES:
        raise ValueError(f"it has {len(rows) - 1:,} places, and {MOST_PLACES:,} is the most")
    found: dict[str, list[list[float]]] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            t_s, user, x_m, y_m = row
            found.setdefault(user, []).append([float(t_s), float(x_m), float(y_m)])
        except ValueError as error:
            raise ValueError(f"row {number}: {','.join(row)} is no time, user and place") from error
    return found
