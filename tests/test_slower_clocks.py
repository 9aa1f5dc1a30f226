"""`--dilation`: runs in the VM with slower clocks. The VM is replaced by this process."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner
from command_line import lab
from run_edits import write_result

from lab.batch import jobs, slower_clocks, virtual_machine
from lab.batch.request import Request, together
from lab.cli.commands import cli
from lab.cli.terminal import Terminal
from lab.engines.mininet import in_vm
from lab.engines.mininet.machine import vm_kernel
from lab.run.reading import read_document
from lab.vm_environment import DILATION, IN_VM, asked_dilation

__all__ = ["lab"]
COMMAND = "run testbed_wifi_lte --engine mininet --vm --duration 1 --json"


@pytest.fixture
def machine(monkeypatch):
    """A machine that needs slower clocks: `needs` by strategy. It keeps what it was asked for."""

    class Machine:
        needs: dict[str, float] = {}
        asked: list[tuple[str, float | None]] = []

        def run_in_vm(self, command, on_poll, wait=False):
            folder = command.shared
            factor = command.dilation or asked_dilation() or 1.0
            inside = [word if word != "mininet" else "fake" for word in command.argv[3:]]
            with monkeypatch.context() as environment:
                environment.setenv(IN_VM, "1")
                environment.setenv(DILATION, f"{factor:g}")
                code = CliRunner().invoke(cli, inside).exit_code
            strategy = read_document(folder, "manifest.json")["strategy"]
            self.asked.append((strategy, command.dilation))
            if factor < self.needs.get(strategy, 1.0):
                with (folder / "events.jsonl").open("a") as events:
                    events.write('{"t": 0.5, "type": "warning", "overloaded": true}\n')
                (folder / "inbox").mkdir(exist_ok=True)
                on_poll()
                stops = [json.loads(each.read_text()) for each in (folder / "inbox").iterdir()]
                if stops:
                    assert stops == [{"control": "stop"}]
                    code = 130
                words = {"overloaded": True, "status": "interrupted" if stops else "complete"}
                write_result(folder, read_document(folder, "result.json") | words)
            return code

    made = Machine()
    made.needs, made.asked = {}, []
    monkeypatch.setattr(in_vm, "run_in_vm", made.run_in_vm)
    monkeypatch.setattr(in_vm, "require", lambda congestion_controls, by_window: None)
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: False)
    monkeypatch.setattr(jobs, "_is_of", lambda job, folder: True)  # its engine is "fake"
    monkeypatch.setenv(DILATION, "")  # the option sets it; this brings it back
    return made


def test_clocks_are_slowed_until_the_machine_keeps_up(lab, machine, tmp_path):
    machine.needs = {"none": 5.0}
    got = lab(f"{COMMAND} --dilation auto --out", tmp_path / "r")
    assert machine.asked == [("none", factor) for factor in (1.0, 2.0, 4.0, 8.0)]
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (0, "complete")
    assert [each.name for each in tmp_path.iterdir()] == ["r"]
    assert read_document(tmp_path / "r", "manifest.json")["host"]["time_dilation"] == 8


def test_later_runs_begin_with_the_clocks_that_earlier_ones_needed(lab, machine, tmp_path):
    machine.needs = {"meter_throttling": 3.0}
    options = "--strategy none --strategy meter_throttling --repeat 3"
    got = lab(f"{COMMAND} --dilation auto {options} --out", tmp_path / "r")
    assert machine.asked == [
        *[("none", 1.0)] * 3,
        *[("meter_throttling", factor) for factor in (1.0, 2.0, 4.0)],
        *[("meter_throttling", 4.0)] * 2,
    ]
    assert {each["status"] for each in json.loads(got.stdout)} == {"complete"}


def test_the_slowest_clocks_are_the_last_try(lab, machine, tmp_path):
    machine.needs = {"none": 99.0}
    got = lab(f"{COMMAND} --dilation auto --out", tmp_path / "r")
    assert [factor for _, factor in machine.asked] == [1, 2, 4, 8, 16]
    result = json.loads(got.stdout)
    assert (got.exit_code, result["status"], result["overloaded"]) == (0, "complete", True)


def test_runs_begin_with_the_factor_that_is_expected_to_suffice(lab, machine, tmp_path):
    machine.needs = {"none": 7.0, "meter_throttling": 3.0}
    requests = [
        Request(
            "testbed_wifi_lte",
            "mininet",
            (strategy,),
            duration_s=1.0,
            repeat=2,
            out=tmp_path / strategy,
            vm=True,
        )
        for strategy in machine.needs
    ]
    os.environ[DILATION] = "auto"
    assert jobs.are_made(together(requests), Terminal(), expected=lambda job: 3.0)
    assert machine.asked == [
        *[("none", 3.0), ("none", 6.0)],
        *[("meter_throttling", 3.0)] * 2,
        *[("none", 12.0)] * 2,
    ]


def test_the_last_factor_is_the_slowest_one(lab, machine, tmp_path):
    machine.needs = {"none": 15.0}
    os.environ[DILATION] = "auto"
    request = Request("testbed_wifi_lte", "mininet", duration_s=1.0, out=tmp_path, vm=True)
    assert jobs.are_made(together([request]), Terminal(), expected=lambda job: 9.0)
    assert machine.asked == [("none", 9.0), ("none", 16.0)]


def test_a_vm_that_uses_kvm_keeps_its_clocks(lab, machine, tmp_path, monkeypatch):
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: True)
    machine.needs = {"none": 2.0}
    lab(f"{COMMAND} --dilation auto --out", tmp_path / "r")
    assert {factor for _, factor in machine.asked} == {1.0}


def test_a_number_is_for_all_runs(lab, machine, tmp_path):
    machine.needs = {"none": 9.0}
    got = lab(f"{COMMAND} --dilation 2.5 --out", tmp_path / "r")
    assert machine.asked == [("none", None)]
    assert json.loads(got.stdout)["status"] == "complete"
    assert read_document(tmp_path / "r", "manifest.json")["host"]["time_dilation"] == 2.5
    assert read_document(tmp_path / "r", "result.json")["time_dilation"] == 2.5


def test_the_summary_says_that_a_run_was_in_slow_motion(lab, machine, tmp_path):
    command = COMMAND.replace(" --json", "")
    assert "Slow motion" not in lab(f"{command} --out", tmp_path / "r").stdout
    slow = lab(f"{command} --dilation 3 --out", tmp_path / "s").stdout
    assert "the clocks of the VM are 3 times slower than real time" in slow


def test_the_rest_of_a_run_is_told_in_real_time(tmp_path):
    (tmp_path / "samples.jsonl").write_text('{"t": 4.0}\n')
    told = []
    virtual_machine._reporter(tmp_path, 10.0, 2.5, told.append)()
    assert [each.eta_s for each in told] == [15.0]


@pytest.mark.parametrize("text", ["0.5", "21", "nan", "fast", ""])
def test_other_values_are_refused_before_anything_starts(lab, machine, tmp_path, text):
    got = lab(*COMMAND.split(), "--dilation", text, "--out", tmp_path / "r")
    assert (got.exit_code, got.stdout, machine.asked) == (2, "", [])
    assert got.stderr == (
        f"error: --dilation='{text}': the VM's clocks cannot run at such a speed. Choose a factor "
        "from 1 (real time) to 20, such as --dilation=2, or auto\n"
    )


def test_the_variable_is_the_option(monkeypatch):
    monkeypatch.setenv(DILATION, "auto")
    assert asked_dilation() is None
    monkeypatch.setenv(DILATION, "3")
    assert asked_dilation() == 3
    assert slower_clocks.SLOWEST <= 20


@pytest.mark.parametrize("command", [["up"], ["class", "--name", "c"]])
def test_the_servers_of_pages_pass_slower_clocks_on_to_their_runs(
    lab, machine, monkeypatch, command
):
    started = []
    monkeypatch.setattr(os, "execv", lambda _, argv: started.append(os.environ[DILATION]))
    assert lab(*command, "--dilation", "4").exit_code == 0
    assert lab(*command, "--dilation", "0").exit_code == 2
    assert started == ["4"]
