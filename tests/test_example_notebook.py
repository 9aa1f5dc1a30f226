"""The cells of docs/example.ipynb run one after another, as Jupyter runs them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from test_docs import ROOT, copy

__all__ = ["copy"]
NOTEBOOK = ROOT / "docs" / "example.ipynb"
CHECKS = """
assert len(frames.results) == 20 and not frames.left_out
assert set(table["count"]) == {5}
assert all(len(axes.get_lines()) for axes in map(plt.Figure.gca, map(plt.figure, plt.get_fignums())))
assert len(plt.get_fignums()) == 2
"""


def code(notebook: dict) -> list[str]:
    return ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]


@pytest.mark.whole
@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs locks/figures.txt"
)
def test_its_cells_run(copy):
    notebook = json.loads(NOTEBOOK.read_text())
    script = "\n".join([*code(notebook), CHECKS])
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=copy / "docs",
        env=os.environ | {"MPLBACKEND": "Agg", "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_it_has_no_outputs():
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    for each in notebook["cells"]:
        assert each["cell_type"] == "markdown" or not (each["outputs"] or each["execution_count"])
