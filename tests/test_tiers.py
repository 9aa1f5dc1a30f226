"""Every test is in a selection of `run_lab.sh test` or of `.ci/night`, and in each of them once at most."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).resolve().parents[1]
MARKERS = ("emulation", "long", "oracle")


def selections(file: str) -> set[str]:
    """What `-m` selects tests by in a script."""
    found = re.findall(r'-m "?([^"\n|]+?)"?(?: --| \|\||$)', (ROOT / file).read_text(), re.M)
    return {each for each in found if any(marker in each for marker in MARKERS)}


@pytest.mark.parametrize("present", list(product((False, True), repeat=3)), ids=str)
def test_every_kind_of_test_is_selected_and_never_twice_by_a_script(present):
    marked = dict(zip(MARKERS, present, strict=True))
    chosen = {
        file: [
            each
            for each in selections(file)
            if Expression.compile(each).evaluate(lambda name, **_: marked.get(name, False))
        ]
        for file in ("run_lab.sh", ".ci/night")
    }
    assert max(map(len, chosen.values())) == 1, chosen
    both = len(chosen["run_lab.sh"]) + len(chosen[".ci/night"])
    # by night all of the emulation, for .ci/run has no time for it on a slow machine
    assert both == (2 if marked["emulation"] and not marked["long"] else 1), chosen


def test_contributing_names_each_marker_and_both_scripts():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    markers = re.findall(r'^    "(\w+): ', (ROOT / "pyproject.toml").read_text(), re.M)
    assert set(MARKERS) <= set(markers)
    assert [each for each in [*markers, ".ci/run", ".ci/night"] if f"`{each}`" not in text] == []
