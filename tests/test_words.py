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


TEXTS = ("*.py", "*.md", "*.html", "*.js", "*.yaml", "*.c", "*.h", "*.sh")
PLACES = (*ROOMS, "templates", "docs", "scenarios")


def retired() -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield each expression that is retired, and what to write instead."""
    lines = (ROOT / "tests" / "words" / "retired.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            expression, _, instead = line.partition(" => ")
            yield re.compile(expression), instead


def texts() -> Iterator[Path]:
    """Yield the files whose words people read."""
    yield ROOT / "README.md"
    yield ROOT / "run_lab.sh"
    for place in PLACES:
        for kind in TEXTS:
            yield from sorted((ROOT / place).rglob(kind))


def test_retired_words_stay_away():
    words = list(retired())
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]} (write: {instead})"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for expression, instead in words
        if expression.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_retired_expression_would_be_found():
    for expression, instead in retired():
        assert instead
        assert not expression.search(""), expression
