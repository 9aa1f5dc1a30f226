"""Check that files of a user's own become known by name, and that what is wrong with one is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from law_table import laws_kept

from controller import strategies
from lab import extensions
from lab.__main__ import cli
from lab.batch.jobs import Job, run_all
from lab.batch.virtual_machine import argv_inside, files_inside
from lab.engines import registry
from lab.engines.mininet import ebpf
from lab.engines.sim import code_cache
from lab.errors import RequestError
from lab.run.engine import Options
from lab.run.outcome import Outcome
from lab.run.reading import read_document
from lab.scenario import loading
from lab.scenario.loading import experiment
from lab.scenario.overrides import Overrides
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

from lab.engines.sim.core import layout as at


def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    w.window[f + at.CWND] += 0.01 * acked
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
    """Take out of all tables what a test has registered; compile nothing for it."""
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
    """Write the folder of a user, with one file of each kind."""
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


# --- by name


def test_a_folder_adds_its_files_by_what_they_define(my):
    extensions.add(my)
    found = {(each.kind, each.path.name) for each in extensions.registered()}
    assert found == {
        ("strategy", "keep_all.py"),
        ("topology", "doorway.py"),
        ("cc", "scalable.py"),
        ("cc", "scalable.c"),
        ("scenario", "doorway.yaml"),
    }  # plot.py defines nothing, and was not run
    assert extensions.strategy_file("keep_all") == my / "keep_all.py"
    assert extensions.topology_file("doorway") == my / "doorway.py"
    assert extensions.law_file("scalable", ".c") == my / "scalable.c"
    assert extensions.strategy_file("none") is extensions.law_file("reno", ".c") is None


@pytest.mark.parametrize(
    ("listed", "row"),
    [
        ("strategies", "keep_all Keep what there is."),
        ("topologies", "doorway Connect a user by one link. mbps"),
        ("cc", "scalable Scalable TCP (Kelly, 2003). sim, mininet"),
        ("scenarios", "doorway One door"),
    ],
)
def test_the_lists_show_them(my, listed, row):
    done = lab("list", listed, "--with", my)
    assert row in " ".join(done.output.split()), done.output


def test_the_environment_names_folders_too(my, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_PATH", f"{my}:")
    assert "interval_s" in lab("list", "params", "keep_all").output
    assert "doorway: valid" in lab("check", "doorway").output


def test_check_says_which_files_it_has_imported(my):
    done = lab("check", my / "doorway.yaml", "--strategy", my / "keep_all.py")
    assert done.exit_code == 0, done.output
    assert f"imported {my / 'doorway.py'}: topology 'doorway'" in done.output
    assert f"imported {my / 'keep_all.py'}: strategy 'keep_all'" in done.output


def test_a_strategy_can_be_chosen_while_a_run_goes_on(my):
    extensions.add(my)
    known = lab("list", "targets", "two_paths", "--json").output
    by_name = {row["name"]: row for row in json.loads(known)}
    assert "keep_all" in by_name["strategy"]["choices"]
    assert "scalable" in by_name["cc"]["choices"]


# --- runs


def run_of(my: Path, out: Path, *argv: str | Path) -> Path:
    done = lab("run", *argv, "--duration", "1", "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    return out


def test_a_run_keeps_a_copy_and_the_digest(my, tmp_path):
    out = run_of(
        my,
        tmp_path / "run",
        my / "doorway.yaml",
        *("--strategy", my / "keep_all.py", "--cc", my / "scalable.py"),
    )
    rows = read_document(out, "manifest.json")["extensions"]
    assert {(each["kind"], each["name"]) for each in rows} == {
        ("strategy", "keep_all"),
        ("topology", "doorway"),
        ("cc", "scalable"),
    }
    assert all(len(each["sha256"]) == 64 for each in rows)
    assert (out / "extensions" / "doorway.py").read_text() == TOPOLOGY
    assert not (out / "extensions" / "scalable.c").exists()  # the simulator has not loaded it
    assert read_document(out, "result.json")["cc"] == "scalable"


def test_a_strategy_chosen_by_an_event_is_kept_too(my, tmp_path):
    event = "events=[{at_s: 0.5, target: strategy, value: keep_all}]"
    out = run_of(my, tmp_path / "run", "two_paths", "--with", my, "--set", event)
    (row,) = read_document(out, "manifest.json")["extensions"]
    assert row["name"] == "keep_all"


def test_a_run_cannot_be_repeated_without_the_file(my, tmp_path):
    out = run_of(my, tmp_path / "run", my / "doorway.yaml")
    extensions._registered.clear()
    del families.TOPOLOGIES["doorway"]
    said = refused("run", out, "--out", tmp_path / "once_more")
    assert f"That run used a file of your own: add --with {my / 'doorway.py'}" in said
    run_of(my, tmp_path / "once_more", out, "--with", my / "doorway.py")


def test_nothing_is_loaded_from_a_run_folder(my, tmp_path):
    out = run_of(my, tmp_path / "run", my / "doorway.yaml")
    said = refused("check", "two_paths", "--with", out / "extensions")
    assert "it is the copy in a run folder, and nothing is loaded from there" in said


def test_the_experiment_depends_on_the_text_of_the_files(my):
    extensions.add(my)
    scenario = loading.load("two_paths", Overrides(strategy="keep_all"))
    plain, before = loading.load("two_paths"), experiment(scenario, "sim")
    unchanged = experiment(plain, "sim")
    (my / "keep_all.py").write_text(STRATEGY + "\n")
    extensions.add(my)
    assert experiment(scenario, "sim") != before
    assert experiment(plain, "sim") == unchanged


def test_the_experiment_does_not_depend_on_the_order_of_registration(my):
    digests = set()
    for order in (("keep_all.py", "scalable.py"), ("scalable.py", "keep_all.py")):
        extensions._registered.clear()
        for name in order:
            extensions.add(my / name)
        scenario = loading.load("two_paths", Overrides(strategy="keep_all", cc="scalable"))
        digests.add(experiment(scenario, "sim"))
    assert len(digests) == 1


def test_worker_processes_know_the_files(my):
    extensions.add(my)
    files = extensions.registered()
    extensions._registered.clear()
    del strategies.STRATEGIES["keep_all"]
    extensions.restore(files)
    assert "keep_all" in strategies.STRATEGIES
    assert extensions.registered() == files


class Names:
    """Run a job by naming the strategies that its process knows."""

    def run(self, job: Job) -> Outcome:
        result = {
            "status": "complete",
            "duration_s": 1,
            "overloaded": False,
            "kind": job.scenario.topology.kind,
        }
        return Outcome(result, Path())

    def say(self, text: str) -> None:
        """Show nothing."""


def test_jobs_with_a_users_network_reach_the_workers(my):
    scenario = loading.load(str(my / "doorway.yaml"))
    jobs = [Job(scenario, "sim", Options(0.0))] * 2
    assert [each.result["kind"] for each in run_all(jobs, Names())] == ["doorway"] * 2


def test_the_virtual_machine_gets_the_same_paths(my, tmp_path):
    extensions.add(my)
    scenario = loading.load("two_paths", Overrides(strategy="keep_all", cc="scalable"))
    job = Job(scenario, "mininet", Options(), vm=True)
    paths = {my / name for name in KNOWN}
    assert set(files_inside()) == paths
    argv = argv_inside(job, tmp_path)
    assert {Path(argv[n + 1]) for n, word in enumerate(argv) if word == "--with"} == paths


# --- what an engine lacks


def test_the_missing_half_of_a_law_is_named(my):
    (my / "scalable.c").unlink()
    said = refused("run", "two_paths", "--engine", "mininet", "--cc", my / "scalable.py")
    assert f"cc 'scalable' on engine 'mininet': {my / 'scalable.c'} is missing" in said
    (my / "scalable.c").write_text(C_LAW)
    (my / "scalable.py").unlink()
    extensions._registered.clear()
    said = refused("run", "two_paths", "--cc", my / "scalable.c")
    assert f"cc 'scalable' on engine 'sim': {my / 'scalable.py'} is missing" in said


def test_the_emulation_gets_the_c_half(my):
    extensions.cc_name(str(my / "scalable.py"))
    scenario = loading.load("two_paths", Overrides(cc="scalable"))
    registry.admit("mininet", scenario, Options())
    assert ebpf.law_sources()["scalable"] == my / "scalable.c"


# --- failures during a run


def test_a_strategy_that_fails_ends_the_run_with_file_and_line(my, tmp_path):
    (my / "keep_all.py").write_text(
        STRATEGY.replace("        return []", "        return [1 / 0]", 1)
    )
    done = lab(
        *(
            "run",
            "two_paths",
            "--strategy",
            my / "keep_all.py",
            "--out",
            tmp_path / "run",
            "--quiet",
        )
    )
    assert done.exit_code == 4
    result = read_document(tmp_path / "run", "result.json")
    assert result["status"] == "failed"
    assert f"{my / 'keep_all.py'}, line 12: ZeroDivisionError" in result["error"]


def test_a_law_that_fails_ends_the_run_with_file_and_line(my, tmp_path):
    (my / "scalable.py").write_text(LAW.replace("acked\n", "unknown\n"))
    done = lab("run", "two_paths", "--cc", my / "scalable.py", "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 4
    error = read_document(tmp_path / "run", "result.json")["error"]
    assert f"{my / 'scalable.py'}, line 7: NameError" in error


# --- refused


def test_an_error_in_a_file_names_file_and_line(my, tmp_path):
    for name, option in (("keep_all.py", "--strategy"), ("scalable.py", "--cc")):
        (my / name).write_text("x = 1\nimport nothing_of_this_name\n\ndef on_ack(): pass\n")
        out = tmp_path / "run"
        said = refused("run", "two_paths", option, my / name, "--out", out)
        assert f"{my / name}, line 2: ModuleNotFoundError" in said
        assert not out.exists()


def test_a_syntax_error_in_a_folder_names_file_and_line(my):
    (my / "plot.py").write_text("x = 1\ndef plot(:\n")
    said = refused("list", "cc", "--with", my)
    assert f"import {my / 'plot.py'}, line 2: SyntaxError" in said


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("none.py", STRATEGY, "--strategy"),
        ("campus.py", TOPOLOGY, "--with"),
        ("cubic.py", LAW, "--cc"),
        ("wvegas.c", C_LAW, "--cc"),
        ("campus.yaml", SCENARIO, "--with"),
    ],
)
def test_a_built_in_name_is_refused(tmp_path, name, text, option):
    (tmp_path / name).write_text(text)
    assert "built-in" in refused("check", "two_paths", option, tmp_path / name)


def test_two_files_with_one_name_are_refused(my, tmp_path):
    other = tmp_path / "other"
    other.mkdir(0o755)
    (other / "keep_all.py").write_text(LAW)
    said = refused("check", "two_paths", "--with", my, "--cc", other / "keep_all.py")
    assert f"{my / 'keep_all.py'} has this name too: rename one" in said


def test_a_missing_file_is_refused(my):
    assert "there is no such file" in refused("run", "two_paths", "--strategy", my / "other.py")
    assert "there is no such file" in refused("run", "two_paths", "--cc", my / "other.c")
    assert "there is no such file" in refused("list", "cc", "--with", my / "other")


def test_a_path_of_a_topology_is_accepted_in_files_only(my):
    raw = {"name": "x", "title": "x", "topology": {"file": str(my / "doorway.py")}}
    with pytest.raises(RequestError, match="accepted only in a scenario file"):
        loading.from_data(raw | {"traffic": [{"user": "ue1"}]}, "x")


def test_root_runs_no_file_in_a_folder_that_others_can_change(my, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(my.stat().st_uid))
    my.chmod(0o775)
    for name in KNOWN:
        (my / name).chmod(0o644)
        said = refused("check", "two_paths", "--with", my / name)
        assert f"in a folder, {my}, that others may write. Try: chmod go-w {my}" in said
    my.chmod(0o755)
    extensions.add(my)
