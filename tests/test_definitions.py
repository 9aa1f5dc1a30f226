"""docs/definitions.md is complete, and the functions and tests that it names exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from lab import metrics
from lab.frame import ApSample, LinkSample, SubflowSample, UserSample
from lab.run import calls
from lab.run import result as result_json
from lab.run.reading import SEAL, SEALED
from lab.run.report import ConnectionReport, MptcpVerdict, Report, SubflowReport, VideoReport
from lab.run.transfers import Transfer, section, videos_section
from lab.scenario import loading, targets

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "definitions.md").read_text(encoding="utf-8")
WRITES_EVENTS = ("lab/run/runner.py", "lab/engines/sim", "lab/engines/mininet/engine.py")
WRITES_LINES = ("controller/decision_log.py", "controller/pox_ext/session.py")
RECORDING = {"_note", "_event", "_record_event", "record", "event"}


def rows(section: str) -> dict[str, list[str]]:
    """Other cells of each row by the names in its first cell."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    found: dict[str, list[str]] = {}
    for line in lines:
        first, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        for name in re.findall(r"`([^`]+)`", first):
            assert name not in found, f"{name} has two definitions"
            found[name] = cells
    return found


SECTIONS = ("Flip targets", "Events", "Samples", "Results")
NAMED = [
    pytest.param(name, cells, id=f"{section}-{name}")
    for section in SECTIONS
    for name, cells in rows(section).items()
]


@cache
def defined(path: Path) -> frozenset[str]:
    """Functions and classes of a module; methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}.{name}" for name in inner}
    return frozenset(found)


@pytest.mark.parametrize(("name", "cells"), NAMED)
def test_each_row_has_a_definition_a_function_and_a_test(name, cells):
    definition, functions, tests = cells
    assert definition.endswith(".")
    named = re.findall(r"`([^`:]+)(?::([^`]+))?`", functions + tests)
    assert any(path.startswith("tests/") for path, _ in named)
    assert any(not path.startswith("tests/") for path, _ in named)
    for path, function in named:
        assert (ROOT / path).is_file(), path
        assert not function or function in defined(ROOT / path), f"{path}:{function}"


def pattern(target: str) -> str:
    """The target with placeholders, such as "link.ID.loss" for "link.up1.loss"."""
    match target.split("."):
        case ["strategy", _]:
            return "strategy.PARAMETER"
        case ["link", _, what]:
            return f"link.ID.{what}"
        case ["link", _, "queue", "packets"]:
            return "link.ID.queue.packets"
        case ["link", _, way, "queue", "packets"]:
            return f"link.ID.{way}.queue.packets"
        case ["link", _, way, what]:
            return f"link.ID.{way}.{what}"
        case ["user", _, what]:
            return f"user.ID.{what}"
        case ["endpoint", _, _]:
            return "endpoint.USER.NAME"
        case ["iface", _, _, what]:
            return f"iface.HOST.NAME.{what}"
        case ["cell", _, what]:
            return f"cell.AP.{what}"
        case ["cell", _, _, way, what]:
            return f"cell.AP.USER.{way}.{what}"
        case ["cell", _, _, what]:
            return f"cell.AP.USER.{what}"
    return target


def test_every_target_of_every_scenario_is_defined():
    known = {
        pattern(target)
        for name in loading.names()
        for target in targets.targets(loading.load(name))
    }
    assert set(rows("Flip targets")) == known


def kinds() -> Iterator[str]:
    """Kinds of events that the code writes."""
    for place in WRITES_EVENTS:
        path = ROOT / place
        for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    of_ledger = "ledger" in ast.unparse(node.func.value)
                    texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
                    if texts and not of_ledger and node.func.attr in RECORDING:
                        yield str(texts[0])
    for place in WRITES_LINES:
        for node in ast.walk(ast.parse((ROOT / place).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "kind":
                        assert isinstance(value, ast.Constant)
                        yield str(value.value)


def test_every_kind_of_event_is_defined():
    assert set(rows("Events")) == set(kinds())


def names(kind: type, prefix: str) -> set[str]:
    return {f"{prefix}.{field.name}" for field in fields(kind)}


def test_every_field_of_a_sample_is_defined():
    known = {"t", "link.mbps"}
    for kind, prefix in (
        (ApSample, "ap"),
        (LinkSample, "link"),
        (UserSample, "user"),
        (SubflowSample, "sf"),
    ):
        known |= names(kind, prefix)
    known |= {each.path.replace(".ID", "") for each in metrics.BUILT_IN if each.value}
    assert set(rows("Samples")) == known


def test_every_field_of_a_result_is_defined():
    header = result_json.Header(
        "run", "scenario", "none", "sim", 1, 1.0, "complete", time_dilation=4.0
    )
    result = result_json.document(header, loading.load("testbed_wifi_lte").network, [], Report())
    parts = {*metrics.SECTIONS.values(), "fairness"}
    known = set(result) - parts - {"connections", "mptcp"} | {"error", *SEALED, SEAL}
    for part in ("aps", "users"):
        known |= {f"{part}.{key}" for each in result[part].values() for key in each}
    declared = [each.number_path().replace(".ID", "") for each in metrics.BUILT_IN if each.number]
    known |= {path for path in declared if path.partition(".")[0] in parts}
    known |= names(ConnectionReport, "connections") | names(SubflowReport, "subflows")
    known |= names(MptcpVerdict, "mptcp")
    known |= {f"flows.{key}" for key in section([Transfer("file", "ue1", "ue1-1", 0, 1, 1, 1)])}
    video = VideoReport("ue1-1", "ue1", 1.0, 0.5, 0, 0.0, 2)
    known |= {f"video.{key}" for key in videos_section([video])}
    known |= {"call.count", "call.calls"} | {f"call.{key}" for key in calls.KEYS}
    assert set(rows("Results")) == known


def test_definitions_are_those_that_the_metrics_declare():
    for each in metrics.BUILT_IN:
        if each.sampled:
            assert rows("Samples")[each.path.replace(".ID", "")][0] == each.meaning
        if each.number and not each.read and not each.number.startswith("tiers."):
            assert rows("Results")[each.number_path().replace(".ID", "")][0] == each.number_meaning


def test_each_field_of_a_sample_is_a_declared_metric():
    declared = {each.path.replace(".ID", "") for each in metrics.BUILT_IN if each.sampled}
    assert declared | {"t", "sf.user", "sf.ap"} == set(rows("Samples"))
