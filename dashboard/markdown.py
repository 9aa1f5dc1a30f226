"""Conversion of Markdown to HTML. Everything in the text that is not listed here is escaped,
including HTML, so that its author cannot add scripts to a page.

Headings, lists, tables, paragraphs, fenced code, `code`, **bold**, *emphasis* and links to web
pages are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup, escape

RULE_OF_TABLE = re.compile(r"[|:\-\s]+\|[|:\-\s]*")
NUMBERED = re.compile(r"\d+[.)]\s+")
ITEMS = {"item": "ul", "number": "ol"}


def html(text: str) -> Markup:
    return Markup("\n").join(_fenced(text))


def with_code(text: str) -> Markup:
    """Convert text to HTML: text between backticks becomes <code>, and all else is escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - its parts are escaped


def _fenced(text: str) -> Iterator[Markup]:
    """Yield the blocks of a text; the parts between lines of ``` are code."""
    for n, part in enumerate(re.split(r"^```.*\n?", text, flags=re.MULTILINE)):
        if n % 2:
            yield Markup("<pre><code>{}</code></pre>").format(part)
        else:
            yield from _blocks(part)


def _blocks(text: str) -> Iterator[Markup]:
    lines = [line for line in text.splitlines() if not RULE_OF_TABLE.fullmatch(line)]
    for kind, group in groupby(_continued(lines), _kind):
        block = list(group)
        match kind:
            case "heading":
                for line in block:
                    level = min(len(line) - len(line.lstrip("#")), 3)
                    yield _tag(f"h{level}", _inline(line.lstrip("# ")))
            case "item" | "number":
                texts = (
                    NUMBERED.sub("", line, 1) if kind == "number" else line[2:] for line in block
                )
                yield _tag(ITEMS[kind], _joined(_tag("li", _inline(each)) for each in texts))
            case "row":
                yield _table(block)
            case "text":
                yield _tag("p", _inline(" ".join(block)))


def _continued(lines: Sequence[str]) -> list[str]:
    """Join indented lines to the list item before them."""
    found: list[str] = []
    for line in lines:
        if line.startswith("  ") and line.strip() and found and _kind(found[-1]) in ITEMS:
            found[-1] = f"{found[-1]} {line.strip()}"
        else:
            found.append(line)
    return found


def _kind(line: str) -> str:
    if line.startswith("#"):
        return "heading"
    if line.startswith(("- ", "* ")):
        return "item"
    if NUMBERED.match(line):
        return "number"
    if line.startswith("|"):
        return "row"
    return "text" if line.strip() else "empty"


def _table(lines: Sequence[str]) -> Markup:
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    head = _joined(_tag("th", _inline(cell)) for cell in rows[0])
    body = _joined(
        _tag("tr", _joined(_tag("td", _inline(cell)) for cell in row)) for row in rows[1:]
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _inline(text: str) -> Markup:
    """Convert marks inside a line to HTML. Text between backticks has no other marks."""
    parts = re.split(r"`([^`]+)`", text)
    return _joined(
        _tag("code", escape(part)) if n % 2 else _marks(part) for n, part in enumerate(parts)
    )


def _marks(text: str) -> Markup:
    found = str(escape(text))
    found = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", found)
    found = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", r"<em>\1</em>", found)
    found = re.sub(
        r"\[([^\]]+)\]\((https?://[^)\s<>]+)\)", r'<a href="\2" rel="noreferrer">\1</a>', found
    )
    return Markup(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", found))  # noqa: S704 - its parts are escaped


def _tag(name: str, inside: Markup) -> Markup:
    return Markup(f"<{name}>{{}}</{name}>").format(inside)  # noqa: S704 - its parts are escaped


def _joined(parts: Iterator[Markup]) -> Markup:
    return Markup("").join(parts)
