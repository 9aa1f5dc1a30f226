"""Imports point one way: controller <- lab <- dashboard."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "controller": {"controller"},
    "lab": {"lab", "controller"},
    "dashboard": {"dashboard", "lab", "controller"},
}
NEVER = {  # folder: modules it must not touch, wherever else they may be used
    "controller": {"flask", "random", "time", "socket", "subprocess", "pox"},
    "lab": {"flask", "waitress"},
}
EXEMPT = {"controller": "pox_ext", "lab": "engines"}  # the brain's extension for POX; engines that are the clock


def imported(path: Path) -> set[str]:
    """Every module a file imports, at the top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(("." * node.level) + (node.module or ""))
    return found


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_no_arrow_points_back(folder):
    ours = set(MAY_IMPORT)
    for path in files(folder):
        back = {name for name in imported(path) if name.split(".")[0] in ours - MAY_IMPORT[folder]}
        assert not back, f"{path.relative_to(ROOT)} imports {', '.join(sorted(back))}"


@pytest.mark.parametrize("folder", NEVER)
def test_each_layer_keeps_to_its_own_tools(folder):
    for path in files(folder):
        if EXEMPT[folder] not in path.relative_to(ROOT / folder).parts:
            wrong = {name for name in imported(path) if name.split(".")[0] in NEVER[folder]}
            assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_the_dashboard_never_imports_engines():
    for path in files("dashboard"):
        assert not any(name.startswith("lab.engines") for name in imported(path)), path


def test_only_one_module_of_the_emulation_imports_mininet():
    for path in files("lab"):
        if {name.split(".")[0] for name in imported(path)} & {"mn_wifi", "mininet"}:
            assert path.parent == ROOT / "lab" / "engines" / "mininet", path
