"""The command that compares both engines: its runs, one VM for all of them, interruptions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import lab  # noqa: F401 - a fixture
from fake_engine import FakeEngine, Slow
from test_crosscheck import STUDY

from lab.batch import jobs
from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.machine import vm_kernel
from lab.errors import RequestError
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario import engine_table
from lab.vm_environment import SLOW_MACHINE
from papers import crosscheck
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
    monkeypatch.setattr(crosscheck, "needs_vm", lambda: False)
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


def test_overloaded_runs_are_repeated_after_all_others(command, in_vm, monkeypatch):
    monkeypatch.setattr(crosscheck, "needs_vm", lambda: False)
    made, run_all = [], jobs.run_all

    def first_overloaded(requested, display):
        outcomes = run_all(requested, display)
        made.append([job.out.parent.name for job in requested])
        return [
            replace(each, result=each.result | {"overloaded": len(made) == 1}) for each in outcomes
        ]

    monkeypatch.setattr(jobs, "run_all", first_overloaded)
    command("testbed_wifi_lte", only="slow")
    assert made == [["baseline", "baseline", "none", "none"]] * 2


class OneVm:
    """Replaces the VM: run the command here, or end with an exit code as if interrupted."""

    def __init__(self, run, code: int = 0) -> None:
        self.run, self.code, self.commands = run, code, []

    def run_in_vm(self, command, **_options):
        self.commands.append((command.argv, command.shared))
        if self.code == 0:
            self.run()
        return self.code


@pytest.fixture
def in_vm(command, monkeypatch):
    """The real-time engine needs the VM, except inside it."""

    def inside() -> None:
        monkeypatch.setattr(crosscheck, "needs_vm", lambda: False)
        monkeypatch.setenv(SLOW_MACHINE, "1")
        command("testbed_wifi_lte", only="slow")
        monkeypatch.delenv(SLOW_MACHINE)
        monkeypatch.setattr(crosscheck, "needs_vm", lambda: True)

    monkeypatch.setattr(crosscheck, "needs_vm", lambda: True)
    monkeypatch.setitem(
        engine_table.ENGINES, "slow", replace(engine_table.ENGINES["slow"], real_time=True)
    )
    monkeypatch.setattr(Slow, "is_slow", MininetEngine.is_slow)
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: False)
    machine = OneVm(inside)
    monkeypatch.setattr(crosscheck.in_vm, "run_in_vm", machine.run_in_vm)
    return machine


def test_one_vm_makes_all_runs_of_a_study_and_none_is_started_for_nothing(command, in_vm, tmp_path):
    assert command("testbed_wifi_lte") == 0
    ((argv, shared),) = in_vm.commands
    assert argv[:2] == ["env", f"{SLOW_MACHINE}=1"]
    assert argv[3:] == [
        *("-m", "lab", "crosscheck", "testbed_wifi_lte", "--repeat", "2", "--engine", "slow"),
        *("--runs", str(tmp_path / "runs")),
    ]
    assert shared == tmp_path / "runs" / "slow" / "testbed_wifi_lte"
    assert len(list(shared.glob("*/*/result.json"))) == 4
    assert command("testbed_wifi_lte") == 0
    assert len(in_vm.commands) == 1


def test_all_engines_run_at_the_rate_scale_of_the_first_one(command, monkeypatch, tmp_path):
    """`slow` is compared with `fake`, which runs on a slow machine at a quarter of the rates."""
    monkeypatch.setitem(
        engine_table.ENGINES, "fake", replace(engine_table.ENGINES["fake"], real_time=True)
    )
    monkeypatch.setattr(FakeEngine, "is_slow", MininetEngine.is_slow)
    monkeypatch.setenv(SLOW_MACHINE, "1")
    assert command("testbed_wifi_lte") == 0
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/*/*/*/result.json")]
    assert {(each["engine"], each["rate_scale"]) for each in results} == {
        ("fake", 0.25),
        ("slow", 0.25),
    }
    assert "Rate scale 0.25." in (tmp_path / "crosscheck.md").read_text()


def test_an_interruption_in_the_vm_writes_no_page(command, in_vm, tmp_path):
    in_vm.code = EXIT_INTERRUPTED
    assert command("testbed_wifi_lte") == EXIT_INTERRUPTED
    assert not (tmp_path / "crosscheck.md").exists()
