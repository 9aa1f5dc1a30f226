"""Read and write a page of the documentation. A crash never leaves a half-written page."""

from __future__ import annotations

from pathlib import Path

from lab.errors import LabError


def read_page(path: Path) -> str:
    """Return the text of a page. Return an empty text if the page does not exist."""
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except OSError as error:
        raise LabError(f"read {path}: {error.strerror}") from error


def write_page(path: Path, text: str) -> None:
    """Write a page: write a temporary file in the same folder, then rename it to `path`."""
    draft = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
