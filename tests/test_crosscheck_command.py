"""The command that compares both engines: its runs, the virtual machine, interruptions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import lab  # noqa: F401 - a fixture
from fake_engine import FakeEngine
from test_crosscheck import STUDY

from lab.batch import jobs
from lab.cli.terminal import Terminal
from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.machine import vm_kernel
from lab.errors import RequestError
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario import engine_table
from lab.vm_environment import SLOW_MACHINE
from papers import crosscheck, paired_runs
from papers import crosscheck_command as crosschecking
from papers.studies import Case, Metric, Study


@pytest.fixture
def command(lab, monkeypatch, tmp_path):  # noqa: F811
    """The command with two small studies, on two engines that need no network."""
    other = Study(
        "thirty_users",
        1,
        (Case("as it is", "none"),),
        (Metric("WiFi", "aps.wifi1.throughput_mbps"),),
    )
    monkeypatch.setattr(
        crosscheck, "STUDIES", [replace(each, engines=("fake", "slow")) for each in (STUDY, other)]
    )
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: False)
    for name in ("fake", "slow"):
        entry = engine_table.ENGINES[name]
        entry = replace(entry, schedulers=("linux",), real_time=name == "fake")
        monkeypatch.setitem(engine_table.ENGINES, name, entry)
    return lambda *names, only=None: crosschecking.main(
        names, 2, only, tmp_path / "runs", tmp_path / "crosscheck.md"
    )


def test_the_command_runs_every_case_in_both_engines_and_keeps_what_is_there(
    command, tmp_path, capsys
):
    assert command("testbed_wifi_lte") == 0
    written = (tmp_path / "crosscheck.md").read_text()
    assert (
        "| baseline | WiFi | 2.50 (2.50 to 2.50) | 2.50 (2.50 to 2.50) | +0 % | shared model |"
        in written
    )
    assert "Made by `./run_lab.sh crosscheck testbed_wifi_lte --repeat 2`" in written
    assert "thirty_users" not in written
    assert len(list((tmp_path / "runs").glob("*/*/*/*/result.json"))) == 8
    capsys.readouterr()
    assert command("testbed_wifi_lte") == 0
    assert capsys.readouterr().err.count("4 of 4 runs exist already") == 2


def test_a_study_made_later_joins_the_page(command, tmp_path):
    command("testbed_wifi_lte")
    first = crosscheck.sections((tmp_path / "crosscheck.md").read_text())
    command("thirty_users")
    both = crosscheck.sections((tmp_path / "crosscheck.md").read_text())
    assert list(both) == ["testbed_wifi_lte", "thirty_users"]
    assert both["testbed_wifi_lte"] == first["testbed_wifi_lte"]


def test_the_runs_of_one_engine_make_no_page(command, tmp_path):
    assert command("testbed_wifi_lte", only="fake") == 0
    assert not (tmp_path / "crosscheck.md").exists()
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"fake"}


def test_an_engine_that_is_not_compared_is_refused(command):
    with pytest.raises(
        RequestError, match="--engine: 'sim' is not compared here: choose from fake, slow"
    ):
        command("testbed_wifi_lte", only="sim")


def test_each_run_that_is_missing_starts_a_virtual_machine(command, monkeypatch, tmp_path):
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: True)
    made, run_one = [], Terminal.run

    def in_vm(self, job):
        made.append((job.vm, job.options.wait, job.scenario.rate_scale))
        return run_one(self, replace(job, vm=False))

    monkeypatch.setattr(FakeEngine, "is_slow", MininetEngine.is_slow)
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: False)
    monkeypatch.setattr(Terminal, "run", in_vm)
    assert command("testbed_wifi_lte", only="fake") == 0
    assert made == [(True, True, 0.25)] * 4
    assert command("testbed_wifi_lte", only="fake") == 0
    assert len(made) == 4


def test_all_engines_run_at_the_rate_scale_of_the_first_one(command, monkeypatch, tmp_path):
    """`slow` is compared with `fake`, which runs on a slow machine at a quarter of the rates."""
    monkeypatch.setattr(FakeEngine, "is_slow", MininetEngine.is_slow)
    monkeypatch.setenv(SLOW_MACHINE, "1")
    assert command("testbed_wifi_lte") == 0
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/*/*/*/result.json")]
    assert {(each["engine"], each["rate_scale"]) for each in results} == {
        ("fake", 0.25),
        ("slow", 0.25),
    }
    assert "Rate scale 0.25." in (tmp_path / "crosscheck.md").read_text()


def test_an_interruption_writes_no_page(command, monkeypatch, tmp_path):
    run_one = Terminal.run

    def interrupted(self, job):
        return replace(run_one(self, job), exit_code=EXIT_INTERRUPTED)

    monkeypatch.setattr(jobs, "side_by_side", jobs._in_turn)
    monkeypatch.setattr(Terminal, "run", interrupted)
    assert command("testbed_wifi_lte") == EXIT_INTERRUPTED
    assert not (tmp_path / "crosscheck.md").exists()
