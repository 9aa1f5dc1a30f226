"""Show docs/glossary.md as HTML."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from dashboard import markdown
from lab.run.manifest import ROOT

FILE = ROOT / "docs" / "glossary.md"


def page(path: Path = FILE) -> Markup:
    """Return the glossary as HTML, or a paragraph that says that the file is missing."""
    try:
        return markdown.html(path.read_text(encoding="utf-8"))
    except OSError:
        return Markup("<p>There is no glossary: docs/glossary.md is missing.</p>")
