"""Commands: their output, their failures, and the journals."""

import os
import subprocess

import pytest

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.packages import PACKAGES
from lab.errors import CommandFailed, MachineLacks


def test_run_returns_what_the_command_printed():
    assert shell.run(["tr", "a-z", "A-Z"], "shout", stdin="veth") == "VETH"


def test_a_failure_names_the_purpose_and_the_message():
    with pytest.raises(
        CommandFailed, match=r"shape s1-eth2: `sh -c .*` ended with status 2: no such device"
    ) as failed:
        shell.run(["sh", "-c", "echo no such device >&2; exit 2"], "shape s1-eth2")
    assert (failed.value.status, failed.value.exit_code) == (2, 4)


def test_a_command_that_takes_too_long_is_a_failure():
    with pytest.raises(CommandFailed, match=r"status 124: still running after 0\.1 s"):
        shell.run(["sleep", "5"], "wait", timeout_s=0.1)


@pytest.mark.parametrize("start", [shell.run, shell.spawn])
def test_a_missing_program_names_its_package(start, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        MachineLacks,
        match=r"start Open vSwitch: 'ovs-vsctl' not found. "
        r"Try: sudo apt install openvswitch-switch",
    ):
        start(["ovs-vsctl", "show"], "start Open vSwitch", env={"PATH": "/nowhere"})


def test_a_missing_folder_is_not_reported_as_a_missing_program(tmp_path):
    with pytest.raises(MachineLacks, match=r"the folder .*gone does not exist"):
        shell.run(["true"], "build", cwd=tmp_path / "gone")


def test_the_journal_makes_a_script_that_can_be_run(tmp_path):
    script = []
    with shell.journal_to(
        lambda at, argv, stdin: script.append(shell.script_line(at, argv, stdin))
    ):
        shell.run(["tee", str(tmp_path / "a b")], "write", stdin="link set lo up\n")
        shell.spawn(["true"], "leave").wait()
    shell.run(["true"], "not in the journal")
    assert len(script) == 2
    assert shell.script_line(1.25, ["tc", "qdisc"]) == "# 00:00:01.250\ntc qdisc\n"
    os.unlink(tmp_path / "a b")
    subprocess.run(["sh", "-c", "".join(script)], check=True, capture_output=True)
    assert (tmp_path / "a b").read_text() == "link set lo up\n"


def test_every_package_has_a_reason_and_is_listed_once():
    names = [package.name for package in PACKAGES]
    assert all(package.reason for package in PACKAGES)
    assert len(names) == len(set(names))
