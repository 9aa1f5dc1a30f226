"""Read and write Markdown pages of the documentation. A crash never leaves a half-written page.

New rows can be merged into a table of an existing page. A command that repeats only some runs then
replaces the rows of these runs, and keeps all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lab.errors import LabError

Row = tuple[str, ...]  # the cells of a row of a table
Key = Callable[[Row], tuple[str, ...]]


def rows_below(text: str, heading: str) -> list[Row]:
    """Return the rows of the first table below a heading, without the table's head.

    `heading` is a whole line such as `## Runs`. If there is no such heading or no table below it,
    the list is empty.
    """
    _, _, rest = text.partition(f"{heading}\n")
    lines = rest.partition("\n## ")[0].splitlines()
    table = [line for line in lines if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line[2:-2].split(" | ")) for line in table[1:]]


def merged(old: Sequence[Row], new: Sequence[Row], key: Key, order: Sequence[str]) -> list[Row]:
    """Return all rows of `new`, and those rows of `old` whose key no new row has.

    `key` returns the key of a row. The result is sorted by the position of `key(row)[0]` in
    `order`. Rows whose `key(row)[0]` is not in `order` come last. Rows with the same `key(row)[0]`
    keep their order.
    """
    made = {key(row) for row in new}
    rows = [*(row for row in old if key(row) not in made), *new]
    place = {name: n for n, name in enumerate(order)}
    return sorted(rows, key=lambda row: place.get(key(row)[0], len(place)))


def read_page(path: Path) -> str:
    """Return the text of a page. Return "" if the file does not exist. Raise `LabError` if it
    cannot be read."""
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except OSError as error:
        raise LabError(f"read {path}: {error.strerror}") from error


def write_page(path: Path, text: str) -> None:
    """Write the text to a temporary file in the same folder, then rename this file to `path`. Raise
    `LabError` if that fails."""
    draft = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
