"""Conversion of Markdown (CommonMark with tables) to HTML.

HTML in the text is escaped, and only links to web pages become links. So the author of a text
cannot add scripts to a page, or make it load files from elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

WEB = ("http://", "https://")


def html(text: str) -> Markup:
    from markdown_it import MarkdownIt  # slow to load, and few pages need it

    parser = MarkdownIt("js-default").disable("image")  # threads cannot share one
    parser.core.ruler.push("only_links_to_web_pages", _only_links_to_web_pages)
    return Markup(parser.render(text).strip())  # noqa: S704 - the parser escapes the text


def _only_links_to_web_pages(state: StateCore) -> None:
    """Replace links to anything but web pages by their texts."""
    hidden = False
    for token in (each for block in state.tokens for each in block.children or ()):
        if token.type == "link_open":
            target = str(token.attrGet("href"))
            hidden = not target.startswith(WEB)
            token.attrs = {"href": target, "rel": "noreferrer"}
        if token.type in ("link_open", "link_close"):
            token.hidden = hidden


def with_code(text: str) -> Markup:
    """Convert a text to HTML: parts between backticks become <code>, and everything else is
    escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - its parts are escaped
