"""Runs in the VM: what is kept and reported when they fail. The VM is replaced by this process."""

from __future__ import annotations

import json

import fake_engine
import pytest
import yaml
from click.testing import CliRunner
from command_line import lab

from lab.cli.commands import cli
from lab.engines.mininet import in_vm
from lab.errors import LabError, MachineLacks

__all__ = ["lab"]


def test_a_failure_in_the_virtual_machine_is_reported_without_a_traceback(
    lab, machine, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        fake_engine.FakeEngine, "fails_to_open", "start Open vSwitch: it is not running"
    )
    got = lab("run testbed_wifi_lte --engine mininet --vm --out", tmp_path / "r")
    assert got.exit_code == 4
    assert got.stdout == f"nothing was measured. Run folder: {tmp_path / 'r'}\n"
    assert got.stderr.endswith("error: start Open vSwitch: it is not running\n")
    assert "Traceback" not in got.stderr
    assert "Traceback" in (tmp_path / "r" / "log.txt").read_text()


@pytest.fixture
def machine(monkeypatch):
    """Run the command of the VM in this process, on the fake engine."""

    def run_in_vm(command, on_poll, wait=False):
        assert command.argv[1:3] == ["-m", "lab"]
        assert command.argv[command.argv.index("--engine") + 1] == "mininet"
        (command.shared / "vm").mkdir()
        inside = [word if word != "mininet" else "fake" for word in command.argv[3:]]
        code = CliRunner().invoke(cli, inside).exit_code
        on_poll()
        return code

    monkeypatch.setattr(in_vm, "run_in_vm", run_in_vm)
    monkeypatch.setattr(in_vm, "require", lambda congestion_controls, by_window: None)
    return in_vm


def test_a_run_in_the_virtual_machine_is_followed_through_its_folder(lab, machine, tmp_path):
    command = "run testbed_wifi_lte --engine mininet --vm"
    options = "--seed 3 --duration 1 --set topology.multipath=[] --strategy meter_throttling"
    got = lab(f"{command} {options} --out", tmp_path / "r")
    assert got.exit_code == 0
    assert "wifi1 8.00 + 2.00   lte1" in got.stderr
    assert "complete" in got.stdout
    written = yaml.safe_load((tmp_path / "r" / "scenario.yaml").read_text())
    assert (written["seed"], written["topology"]["multipath"], written["strategy"]["name"]) == (
        3,
        [],
        "meter_throttling",
    )
    assert not (tmp_path / "r" / "request.yaml").exists()


def test_a_virtual_machine_that_does_not_start_leaves_a_failed_run(
    lab, machine, tmp_path, monkeypatch
):
    def broken(command, on_poll, wait=False):
        raise LabError("start the VM: it ended by itself")

    monkeypatch.setattr(machine, "run_in_vm", broken)
    got = lab("run testbed_wifi_lte --engine mininet --vm --json --out", tmp_path / "r")
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (4, "failed")
    assert "it ended by itself" in got.stderr
    assert "Traceback" not in got.stderr
    assert json.loads((tmp_path / "r" / "result.json").read_text())["status"] == "failed"


def test_a_virtual_machine_that_ends_after_the_result_was_written_has_done_its_work(
    lab, machine, tmp_path, monkeypatch
):
    run_inside = machine.run_in_vm

    def killed(command, on_poll, wait=False):
        run_inside(command, on_poll)
        raise LabError("run a command in the VM: it ended by itself")

    monkeypatch.setattr(machine, "run_in_vm", killed)
    got = lab(
        "run testbed_wifi_lte --engine mininet --vm --duration 1 --json --out", tmp_path / "r"
    )
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (0, "complete")


def test_without_a_virtual_machine_no_folder_is_left(lab, machine, tmp_path, monkeypatch):
    def lacking(command, on_poll, wait=False):
        raise MachineLacks(
            f"start the VM: taken{' although waited for' if wait else ''}. Wait for it with --wait"
        )

    monkeypatch.setattr(machine, "run_in_vm", lacking)
    got = lab("run testbed_wifi_lte --engine mininet --vm --wait --out", tmp_path / "r")
    assert (got.exit_code, got.stdout) == (3, "")
    assert "taken although waited for" in got.stderr
    assert not (tmp_path / "r").exists()


def test_a_lost_virtual_machine_keeps_the_samples(lab, machine, tmp_path, monkeypatch):
    run_inside = machine.run_in_vm

    def lost(command, on_poll, wait=False):
        run_inside(command, on_poll)
        (command.shared / "result.json").unlink()
        return 130

    monkeypatch.setattr(machine, "run_in_vm", lost)
    got = lab(
        "run testbed_wifi_lte --engine mininet --vm --duration 1 --json --out", tmp_path / "r"
    )
    result = json.loads(got.stdout)
    assert (got.exit_code, result["status"], result["throughput_mbps"]) == (
        130,
        "interrupted",
        16.0,
    )
