"""Replace a page on disk as a whole."""

from __future__ import annotations

from pathlib import Path

from lab.errors import LabError


def read_page(path: Path) -> str:
    """Return the text of a page; empty if there is no page yet."""
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except OSError as error:
        raise LabError(f"read {path}: {error.strerror}") from error


def write_page(path: Path, text: str) -> None:
    """Write a page: to a file beside it first, which then replaces it."""
    draft = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
