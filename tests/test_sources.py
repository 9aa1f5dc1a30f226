"""Runs of the papers are kept until a file that decides them changes."""

from __future__ import annotations

import shutil

import pytest

from lab.run import manifest
from lab.run.manifest import ROOT
from papers import commands


@pytest.fixture
def copy(tmp_path):
    left_out = shutil.ignore_patterns("__pycache__")
    for place in (*commands.DECIDING, "docs"):
        if (ROOT / place).is_dir():
            shutil.copytree(ROOT / place, tmp_path / place, ignore=left_out)
        else:
            shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "controller/strategies/loss_aware.py",
        "lab/engines/sim/core/laws/olia.py",
        "lab/engines/mininet/ebpf/coupled.h",
        "lab/radio/lte.py",
        "lab/metrics.py",
        "lab/congestion.py",
    ],
)
def test_a_changed_source_is_another_digest(copy, changed):
    before = commands.digest(copy)
    assert before == commands.digest()
    (copy / changed).write_text((copy / changed).read_text() + "\n")
    assert commands.digest(copy) != before


def test_a_changed_text_is_not(copy):
    before = commands.digest(copy)
    (copy / "docs" / "design.md").write_text("another text")
    (copy / "lab" / "engines" / "notes.txt").write_text("a note")
    assert commands.digest(copy) == before


def test_runs_of_a_changed_tree_are_kept_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(manifest, "commit", lambda: "0123456789ab")
    clean = commands.runs_below(tmp_path)
    for made in ("0123456789ab+", None):
        monkeypatch.setattr(manifest, "commit", lambda made=made: made)
        assert commands.runs_below(tmp_path).name == f"{clean.name}+"
