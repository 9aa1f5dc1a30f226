"""The packet core imports nothing outside its folder, and its modules form no import circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from lab.engines.sim import core
from lab.run.manifest import ROOT

PACKAGE = core.__name__
FOLDER = ROOT.joinpath(*PACKAGE.split("."))
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FOLDER.rglob("*.py")
}


def imported(module: str) -> set[str]:
    """Imports anywhere in the module's source."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0
            for each in node.names:
                name = f"{node.module}.{each.name}"
                found.add(name if name in MODULES else node.module)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_the_core_imports_only_itself_and_the_standard_library(module):
    outside = {each for each in imported(module) if each not in MODULES}
    assert {each.split(".")[0] for each in outside} <= set(sys.stdlib_module_names)


def test_the_modules_of_the_core_form_no_circle():
    TopologicalSorter({module: imported(module) for module in MODULES}).prepare()


def test_importing_the_core_loads_no_compiler():
    script = f"import sys, {PACKAGE}.event_loop; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "False\n"


def test_functions_are_short_and_modules_are_read_in_ten_minutes():
    for path in MODULES.values():
        text = path.read_text(encoding="utf-8")
        if path.name != "state.py":  # declarations, one a line
            assert len(text.splitlines()) <= 300, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"
