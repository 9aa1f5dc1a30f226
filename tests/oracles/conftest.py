"""The findings of all checks, printed as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

HEAD = ("check", "cases", "failures", "worst", "goal")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
ROWS: list[tuple[str, ...]] = []


def pytest_addoption(parser):
    parser.addoption("--truth", help="write the table into this file, between its two markers")


@pytest.fixture
def truth():
    """Add a row to the table: check, number of cases, number of failures, worst value, goal."""

    def add(check: str, cases: int, failures: int, worst: str, goal: str) -> None:
        ROWS.append((check, str(cases), str(failures), worst, goal))

    return add


def pytest_terminal_summary(terminalreporter, config):
    if not ROWS:
        return
    lines = [HEAD, ("---",) * len(HEAD), *sorted(ROWS)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in lines)
    terminalreporter.write_line(table)
    path = config.getoption("--truth", None)
    if path:
        text = Path(path).read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        Path(path).write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
