"""Runs of the papers are kept as long as nothing that decides them was changed."""

from __future__ import annotations

import shutil

import pytest

from lab.run.manifest import ROOT
from papers import sources


@pytest.fixture
def copy(tmp_path):
    for folder in (*sources.DECIDING, "docs"):
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "controller/strategies/loss_aware.py",
        "lab/engines/sim/core/laws/olia.py",
        "lab/engines/mininet/ebpf/coupled.h",
        "lab/radio/lte.py",
        "lab/run/metrics.py",
    ],
)
def test_a_changed_source_is_another_digest(copy, changed):
    before = sources.digest(copy)
    assert before == sources.digest()
    (copy / changed).write_text((copy / changed).read_text() + "\n")
    assert sources.digest(copy) != before


def test_a_changed_text_is_not(copy):
    before = sources.digest(copy)
    (copy / "docs" / "design.md").write_text("another text")
    (copy / "lab" / "engines" / "notes.txt").write_text("a note")
    assert sources.digest(copy) == before
