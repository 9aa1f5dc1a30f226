"""docs/extend.md does what it says: its blocks, as they stand and in their order, in a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from machine import emulation, needs_emulation
from test_docs import EMULATION_S, FENCE, ROOT, shell

pytestmark = pytest.mark.whole

__all__ = ["emulation"]
PAGE = (ROOT / "docs" / "extend.md").read_text()
GOODPUT = 1420 / 1514  # of a frame


def blocks(kind: str) -> list[str]:
    return [match["text"] for match in FENCE.finditer(PAGE) if match["kind"].strip() == kind]


def written(ending: str) -> list[str]:
    """The texts of the files with this ending that the page makes."""
    return [
        match[2]
        for match in re.finditer(r"^cat >(\S+) <<'END'\n(.*?)^END$", PAGE, re.M | re.S)
        if match[1].endswith(ending)
    ]


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the project after every block, and what they printed."""
    folder = tmp_path_factory.mktemp("extended") / "lab"
    shutil.copytree(
        ROOT,
        folder,
        ignore=shutil.ignore_patterns(".git", ".venv", "data", "__pycache__", ".*_cache"),
    )
    if not list((ROOT / ".venv").glob("run.stamp")):
        pytest.skip("runs the page's commands: start the tests with ./run_lab.sh test")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    # to compile for a folder that nobody has seen takes longer than these runs
    return folder, [
        shell(f"export NUMBA_DISABLE_JIT=1\n{block}", folder, 180) for block in blocks("sh extend")
    ]


def result(folder, name: str) -> dict:
    return json.loads((folder / "data" / name / "result.json").read_text())


@pytest.mark.parametrize("text", written(".py"), ids=["strategy", "topology", "law"])
def test_it_is_twenty_lines(text):
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= 20


def test_the_strategy_is_listed_and_its_parameter_described(extended):
    _, (_, ran, *_) = extended
    assert re.search(r"keep +1 +subflows +1 +16 +- +How many of each connection carry data", ran)


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


WINDOWS = """
from lab.engines.sim.core import congestion, layout as at
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology
nodes = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
flow = Flow("ue1-1", "ue1", "down", "mine", None, None)
network = Network(Topology("one", nodes, (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1"))), Multipath(), [flow], seed=1)
network.start(flow, "mine")
w = network.w
f = next(network.subflows()).place
w.window[f + at.CWND], w.window[f + at.SSTHRESH] = 10.0, 1.0
congestion.on_ack(w, f, 2, 0)
grown = w.window[f + at.CWND]
congestion.on_loss(w, f, 0)
print(grown, w.window[f + at.CWND])
"""


def test_the_law_runs_and_whoever_edits_it_sees_the_new_one(extended):
    folder, ran = extended
    assert re.search(r"^mine .*Scalable TCP", ran[-1], re.MULTILINE)
    assert result(folder, "scalable")["cc"] == "mine"
    assert result(folder, "scalable")["throughput_mbps"] > 20

    def windows() -> list[float]:
        program = [sys.executable, "-c", WINDOWS]
        settings = {
            "cwd": folder,
            "env": os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)},
        }
        done = subprocess.run(program, capture_output=True, text=True, check=True, **settings)
        return [float(each) for each in done.stdout.split()]

    assert windows() == pytest.approx([10.02, 8.7675])
    law = folder / "lab" / "engines" / "sim" / "core" / "laws" / "mine.py"
    law.write_text(law.read_text().replace("0.01 *", "0.03 *"))
    assert windows() == pytest.approx([10.06, 8.8025])


def test_what_was_added_keeps_to_the_rules(extended):
    folder, _ = extended
    added = [
        "controller/strategies/first_only.py",
        "lab/topologies/doorway.py",
        "lab/engines/sim/core/laws",
        "lab/scenario/congestion.py",
    ]
    for checker in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        done = subprocess.run(
            [sys.executable, "-m", *checker, *added],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


class TestEmulation:
    pytestmark = needs_emulation

    def test_both_run_in_the_emulation(self, extended):
        folder, _ = extended
        for block in blocks("sh extend emulation"):
            shell(block, folder, EMULATION_S)
        seen = result(folder, "emulated")
        assert seen["mptcp"]["verified"]
        assert [each["backup_s"] > 5 for each in seen["connections"][0]["subflows"]] == [
            False,
            True,
        ]
