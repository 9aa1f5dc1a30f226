"""Workers with other sources are refused by name, before a batch starts and while it goes on."""

from __future__ import annotations

import shutil

import pytest
import test_cluster
from test_cluster import ROOT, cluster, lab, until

from lab.installed import FOLDERS

__all__ = ["cluster"]
pytestmark = [*test_cluster.pytestmark, pytest.mark.long]


@pytest.fixture
def edited(tmp_path):
    """Another version of the lab's sources, of which one comment differs."""
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / "edited" / name, ignore=ignored)
    with (tmp_path / "edited" / "lab" / "metrics.py").open("a") as file:
        file.write("# edited\n")
    return str(tmp_path / "edited")


def test_other_sources_are_refused_before_the_start(tmp_path, cluster, edited):
    cluster.start_worker("stranger", PYTHONPATH=edited)
    argv = ("run", "two_paths", "--repeat", 2, "--out", "x", "--cluster", cluster.address)
    process = lab(tmp_path, *argv)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2
    assert "worker stranger has sources of version" in said
    assert not (tmp_path / "x").exists()


def test_other_sources_are_refused_when_they_join(tmp_path, cluster, edited):
    argv = ("run", "two_paths", "--duration", 1, "--repeat", 2000, "--keep", "results")
    process = lab(tmp_path, *argv, "--out", "x", "--cluster", cluster.address)
    until((tmp_path / "x" / "none-5" / "result.json").exists)
    cluster.start_worker("stranger", PYTHONPATH=edited)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 4
    last = said.splitlines()[-1]
    assert last.startswith("error: --cluster: worker stranger has sources of version")
    assert not list((tmp_path / "x").glob(".*.part"))
