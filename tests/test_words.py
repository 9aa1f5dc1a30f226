"""Keep the project's words plain: docstrings begin with a verb, and retired words stay away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERBS = frozenset((ROOT / "tests" / "words" / "verbs.txt").read_text(encoding="utf-8").split())
ROOMS = ("controller", "dashboard", "lab")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module: its own, its classes' and its functions'."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def without_verb(folder: str) -> list[str]:
    """List the docstrings below a folder whose first word is no verb."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(path)
        if re.sub(r"\W", "", text.split()[0]).lower() not in VERBS
    ]


def test_every_docstring_begins_with_a_verb():
    wrong = [each for room in ROOMS for each in without_verb(room)]
    assert not wrong, "\n".join(wrong)
