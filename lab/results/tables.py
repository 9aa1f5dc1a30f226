"""Tables as text: aligned columns for a terminal, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def text_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table with the column titles `head` as aligned text.

    Columns that contain only numbers and None are right-aligned.
    """
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [max(len(row[n]) for row in [list(head), *cells]) for n in range(len(head))]
    right = [
        all(isinstance(row[n], (int, float)) or row[n] is None for row in rows)
        for n in range(len(head))
    ]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)
        ).rstrip()

    return "\n".join([line(head), *(line(row) for row in cells)])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_markdown_row(head), f"|{'---|' * len(head)}", *map(_markdown_row, rows)]
    return "\n".join(lines)


def cell_text(value: Any) -> str:
    """Format a table cell: a float with three decimals, None as `-`."""
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
