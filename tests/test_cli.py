"""The command line: exit codes, JSON output, messages without a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import fake_engine
import pytest
import yaml
from click.testing import CliRunner

from lab.__main__ import cli
from lab.errors import LabError, MachineLacks
from lab.run.report import Overload
from lab.scenario import loading as scenario
from lab.scenario.engine_table import ENGINES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def lab():
    """Call the command line with the fake engine in its table: words of a text, then more words."""

    def call(command, *args):
        argv = [*command.split(), *map(str, args)]
        return CliRunner().invoke(cli, argv, catch_exceptions=False)

    before = dict(ENGINES)
    fake_engine.register()
    yield call
    ENGINES.clear()
    ENGINES.update(before)


def start(command, *args, **options):
    """Start the command line with the fake engine in another process."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    words = [*command.split(), *map(str, args)]
    argv = [sys.executable, str(ROOT / "tests" / "fake_engine.py"), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": paths}, **pipes, **options)


@pytest.mark.parametrize(
    "what",
    [
        "scenarios",
        "strategies",
        "cc",
        "topologies",
        "params meter_throttling",
        "targets testbed_wifi_lte",
    ],
)
def test_lists_are_readable_by_people_and_programs(lab, what):
    plain, machine = lab("list", *what.split()), lab("list", *what.split(), "--json")
    rows = json.loads(machine.output)
    assert plain.exit_code == machine.exit_code == 0
    assert rows
    first = next(iter(rows[0].values()))
    assert str(first) in plain.output


def test_list_says_which_engine_runs_which_congestion_control(lab):
    rows = {row["name"]: row["engines"] for row in json.loads(lab("list", "cc", "--json").output)}
    assert "mininet" in rows["reno"]
    assert "mininet" in rows["lia"]
    assert "mininet" in rows["wvegas"]


def test_the_parameters_of_a_topology_include_those_of_list_elements(lab):
    rows = {
        row["name"]: row
        for row in json.loads(lab("list", "params", "parallel_paths", "--json").output)
    }
    assert rows["paths[].delay_ms"]["default"] == 10
    assert (rows["paths[].rate_mbps"]["unit"], rows["paths[].rate_mbps"]["maximum"]) == (
        "Mb/s",
        10_000,
    )
    assert rows["paths[].loss"]["unit"] == "fraction from 0 to 1"
    rows = {
        row["name"]: row for row in json.loads(lab("list", "params", "wifi_lte", "--json").output)
    }
    assert (rows["users[].wifi_mbps"]["type"], rows["users[].wifi_mbps"]["default"]) == (
        "number",
        None,
    )
    refused = lab("list", "params", "parallel_path")
    assert refused.exit_code == 2
    assert "did you mean 'parallel_paths'?" in refused.output


def test_check_warns_of_events_after_the_end(lab):
    command = ("check", "dynamic_loss", "--set", "duration_s=40")
    assert "warning: the run ends at 40 s, before its events at 60 s" in lab(*command).output
    assert "warning" not in lab("check", "dynamic_loss").output


def test_several_runs_are_not_written_into_the_folder_of_one_run(lab, tmp_path):
    one = tmp_path / "one"
    assert lab("run uneven_paths --engine fake --duration 2 --quiet --out", str(one)).exit_code == 0
    refused = lab("run uneven_paths --engine fake --duration 2 --repeat 2 --quiet --out", str(one))
    assert refused.exit_code == 2
    assert "the folder of one run" in refused.output


def test_check_starts_nothing(lab):
    assert "valid" in lab("check", "testbed_wifi_lte").output
    refused = lab("check", "testbed_wifi_lte", "--set", "duration=5")
    assert refused.exit_code == 2
    assert "did you mean 'duration_s'" in refused.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ("run nope --engine fake", 2, "scenario 'nope' is unknown"),
        ("run testbed_wifi_lte --engine ns3", 2, "engine 'ns3' is unknown"),
        (
            "run testbed_wifi_lte --engine mininet --set multipath.balia_decrease=draft",
            3,
            "eBPF has BALIA as the multipath-tcp.org kernel has it",
        ),
        (
            "run testbed_wifi_lte --engine mininet --set multipath.scheduler=round_robin",
            3,
            "one packet scheduler",
        ),
        (
            "run testbed_wifi_lte --engine mininet --set multipath.penalisation=true",
            3,
            "penalisation 'true' on engine 'mininet': upstream Linux does not do it",
        ),
        ("run testbed_wifi_lte --engine mininet --speed 10", 2, "real time"),
        (
            "run testbed_wifi_lte --engine fake --speed fast",
            2,
            "write max, 1 or 10",
        ),
        ("run testbed_wifi_lte --engine fake --vm", 2, "Leave out --vm"),
        (
            "run testbed_wifi_lte --engine fake --strategy magic",
            2,
            "'magic' is unknown: choose from",
        ),
        (
            "run testbed_wifi_lte --engine fake --strategy none/improved",
            2,
            "strategy 'none' has no improved form",
        ),
        (
            "run testbed_wifi_lte --engine fake --set strategy.name=meter_throttling/best",
            2,
            "strategy 'meter_throttling' has no form 'meter_throttling/best'",
        ),
        ("list params none/improved", 2, "strategy 'none' has no improved form"),
        (
            "run testbed_wifi_lte --engine fake --strategy none --strategy none",
            2,
            "requested twice",
        ),
        ("run testbed_wifi_lte --engine fake --seed x", 2, "not a valid integer"),
        (
            "run testbed_wifi_lte --engine fake --duration -1",
            2,
            "duration_s: -1.0 is out of range",
        ),
        (
            "run testbed_wifi_lte --engine fake --set seed",
            2,
            "write key.path=value",
        ),
        ("list params magic", 2, "choose from"),
        ("frobnicate", 2, "No such command"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_starts(lab, tmp_path, args, code, message):
    out = tmp_path / "out"
    got = lab(args, *(["--out", out] if args.startswith("run ") else []))
    assert (got.exit_code, got.stdout) == (code, "")
    assert message in got.stderr
    assert not out.exists()


def test_both_forms_of_a_strategy_run_and_are_separate_groups(lab, tmp_path):
    command = "run demand_swap --engine fake --duration 1 --quiet --set strategy.cth=0.4"
    forms = "--strategy meter_throttling --strategy meter_throttling/improved"
    assert lab(f"{command} {forms} --out", tmp_path / "r").exit_code == 0
    folders = [tmp_path / "r" / f"meter_throttling{form}-1" for form in ("", "-improved")]
    params = []
    for folder, name in zip(folders, forms.split()[1::2], strict=True):
        assert json.loads((folder / "result.json").read_text())["strategy"] == name
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["strategy"] == name
        params.append(manifest["params"])
    assert [each["cth"] for each in params] == [0.4, 0.4]
    assert [each["at_floor"] for each in params] == ["keep", "backup"]
    compared = lab("compare", *folders).output
    assert "meter_throttling (n = 1" in compared
    assert "meter_throttling/improved (n = 1" in compared


def test_run_with_json_prints_only_the_result(lab, tmp_path):
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --json --out", tmp_path / "r")
    result = json.loads(got.output)
    assert (got.exit_code, result["status"], result["run_id"]) == (0, "complete", "r")
    assert result == json.loads((tmp_path / "r" / "result.json").read_text())


def test_overrides_reach_the_run(lab, tmp_path):
    command = "run testbed_wifi_lte --engine fake --quiet"
    options = "--strategy meter_throttling --cc cubic --seed 7 --duration 1"
    settings = "--set strategy.params.cth=0.4 --set topology.multipath=[]"
    lab(f"{command} {settings} {options} --out", tmp_path / "r")
    written = yaml.safe_load((tmp_path / "r" / "scenario.yaml").read_text())
    assert (written["strategy"]["name"], written["strategy"]["params"]["cth"], written["seed"]) == (
        "meter_throttling",
        0.4,
        7,
    )
    assert (written["multipath"]["cc"], written["topology"]["multipath"]) == ("cubic", [])


def test_the_summary_has_access_points_users_and_the_verdict(lab, tmp_path):
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --report --out", tmp_path / "r")
    for part in (
        "wifi1",
        "ue3",
        "Tier 2",
        "Multipath TCP verified: 1 extra subflow, no fallback to plain TCP",
        str(tmp_path / "r"),
    ):
        assert part in got.stdout
    assert "running 0.5 / 1 s" in got.stderr
    page = (tmp_path / "r" / "report.md").read_text()
    assert "**Question.** Which users lose" in page


def test_the_summary_of_an_overloaded_run_has_a_banner(lab, tmp_path, monkeypatch):
    overloaded = replace(fake_engine.REPORT, overload=Overload(True, ("no idle time",)))
    monkeypatch.setattr(fake_engine, "REPORT", overloaded)
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --out", tmp_path / "r")
    assert "OVERLOADED" in got.stdout
    assert "no idle time" in got.stdout


def test_a_failed_run_says_why_and_exits_4(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(
        fake_engine.FakeEngine, "fails_to_open", "start Open vSwitch: it is not running"
    )
    got = lab("run testbed_wifi_lte --engine fake --json --out", tmp_path / "r")
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (4, "failed")
    assert "error: start Open vSwitch: it is not running" in got.stderr


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


def test_ctrl_c_keeps_the_run_and_exits_130(tmp_path):
    process = start(
        "run testbed_wifi_lte --engine slow --duration 3000 --json --out", tmp_path / "r"
    )
    samples = tmp_path / "r" / "samples.jsonl"
    deadline = time.monotonic() + 20
    while not (samples.exists() and samples.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "args",
    [["run", "nope"], ["check", "/dev/null"], ["compare", "/nonexistent"], ["check", str(ROOT)]],
)
def test_no_error_shows_a_traceback(args):
    process = start(*args)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert err.startswith("error: ")
    assert "Traceback" not in err


def test_the_command_line_imports_no_heavy_package_at_start():
    """Inside the virtual machine every import is ten times slower."""
    heavy = ("numpy", "scipy", "networkx", "flask", "plotly", "tinydb")
    program = f"import sys, lab.__main__; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[]\n"


@pytest.fixture
def machine(monkeypatch):
    """Replace the virtual machine: run the command in this process, on the fake engine."""
    from lab.engines.mininet import vm
    from lab.engines.mininet.vm import launch as real_vm

    def run_in_vm(command, wait=False):
        assert command.argv[1:3] == ["-m", "lab"]
        assert command.argv[command.argv.index("--engine") + 1] == "mininet"
        (command.shared / "vm").mkdir()
        inside = [word if word != "mininet" else "fake" for word in command.argv[3:]]
        code = CliRunner().invoke(cli, inside).exit_code
        command.on_poll()
        return code

    kernel = types.SimpleNamespace(require=lambda congestion_controls, by_window: None)
    module = types.SimpleNamespace(
        run_in_vm=run_in_vm, vm_kernel=kernel, GuestCommand=real_vm.GuestCommand
    )
    monkeypatch.setattr(vm, "launch", module)
    monkeypatch.setitem(sys.modules, "lab.engines.mininet.vm.launch", module)
    return module


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
    def broken(command, wait=False):
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

    def killed(command, wait=False):
        run_inside(command)
        raise LabError("run a command in the VM: it ended by itself")

    monkeypatch.setattr(machine, "run_in_vm", killed)
    got = lab(
        "run testbed_wifi_lte --engine mininet --vm --duration 1 --json --out", tmp_path / "r"
    )
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (0, "complete")


def test_without_a_virtual_machine_no_folder_is_left(lab, machine, tmp_path, monkeypatch):
    def lacking(command, wait=False):
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

    def lost(command, wait=False):
        run_inside(command)
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


def test_every_scenario_that_comes_with_the_lab_is_in_the_table():
    table = (scenario.FOLDER / "README.md").read_text()
    for name in scenario.names():
        assert f"({name}.yaml)" in table
        assert scenario.load(name).name == name


def test_the_command_for_a_host_starts_after_the_two_dashes(lab, monkeypatch):
    from lab.engines.mininet import exec_caller

    calls = []
    monkeypatch.setattr(
        exec_caller, "main", lambda run, host, argv, runs: calls.append((run, host, argv)) or 0
    )
    assert lab("exec", "r1", "ue3", "--", "ss", "-tni").exit_code == 0
    assert lab("exec", "r1", "machine", "sh", "-c", "--", "x").exit_code == 0
    assert calls == [("r1", "ue3", ["ss", "-tni"]), ("r1", "machine", ["sh", "-c", "--", "x"])]


def test_a_simulation_has_no_packets_to_capture(lab, tmp_path):
    done = lab("run two_paths --pcap --out", tmp_path / "r")
    assert done.exit_code == 2
    assert "Use --engine mininet, or leave out --pcap" in done.output
    assert not (tmp_path / "r").exists()
