"""Load a worksheet file: return a frozen `Worksheet`, or raise `RequestError`."""

from __future__ import annotations

from pathlib import Path

from lab.errors import RequestError, unknown
from lab.scenario import checking
from lab.scenario.yaml_text import read
from lab.worksheets.consistency import problems
from lab.worksheets.schema import Worksheet

FOLDER = Path(__file__).resolve().parents[2] / "worksheets"


def names() -> list[str]:
    """Return the names of the worksheets that come with the lab."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(wanted: str) -> Worksheet:
    """Return the worksheet `wanted`: a name from `names`, or the path of a file.

    Raise `RequestError` with one line for each problem that is found.
    """
    path = find(wanted)
    worksheet = checking.validate(Worksheet, read(path), path.name)
    if found := list(problems(worksheet)):
        raise RequestError("\n".join(f"{path.name}: {problem}" for problem in found))
    return worksheet


def find(wanted: str) -> Path:
    """Return the file of a worksheet, given by its name or by a path. Raise `RequestError` if there
    is none."""
    path = FOLDER / f"{wanted}.yaml" if wanted in names() else Path(wanted)
    if not path.is_file():
        raise RequestError(f"worksheet {unknown(wanted, names())}, or give a file")
    return path


def rows() -> list[dict[str, str | int]]:
    """Return one dictionary per worksheet: its name, title, minutes and points. If a worksheet
    cannot be loaded, its title is the error message."""
    return [_row(name) for name in names()]


def _row(name: str) -> dict[str, str | int]:
    try:
        found = load(name)
    except RequestError as error:
        return {"name": name, "title": str(error)}
    return {"name": name, "title": found.title, "minutes": found.minutes, "points": found.points}
