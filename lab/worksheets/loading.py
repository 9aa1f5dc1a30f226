"""Finding and loading worksheet files."""

from __future__ import annotations

import os
from pathlib import Path

from lab.errors import RequestError, unknown
from lab.scenario import schema
from lab.scenario.yaml_text import MOST_BYTES, parse, read
from lab.worksheets.consistency import problems
from lab.worksheets.schema import Worksheet

FOLDER = Path(__file__).resolve().parents[2] / "worksheets"


def names() -> list[str]:
    """Return the sorted names of the worksheets that come with the lab."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(wanted: str) -> Worksheet:
    """Load a worksheet. `wanted` is the name of a worksheet that comes with the lab, or the path of
    a file.

    Raise `RequestError` with one line for each problem in the worksheet.
    """
    path = find(wanted)
    return _checked(read(path), path.name)


def of_text(text: str, name: str) -> Worksheet:
    """Return the worksheet in the text of a file. `name` begins error messages.

    Raise `RequestError` with one line for each problem in the worksheet.
    """
    if len(text.encode()) > MOST_BYTES:
        raise RequestError(f"{name}: it is larger than {MOST_BYTES} bytes")
    return _checked(parse(text, name), name)


def _checked(content: object, name: str) -> Worksheet:
    worksheet = schema.validate(Worksheet, content, name)
    if found := list(problems(worksheet)):
        raise RequestError("\n".join(f"{name}: {problem}" for problem in found))
    return worksheet


def find(wanted: str) -> Path:
    """Return the path of a worksheet file. `wanted` is the name of a worksheet of the lab, or a
    path.

    Raise `RequestError` if there is no such file.
    """
    path = FOLDER / f"{wanted}.yaml" if wanted in names() else Path(wanted)
    if not os.path.isfile(path):  # also of a name that is too long for a file
        raise RequestError(f"worksheet {unknown(wanted, names())}, or give a file")
    return path


def rows() -> list[dict[str, str | int]]:
    """Return the name, title, minutes and points of each worksheet that comes with the lab.

    If a worksheet cannot be loaded, its title is the error message, and its minutes and points are
    missing.
    """
    return [_row(name) for name in names()]


def _row(name: str) -> dict[str, str | int]:
    try:
        found = load(name)
    except RequestError as error:
        return {"name": name, "title": str(error)}
    return {"name": name, "title": found.title, "minutes": found.minutes, "points": found.points}
