"""Distributions of sizes in CSV files, which `sizes` of an entry of `traffic` may name.

The columns are `size_kb` and `fraction`: of the flows, or objects of pages, that are at most as
large (`flow_sizes`). The points take the place of the name, so a run and its digest have them.
"""

from __future__ import annotations

import csv
from pathlib import PurePath
from typing import Any

from lab.errors import RequestError
from lab.scenario.files import Files
from lab.scenario.flow_sizes import PUBLISHED

COLUMNS = ["size_kb", "fraction"]


def with_size_files(raw: dict[str, Any], source: str, files: Files | None) -> dict[str, Any]:
    """Return the content of a scenario file with points for each CSV file in `traffic`.

    Raise `RequestError`, which begins with `source`, if such a file cannot be read.
    """
    flows = raw.get("traffic")
    if not isinstance(flows, list):
        return raw
    return raw | {"traffic": [_with_points(flow, source, files) for flow in flows]}


def _with_points(flow: Any, source: str, files: Files | None) -> Any:
    name = flow.get("sizes") if isinstance(flow, dict) else None
    if not isinstance(name, str) or PurePath(name).suffix != ".csv":
        return flow
    doing = f"{source}: traffic: sizes"
    if files is None:
        raise RequestError(f"{doing}: a path is accepted only in a scenario file")
    try:
        path, content = files.read(name)
        return flow | {"sizes": _points(content)}
    except RequestError as error:
        raise RequestError(f"{doing}: {error}") from error
    except ValueError as error:
        raise RequestError(f"{doing}: {path}: {error}") from error


def _points(content: bytes) -> list[list[float]]:
    rows = [row for row in csv.reader(content.decode().splitlines()) if row]
    if not rows or [each.strip() for each in rows[0]] != COLUMNS:
        raise ValueError(
            f"begin with the header {','.join(COLUMNS)}, then a row for each point, or name one of "
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
