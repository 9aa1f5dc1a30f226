"""The command line: lists, checks, and requests that are refused without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from command_line import ROOT, lab, start

from lab.cli.commands import cli
from lab.isolation import python
from lab.results.tables import text_table
from lab.scenario import loading as scenario

__all__ = ["lab"]


@pytest.mark.parametrize(
    "what",
    [
        "scenarios",
        "strategies",
        "cc",
        "topologies",
        "kinds",
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


def test_the_list_of_scenarios_says_what_each_file_says(lab):
    rows = {row["name"]: row for row in json.loads(lab("list", "scenarios", "--json").output)}
    assert list(rows) == scenario.names()
    for name in ("testbed_wifi_lte", "moving_users", "two_paths"):
        row, loaded = rows[name], scenario.load(name)
        for key in ("name", "title", "paper", "question", "expect", "minutes", "seed"):
            assert row[key] == getattr(loaded, key)
        assert (row["topology"], row["strategy"]) == (loaded.topology.kind, loaded.strategy.name)
        assert (row["params"], row["cc"]) == (loaded.strategy.params, loaded.multipath.cc)
        assert row["duration_s"] == loaded.duration_s
        assert row["users"] == list(loaded.network.users)
        assert row["multipath"] in (None, list(loaded.network.multipath))
    assert rows["testbed_wifi_lte"]["multipath"] == ["ue2", "ue3"]


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


def test_check_warns_of_flows_after_the_end(lab):
    command = ("check", "two_paths", "--set", "traffic.1.start_s=60", "--set", "duration_s=60")
    said = "warning: the run ends at 60 s, before the bulk flow of ue1 at 60 s"
    assert said in lab(*command).output
    assert "warning" not in lab("check", "two_paths").output


@pytest.mark.parametrize("more", ["", "--repeat 2", "--quiet"])
def test_run_warns_as_check_does(lab, more, tmp_path):
    """A download that begins as the run ends gets nothing, and the run is complete."""
    scheduler = "--set multipath.scheduler=lowest_rtt"
    command = f"run call_and_download --engine fake --duration 10 {scheduler} {more} --out"
    ran = lab(command, tmp_path / "run")
    assert ran.exit_code == 0
    said = "warning: the run ends at 10 s, before the bulk flow of ue2 at 10 s: nothing is sent"
    assert (said in ran.stderr.splitlines()) == (more != "--quiet")
    assert said not in ran.stdout


def test_dctcp_without_a_queue_that_marks_is_named(lab):
    said = "warning: no queue marks packets, so dctcp behaves as reno"
    assert said in lab("check two_paths --cc dctcp").output
    paths = ["topology.paths.1.queue", "topology.paths.2.queue"]
    marking = [f"--set={each}={{kind: red, mark_packets: 20}}" for each in paths]
    assert "warning" not in lab("check two_paths --cc dctcp", *marking).output
    assert "needs a queue that marks" in lab("list cc").output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--duration -5", "--duration: -5.0 is out of range"),
        ("--set duration_s=-5 --duration 5", "--set duration_s=-5: -5 is out of range"),
        (
            "--set topology.paths.1.rate_mbps=-3",
            "--set topology.paths.1.rate_mbps=-3: -3 is out of range: write more than 0 Mb/s",
        ),
        (
            "--strategy meter_throttling --set strategy.cth=7",
            "--set strategy.cth=7: 7 is out of range: write at most 1",
        ),
    ],
)
def test_an_error_names_the_option_that_was_typed(lab, options, said):
    refused = lab(f"run two_paths {options}")
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: {said}")


def test_a_wrong_option_says_what_to_type_in_a_clone():
    argv = python("-m", "lab", "check", "two_paths", "--foo")
    refused = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert "Try './run_lab.sh check --help' for help." in refused.stderr


def test_a_folder_with_a_run_of_other_settings_says_which(lab, tmp_path):
    command = "run uneven_paths --engine fake --quiet --out"
    lab(command, tmp_path / "run", "--duration", 15)
    refused = lab(command, tmp_path / "run", "--duration", 20, "--seed", 7)
    assert refused.exit_code == 2
    assert "it has a run with other settings: you ask for " in refused.stderr
    assert "duration_s 20 instead of 15" in refused.stderr
    assert "seed 7 instead of 1" in refused.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").write_text("mine")
    assert "it has other files. Choose" in lab(command, tmp_path / "mine").stderr


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
            "--duration: -1.0 is out of range",
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
    """Inside the VM every import takes ten times as long."""
    heavy = ("numpy", "scipy", "networkx", "flask", "plotly", "tinydb")
    program = f"import sys, lab.cli.commands; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[]\n"


def test_every_scenario_that_comes_with_the_lab_is_in_the_table():
    table = (scenario.FOLDER / "README.md").read_text()
    for name in scenario.names():
        assert f"({scenario.find(name).relative_to(scenario.FOLDER)})" in table
        assert scenario.load(name).name == name


def test_the_command_for_a_host_starts_after_the_two_dashes(lab, monkeypatch):
    from lab.engines.mininet.commands import exec_caller

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


@pytest.mark.parametrize("name", ["bench", "crosscheck", "reproduce"])
def test_a_command_beside_the_lab_has_its_own_help(name):
    listed = cli.commands[name]
    assert listed.help == listed.command().get_short_help_str(limit=200)
    assert CliRunner().invoke(cli, [name, "--help"]).output.startswith(f"Usage: cli {name} ")


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder


class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("papers", "bench"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])


sys.meta_path.insert(0, Missing())
from lab.cli.commands import cli
from lab.isolation import python

cli(prog_name="lab")
"""


@pytest.mark.parametrize("argv", [["--help"], ["list", "cc"], ["reproduce", "mp_sdn"], ["bench"]])
def test_the_lab_works_without_the_packages_beside_it(argv):
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT, *argv], cwd=ROOT, capture_output=True, text=True
    )
    missing = argv[0] in ("reproduce", "bench")
    assert (done.returncode, "is missing. Use a clone" in done.stderr) == (
        3 if missing else 0,
        missing,
    )
    assert "Traceback" not in done.stderr


def test_columns_of_numbers_are_aligned_at_the_right():
    rows = [("a", 1, None, "x"), ("bbb", 22.5, 3, None)]
    assert text_table(("name", "n", "seed", "text"), rows).splitlines() == [
        "name       n  seed  text",
        "a          1     -  x",
        "bbb   22.500     3  -",
    ]
