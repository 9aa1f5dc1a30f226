"""A user's own files: a strategy, a topology, a congestion control and a scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from law_table import laws_kept

from controller import strategies
from lab import extensions
from lab.cli.commands import cli
from lab.engines import registry
from lab.engines.mininet import ebpf
from lab.engines.sim import code_cache
from lab.topologies import families

STRATEGY = '''"""Keep what there is."""

from controller.command import Decision
from controller.observation import Observation
from controller.strategies.base import Strategy, StrategyParams


class KeepAll(Strategy):
    name, Params = "keep_all", StrategyParams

    def decide(self, observation: Observation) -> list[Decision]:
        return []

    def withdraw(self, observation: Observation) -> list[Decision]:
        return []
'''
TOPOLOGY = '''"""Connect a user by one link."""

from pydantic import BaseModel, ConfigDict

from controller.units import bps_from_mbps
from lab.topologies.topology import Link, Node, Topology


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    mbps: float = 5.0


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """srv1 -- s1 ==door== s2 -- ue1"""
    nodes = (*(Node(s, "switch") for s in ("s1", "s2")), Node("ue1", "user"), Node("srv1", "server"))
    door = Link("door", "s1", "s2", bps_from_mbps(params.mbps * rate_scale))
    return Topology("doorway", nodes, (door, Link("a", "s2", "ue1"), Link("b", "s1", "srv1")))
'''
LAW = '''"""Scalable TCP (Kelly, 2003)."""

from lab.engines.sim.core.state import Subflow


def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    s.cwnd += 0.01 * acked
'''
C_LAW = "// SPDX-License-Identifier: GPL-2.0-only\n//\n// Scalable TCP in the kernel.\n"
SCENARIO = """name: doorway
title: One door
topology: {file: doorway.py, mbps: 4}
traffic: [{user: ue1, kind: bulk}]
duration_s: 2
"""
KNOWN = {"keep_all.py": STRATEGY, "doorway.py": TOPOLOGY, "scalable.py": LAW, "scalable.c": C_LAW}


@pytest.fixture(autouse=True)
def _only_built_in(monkeypatch):
    """Remove from all tables what a test has registered; compile nothing for it."""
    monkeypatch.setattr(code_cache, "is_wanted", lambda: False)
    tables = (
        extensions._registered,
        strategies.STRATEGIES,
        families.TOPOLOGIES,
        ebpf._registered,
        registry._loaded,
    )
    before = [dict(each) for each in tables]
    modules = set(sys.modules)
    with laws_kept():
        yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)
    for name in set(sys.modules) - modules:
        if name.startswith("user_"):
            del sys.modules[name]


@pytest.fixture
def my(tmp_path: Path) -> Path:
    """A folder with one file of each kind."""
    folder = tmp_path / "my"
    folder.mkdir()
    for name, text in {**KNOWN, "doorway.yaml": SCENARIO, "plot.py": "raise SystemExit\n"}.items():
        (folder / name).write_text(text)
    folder.chmod(0o755)
    return folder


def lab(*argv: str | Path):
    return CliRunner().invoke(cli, [str(each) for each in argv])


def refused(*argv: str | Path) -> str:
    done = lab(*argv)
    assert done.exit_code == 2, done.output
    return " ".join(done.output.split())
