"""Convert docs/glossary.md to HTML.

Headings, lists, tables, paragraphs, `code` and **bold** are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from markupsafe import Markup, escape

from lab.run.manifest import ROOT

FILE = ROOT / "docs" / "glossary.md"


def page(path: Path = FILE) -> Markup:
    """Return the glossary as HTML, or a paragraph that says that the file is missing."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return Markup("<p>There is no glossary: docs/glossary.md is missing.</p>")
    return Markup("\n").join(_blocks(text))


def _blocks(text: str) -> Iterator[Markup]:
    lines = [line for line in text.splitlines() if not re.fullmatch(r"[|:\-\s]+\|[|:\-\s]*", line)]
    for kind, group in groupby(lines, _kind):
        block = list(group)
        match kind:
            case "heading":
                for line in block:
                    level = min(len(line) - len(line.lstrip("#")), 3)
                    yield _tag(f"h{level}", _inline(line.lstrip("# ")))
            case "item":
                yield _tag("ul", _joined(_tag("li", _inline(line[2:])) for line in block))
            case "row":
                yield _table(block)
            case "text":
                yield _tag("p", _inline(" ".join(block)))


def _kind(line: str) -> str:
    if line.startswith("#"):
        return "heading"
    if line.startswith(("- ", "* ")):
        return "item"
    if line.startswith("|"):
        return "row"
    return "text" if line.strip() else "empty"


def _table(lines: list[str]) -> Markup:
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    head = _joined(_tag("th", _inline(cell)) for cell in rows[0])
    body = _joined(
        _tag("tr", _joined(_tag("td", _inline(cell)) for cell in row)) for row in rows[1:]
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _inline(text: str) -> Markup:
    html = str(escape(text))
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    html = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html)
    return Markup(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", html))  # noqa: S704 - its parts are escaped


def _tag(name: str, inside: Markup) -> Markup:
    return Markup(f"<{name}>{{}}</{name}>").format(inside)  # noqa: S704 - its parts are escaped


def _joined(parts: Iterator[Markup]) -> Markup:
    return Markup("").join(parts)
