"""The blocks of docs/extend.md run in their order in a copy of the project."""

from __future__ import annotations

import json
import re

import pytest
from machine import emulation, needs_emulation
from test_docs import EMULATION_S, FENCE, ROOT, project_copy, shell

pytestmark = pytest.mark.whole

__all__ = ["emulation"]
PAGE = (ROOT / "docs" / "extend.md").read_text()
GOODPUT = 1420 / 1514  # payload in a frame


def blocks(kind: str) -> list[str]:
    return [match["text"] for match in FENCE.finditer(PAGE) if match["kind"].strip() == kind]


def written() -> list[object]:
    """Each code file that the page writes."""
    return [
        pytest.param(match[2], id=match[1])
        for match in re.finditer(r"^cat >(\S+) <<'END'\n(.*?)^END$", PAGE, re.M | re.S)
        if match[1].endswith((".py", ".c"))
    ]


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the project after all blocks, and their output."""
    folder = project_copy(tmp_path_factory.mktemp("extended") / "lab")
    before = texts(folder)
    printed = [shell(block, folder, 180) for block in blocks("sh extend")]
    assert texts(folder) == before  # the lab's own files were not edited
    return folder, "".join(printed)


def texts(folder) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for room in ("controller", "lab", "dashboard", "scenarios")
        for path in (folder / room).rglob("*")
        if path.suffix in (".py", ".c", ".h", ".yaml")
    }


def result(folder, name: str) -> dict:
    return json.loads((folder / "data" / name / "result.json").read_text())


def manifest(folder, name: str) -> dict:
    return json.loads((folder / "data" / name / "manifest.json").read_text())


@pytest.mark.parametrize("text", written())
def test_it_is_twenty_lines(text):
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= 20


def test_check_names_the_imported_file(extended):
    folder, printed = extended
    assert f"imported {folder}/my/first_only.py: strategy 'first_only'" in printed
    assert f"imported {folder}/my/doorway.py: topology 'doorway'" in printed


def test_the_strategy_is_listed_and_its_parameter_described(extended):
    _, printed = extended
    assert re.search(
        r"keep +1 +subflows +1 +16 +- +How many of each connection carry data", printed
    )


def test_the_strategy_acts(extended):
    folder, _ = extended
    subflows = result(folder, "mine/first_only-1")["connections"][0]["subflows"]
    assert [each["backup_s"] > 15 for each in subflows] == [False, True, True]
    assert result(folder, "mine/first_only-1")["throughput_mbps"] < 8 * GOODPUT
    assert result(folder, "mine/none-1")["throughput_mbps"] > 2 * 8 * GOODPUT


def test_its_parameter_can_be_changed_while_it_runs(extended):
    folder, _ = extended
    subflows = result(folder, "flipped")["connections"][0]["subflows"]
    decided = pytest.approx(10, abs=2)  # within an interval
    assert [each["backup_s"] == decided for each in subflows] == [False, True, True]


def test_the_topology_carries_what_its_door_lets_through(extended):
    folder, _ = extended
    both, one = (
        result(folder, f"doorway/{name}-1")["throughput_mbps"] for name in ("none", "first_only")
    )
    assert both == pytest.approx(15 * GOODPUT, rel=0.1)
    assert result(folder, "doorway/expected_throughput-1")["throughput_mbps"] == pytest.approx(
        15 * GOODPUT, rel=0.1
    )
    assert one == pytest.approx(10 * GOODPUT, rel=0.1)


def test_the_network_of_mininet_runs_in_the_simulator(extended):
    folder, printed = extended
    assert "two_of_mininet: valid. Two paths of Mininet" in printed
    assert result(folder, "two_of_mininet")["throughput_mbps"] > 0.9 * 12 * GOODPUT


def test_the_law_is_listed_for_both_engines_and_runs(extended):
    folder, printed = extended
    assert re.search(r"^scalable +Scalable TCP: .* sim, mininet *$", printed, re.MULTILINE)
    assert result(folder, "scalable")["cc"] == "scalable"
    assert result(folder, "scalable")["throughput_mbps"] > 20


def test_a_run_by_names_records_its_files(extended):
    folder, printed = extended
    assert re.search(r"^doorway +Two paths behind one shared link", printed, re.MULTILINE)
    rows = {each["name"]: each for each in manifest(folder, "by_name")["extensions"]}
    assert sorted(rows) == ["doorway", "first_only", "scalable", "waiting"]
    assert rows["scalable"]["path"] == str(folder / "my" / "scalable.py")
    for name in rows:
        copy = folder / "data" / "by_name" / "extensions" / f"{name}.py"
        assert copy.read_bytes() == (folder / "my" / f"{name}.py").read_bytes()


class TestEmulation:
    pytestmark = [*needs_emulation, pytest.mark.takes(4)]

    def test_all_three_run_in_the_emulation(self, extended):
        folder, _ = extended
        for block in blocks("sh extend emulation"):
            shell(block, folder, EMULATION_S)
        found = result(folder, "emulated")
        assert found["mptcp"]["verified"]
        assert found["cc"] == "scalable"
        subflows = found["connections"][0]["subflows"]
        assert [each["backup_s"] > 5 for each in subflows] == [False, True]
        found = result(folder, "emulated_mininet")
        assert found["mptcp"]["verified"]
        assert found["throughput_mbps"] > 8 * GOODPUT  # of 8 + 4 Mb/s
