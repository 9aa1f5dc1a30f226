"""Each test has one tier: `run_lab.sh test` runs two of them, `.ci/night` the third."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).resolve().parents[1]
MARKERS = ("emulation", "long", "oracle")


def selections(file: str) -> set[str]:
    return set(re.findall(r'-m "?([^"\n|]+?)"?(?: --| \|\||$)', (ROOT / file).read_text(), re.M))


@pytest.mark.parametrize("present", list(product((False, True), repeat=3)), ids=str)
def test_every_kind_of_test_is_selected_once(present):
    marked = dict(zip(MARKERS, present, strict=True))
    everywhere = selections("run_lab.sh") - {"pytest", "pip", "venv"} | selections(".ci/night")
    tiers = [each for each in everywhere if any(marker in each for marker in MARKERS)]
    chosen = [
        each
        for each in tiers
        if Expression.compile(each).evaluate(lambda name, **_: marked.get(name, False))
    ]
    assert len(chosen) == 1, chosen


def test_contributing_names_each_marker_and_both_scripts():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    markers = re.findall(r'^    "(\w+): ', (ROOT / "pyproject.toml").read_text(), re.M)
    assert set(MARKERS) <= set(markers)
    assert [each for each in [*markers, ".ci/run", ".ci/night"] if f"`{each}`" not in text] == []
